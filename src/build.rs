//! Compiles the shim against libtorch and tells the linker where libtorch lies.

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    #[cfg(feature = "torch")]
    torch::build();
}

#[cfg(feature = "torch")]
mod torch {
    use std::env;
    use std::path::PathBuf;

    const SOURCES: [&str; 2] = ["src/probe/hook/shim.cpp", "src/train/adamw.cpp"];

    pub fn build() {
        // The cc crate does not say which sources it read.
        println!("cargo:rerun-if-changed=src/probe/hook/guarded.h");
        for source in SOURCES {
            println!("cargo:rerun-if-changed={source}");
        }
        println!("cargo:rerun-if-env-changed=LIBTORCH");
        println!("cargo:rerun-if-env-changed=LIBTORCH_INCLUDE");
        // torch-sys has found libtorch, by whatever way; its library folder comes to us through cargo.
        let lib =
            env::var("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from).expect("torch-sys names libtorch's folder");
        let root = env::var("LIBTORCH_INCLUDE").map(PathBuf::from).unwrap_or_else(|_| lib.join(".."));
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .opt_level(2)
            .warnings(false)
            .include(root.join("include"))
            .include(root.join("include/torch/csrc/api/include"))
            .files(SOURCES)
            .compile("stepledger_shim");
        // So that what is built here starts from any folder, without LD_LIBRARY_PATH.
        let lib = lib.canonicalize().unwrap_or(lib);
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    }
}
