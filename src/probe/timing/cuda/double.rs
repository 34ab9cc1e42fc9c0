//! The driver's test double, and processes in which it is the driver: nothing it says is a measurement.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::{Clock, CudaClock, CudaError, Stamp, hook};

/// Runs `body` in a process of its own where the driver is the double: this test once more, told so by its environment.
/// `test` is its full name. Where a driver is installed it is further down the loader's path, and so is a decoy that
/// refuses every call: whoever asks another library than the double's fails on any machine.
pub fn on_the_double(test: &str, body: fn(&Double)) {
    on_a_double(test, &[], body);
}

/// The same on one that is built with these definitions.
pub fn on_a_double(test: &str, definitions: &[&str], body: fn(&Double)) {
    const TOLD: &str = "STEPLEDGER_CUDA_DOUBLE";
    if std::env::var_os(TOLD).is_some() {
        return body(&Double::load());
    }
    let folder = tempfile::tempdir().unwrap();
    build_driver(folder.path(), "cuda_driver.c", definitions);
    build(folder.path(), "nvml.c", "libnvidia-ml.so.1", &[]);
    let decoy = folder.path().join("decoy");
    std::fs::create_dir(&decoy).unwrap();
    build_driver(&decoy, "installed_driver.c", &[]);
    let mut paths = vec![folder.path().to_owned(), decoy];
    let before = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    paths.extend(std::env::split_paths(&before));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture", "--test-threads", "1"]).env(TOLD, "1");
    let output = child.env("LD_LIBRARY_PATH", std::env::join_paths(paths).unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the test's name: {said}");
}

/// Under both names by which a driver is looked for, as an installed one has them.
fn build_driver(folder: &Path, source: &str, definitions: &[&str]) {
    build(folder, source, "libcuda.so.1", definitions);
    std::os::unix::fs::symlink("libcuda.so.1", folder.join("libcuda.so")).unwrap();
}

fn build(folder: &Path, source: &str, library: &str, definitions: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doubles").join(source);
    let mut compiler = Command::new("cc");
    compiler
        .args(definitions)
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(folder.join(library));
    let output = compiler.arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// One line of the double's log: the call, and two numbers of it (its event, and the stream or the flags).
pub type Call = (String, i32, i32);

/// The double, by its test's side.
pub struct Double {
    library: libloading::Library,
    stream: Rc<Cell<usize>>,
    host_ns: Rc<Cell<Option<i64>>>,
}

impl Double {
    fn load() -> Self {
        // SAFETY: the double's initialisers do nothing.
        let library = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
        Double { library, stream: Rc::default(), host_ns: Rc::default() }
    }

    /// SAFETY: `F` must be what the double declares under that name.
    unsafe fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: as the caller promises.
        *unsafe { self.library.get::<F>(name.as_bytes()) }.unwrap()
    }

    fn say(&self, name: &str, a: c_int, b: c_int) {
        // SAFETY: the double declares those that are called so with two integers or the first of them.
        unsafe { self.function::<extern "C" fn(c_int, c_int)>(name)(a, b) }
    }

    fn ask(&self, name: &str) -> i32 {
        // SAFETY: the double declares it so.
        unsafe { self.function::<extern "C" fn() -> c_int>(name)() }
    }

    /// Time goes by.
    pub fn pass(&self, ns: i64) {
        // SAFETY: the double declares it so.
        unsafe { self.function::<extern "C" fn(i64)>("double_pass")(ns) }
    }

    /// From now on so much time goes by before each query.
    pub fn tick(&self, ns: i64) {
        // SAFETY: the double declares it so.
        unsafe { self.function::<extern "C" fn(i64)>("double_tick")(ns) }
    }

    /// From now on it is this instant on the host's clock, as far as a device's clock looks at it.
    pub fn host_at(&self, ns: i64) {
        self.host_ns.set(Some(ns));
    }

    /// Puts work on the current stream.
    pub fn work(&self, ns: i64) {
        // SAFETY: the double declares it so.
        unsafe { self.function::<extern "C" fn(c_int, i64)>("double_work")(self.stream.get() as c_int, ns) }
    }

    /// Makes this stream libtorch's current one.
    pub fn use_stream(&self, number: usize) {
        self.stream.set(number);
    }

    pub fn place(&self, stream: i32, device: i32) {
        self.say("double_place", stream, device);
    }

    pub fn capture(&self, stream: i32, on: bool) {
        self.say("double_capture", stream, i32::from(on));
    }

    /// How this thread behaves towards captures: 0 is CUDA's default.
    pub fn capture_mode(&self) -> i32 {
        self.ask("double_capture_mode")
    }

    /// No event is reached any more, whatever time it is.
    pub fn stick(&self) {
        self.say("double_stick", 1, 0);
    }

    /// Makes every further call of this name but the next `after` fail.
    pub fn fail(&self, name: &str, code: i32, after: i32) {
        let name = CString::new(name).unwrap();
        // SAFETY: the double declares it so, and copies the name.
        unsafe {
            self.function::<extern "C" fn(*const c_char, c_int, c_int)>("double_fail")(
                name.as_ptr(),
                code,
                after,
            )
        }
    }

    pub fn set_current(&self, device: i32) {
        self.say("double_set_current", device, 0);
    }

    /// The number of the device whose context is current; -1 for none.
    pub fn current(&self) -> i32 {
        self.ask("double_current")
    }

    /// How many events were made, how many destroyed, and how many contexts are retained.
    pub fn balance(&self) -> (i32, i32, i32) {
        (self.ask("double_made"), self.ask("double_destroyed"), self.ask("double_retained"))
    }

    pub fn calls(&self) -> Vec<Call> {
        // SAFETY: the double declares it so; the log lives as long as the double.
        let log =
            unsafe { CStr::from_ptr(self.function::<extern "C" fn() -> *const c_char>("double_calls")()) };
        let call = |line: &str| {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap();
            (word().to_owned(), word().parse().unwrap(), word().parse().unwrap())
        };
        log.to_str().unwrap().lines().map(call).collect()
    }

    /// The calls of one name, in order.
    pub fn calls_of(&self, name: &str) -> Vec<(i32, i32)> {
        self.calls().into_iter().filter(|(call, ..)| call == name).map(|(_, a, b)| (a, b)).collect()
    }

    /// The handle of a stream.
    pub fn stream(&self, number: usize) -> *mut c_void {
        // SAFETY: the double declares it so.
        unsafe { self.function::<extern "C" fn(c_int) -> *mut c_void>("double_stream")(number as c_int) }
    }

    /// A clock for device `ordinal`, on whatever stream [`use_stream`](Double::use_stream) named last. It waits for nothing
    /// but a device that gets further.
    pub fn clock(&self, ordinal: i32) -> Result<CudaClock, CudaError> {
        self.patient_clock(ordinal, Duration::ZERO)
    }

    /// The same with some patience.
    pub fn patient_clock(&self, ordinal: i32, patience: Duration) -> Result<CudaClock, CudaError> {
        // SAFETY: the double declares it so.
        let handle = unsafe { self.function::<extern "C" fn(c_int) -> *mut c_void>("double_stream") };
        let (stream, host_ns) = (self.stream.clone(), self.host_ns.clone());
        let now = move || host_ns.get().unwrap_or_else(hook::now_ns);
        CudaClock::on(ordinal, Box::new(move || Ok(handle(stream.get() as c_int))), Box::new(now), patience)
    }
}

/// Codes to fail with: one that the driver explains, and others that it does not, of which CUDA 13.4 has the one.
pub const CODES: [i32; 3] = [2, 919, 99_999];

/// What is told of a call that has failed with one of these.
pub fn told(call: &str, code: i32) -> String {
    match code {
        2 => format!("{call}: out of memory (CUDA_ERROR_OUT_OF_MEMORY, code 2)"),
        code => format!("{call}: code {code}"),
    }
}

/// A span on the device: work between two stamps, which takes the host no time.
pub fn span(double: &Double, clock: &mut CudaClock, host_ns: i64, work_ns: i64) -> (Stamp, Stamp) {
    let begin = clock.stamp(host_ns).unwrap();
    double.work(work_ns);
    (begin, clock.stamp(host_ns).unwrap())
}
