//! Compiles the shim against libtorch and tells the linker where libtorch lies.

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    #[cfg(feature = "torch")]
    torch::build();
}

#[cfg(feature = "torch")]
mod torch {
    use std::env;
    use std::path::{Path, PathBuf};

    const SOURCES: [&str; 13] = [
        "src/probe/hook/allocator.cpp",
        "src/probe/hook/cuda.cpp",
        "src/probe/hook/events.cpp",
        "src/probe/hook/ops.cpp",
        "src/probe/hook/roles.cpp",
        "src/probe/hook/workspaces.cpp",
        "src/rates/triad.cpp",
        "src/train/adamw.cpp",
        "src/train/autocast.cpp",
        "src/train/checkpoint/frame.cpp",
        "src/train/checkpoint/hooks.cpp",
        "src/train/checkpoint/surroundings.cpp",
        "src/train/ops.cpp",
    ];
    const HEADERS: [&str; 5] = [
        "src/probe/hook/cuda.h",
        "src/probe/hook/events.h",
        "src/probe/hook/guarded.h",
        "src/train/checkpoint/frame.h",
        "src/train/checkpoint/surroundings.h",
    ];

    pub fn build() {
        // The cc crate does not say which sources it read.
        for source in SOURCES.iter().chain(&HEADERS) {
            println!("cargo:rerun-if-changed={source}");
        }
        println!("cargo:rerun-if-env-changed=LIBTORCH");
        println!("cargo:rerun-if-env-changed=LIBTORCH_INCLUDE");
        // torch-sys has found libtorch, by whatever way; its library folder comes to us through cargo.
        let lib =
            env::var("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from).expect("torch-sys names libtorch's folder");
        let root = env::var("LIBTORCH_INCLUDE").map(PathBuf::from).unwrap_or_else(|_| lib.join(".."));
        let mut compiler = cc::Build::new();
        // A libtorch with CUDA comes with the headers of its caching allocator, which need CUDA's own. The
        // wheels of the latter lie beside libtorch's; elsewhere CUDA_HOME leads to them.
        if let Some(cuda) = cuda_headers(&root) {
            compiler.include(cuda).define("STEPLEDGER_CUDA", None);
        }
        compiler
            .cpp(true)
            .std("c++17")
            .opt_level(2)
            .warnings(false)
            // libtorch was compiled so, and some of its classes (RecordFunction) are laid out otherwise without.
            .define("NDEBUG", None)
            .include(root.join("include"))
            .include(root.join("include/torch/csrc/api/include"))
            .files(SOURCES)
            .compile("stepledger_shim");
        println!("cargo:rerun-if-env-changed=CUDA_HOME");
        // So that what is built here starts from any folder, without LD_LIBRARY_PATH.
        let lib = lib.canonicalize().unwrap_or(lib);
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    }

    fn cuda_headers(root: &Path) -> Option<PathBuf> {
        let wheel = root.canonicalize().ok()?.join("../nvidia/cu13/include");
        let home = env::var("CUDA_HOME").map(|home| PathBuf::from(home).join("include"));
        let allocator = root.join("include/c10/cuda/CUDACachingAllocator.h");
        let complete = |folder: &PathBuf| folder.join("crt/host_config.h").exists();
        home.into_iter().chain([wheel]).find(complete).filter(|_| allocator.exists())
    }
}
