//! The double of CUDA's caching allocator, by its tests' side: nothing it says is a measurement.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The double, in the place of libtorch's own allocator.
pub struct Double(libloading::Library);

impl Double {
    pub fn install() -> Self {
        crate::probe::load_cuda().expect("libtorch_cuda comes with the wheel, and loads without a GPU");
        let folder = tempfile::tempdir().unwrap();
        let file = build(folder.path());
        // SAFETY: the double's initialisers only make empty containers.
        let double = Double(unsafe { libloading::Library::new(file) }.unwrap());
        // SAFETY: the double declares it so.
        let installed = unsafe { double.call::<extern "C" fn() -> bool>("double_install")() };
        assert!(installed, "libc10_cuda has no allocator to replace");
        double
    }

    /// SAFETY: `F` must be what the double declares under that name.
    unsafe fn call<F: Copy>(&self, name: &str) -> F {
        // SAFETY: as the caller promises.
        *unsafe { self.0.get::<F>(name.as_bytes()) }.unwrap()
    }

    pub fn give(&self, bytes: usize) -> usize {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn(usize) -> usize>("double_give")(bytes) }
    }

    pub fn take(&self, address: usize) {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn(usize)>("double_take")(address) }
    }

    pub fn allocated(&self) -> i64 {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn() -> usize>("double_allocated")() as i64 }
    }

    /// Makes libtorch name this stream of the driver's double as its current one, on a GPU that is not there.
    pub fn stand_in_for_the_device(&self, stream: *mut c_void) {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn(*mut c_void)>("double_stand_in")(stream) }
    }

    /// From now on the device does not say how much of its memory is free.
    pub fn lose(&self) {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn()>("double_lose")() }
    }

    /// How often the device was asked for its free memory.
    pub fn asked_for_free(&self) -> usize {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn() -> usize>("double_asked_for_free")() }
    }

    /// Libtorch lends the block at this address to cuBLAS; at 0, has lent none.
    pub fn lend(&self, address: usize) {
        // SAFETY: the double declares it so.
        let known = unsafe { self.call::<extern "C" fn(usize) -> bool>("double_lend")(address) };
        assert!(known, "libtorch_cuda keeps no workspaces by that name");
    }

    pub fn set_fraction(&self, fraction: f64) {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn(f64)>("double_set_fraction")(fraction) }
    }

    pub fn fraction(&self) -> f64 {
        // SAFETY: the double declares it so.
        unsafe { self.call::<extern "C" fn() -> f64>("double_fraction")() }
    }
}

fn build(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let libtorch = root.join(".venv/libtorch").canonicalize().unwrap();
    let file = folder.join("libcaching_allocator.so");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O1", "-w", "-DNDEBUG", "-shared", "-fPIC", "-o"]).arg(&file);
    compiler.arg(root.join("tests/doubles/caching_allocator.cpp"));
    for headers in ["include", "../nvidia/cu13/include"] {
        compiler.arg("-I").arg(libtorch.join(headers));
    }
    let output = compiler.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    file
}
