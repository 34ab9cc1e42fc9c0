//! Kernels as libraries for the host.

use std::path::Path;
use std::process::Command;

use libloading::Library;
use tempfile::TempDir;

/// A file of `tests/kernels/host`, or one named from there, compiled and loaded.
pub struct Host {
    library: Library,
    _folder: TempDir,
}

impl Host {
    /// Compiles it with these flags. An access that is not aligned as its type demands, which a card refuses, ends the
    /// process; so does whatever else is undefined. What is fused or not is as the source says.
    pub fn build(name: &str, flags: &[String]) -> Host {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kernel.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/host").join(name);
        let mut compiler = Command::new("c++");
        compiler.args([
            "-std=c++17",
            "-O1",
            "-w",
            "-shared",
            "-fPIC",
            "-ffp-contract=off",
            "-fno-strict-aliasing",
        ]);
        compiler.args(["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]);
        let output = compiler.args(flags).arg("-o").arg(&file).arg(&source).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: its initialisers do nothing but make empty values.
        Host { library: unsafe { Library::new(&file) }.unwrap(), _folder: folder }
    }

    /// SAFETY: `F` must be what the file declares under that name.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: as the caller promises.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap()
    }
}
