//! NVIDIA's management library, where it is installed: the driver's version, clocks and power.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use libloading::os::unix::Library;

use crate::device::{DriverError, is_missing, open_library};

/// What NVML said of each, or why it said nothing.
pub struct Told {
    pub driver_version: Result<String, String>,
    pub sm_clock_mhz: Result<i64, String>,
    pub memory_clock_mhz: Result<i64, String>,
    pub power_w: Result<f64, String>,
    pub power_limit_w: Result<f64, String>,
}

impl Told {
    fn nothing(why: &str) -> Told {
        let why = why.to_owned();
        Told {
            driver_version: Err(why.clone()),
            sm_clock_mhz: Err(why.clone()),
            memory_clock_mhz: Err(why.clone()),
            power_w: Err(why.clone()),
            power_limit_w: Err(why),
        }
    }
}

/// Asks NVML of the device at this place on the bus, if that is known.
pub fn ask(pci_bus_id: Result<CString, DriverError>) -> Told {
    let place = pci_bus_id.map_err(|why| format!("the driver does not tell the device's bus: {why}"));
    place.and_then(|place| ask_of(&place)).unwrap_or_else(|why| Told::nothing(&why))
}

fn ask_of(pci_bus_id: &CString) -> Result<Told, String> {
    let library = open_library(NVML.as_ref()).map_err(|why| match is_missing(NVML, &why) {
        true => format!("NVML ({NVML}) was not found; it comes with NVIDIA's driver"),
        false => format!("NVML ({NVML}) cannot be loaded: {why}"),
    })?;
    let nvml = Nvml { library };
    nvml.done("nvmlInit_v2", nvml.init())?;
    let told = nvml.of_device(pci_bus_id);
    nvml.shutdown();
    told
}

const NVML: &str = "libnvidia-ml.so.1";

type Device = *mut c_void;

/// `nvmlClockType_t`.
const CLOCK_SM: c_uint = 1;
const CLOCK_MEMORY: c_uint = 2;

struct Nvml {
    library: Library,
}

impl Nvml {
    /// A function of this name, null where there is none. Every NVML function returns 0 if it succeeds.
    ///
    /// # Safety
    ///
    /// `F` must be what NVML declares under that name.
    unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: as the caller promises.
        unsafe { self.library.get::<F>(name.as_bytes()) }.ok().map(|function| *function)
    }

    fn init(&self) -> Option<c_int> {
        // SAFETY: NVML declares it so.
        Some(unsafe { self.function::<unsafe extern "C" fn() -> c_int>("nvmlInit_v2")?() })
    }

    fn shutdown(&self) {
        // SAFETY: the counterpart of `init`. Its failure has nobody to go to.
        unsafe {
            if let Some(shutdown) = self.function::<unsafe extern "C" fn() -> c_int>("nvmlShutdown") {
                shutdown();
            }
        }
    }

    fn of_device(&self, pci_bus_id: &CString) -> Result<Told, String> {
        let name = "nvmlDeviceGetHandleByPciBusId_v2";
        let mut device: Device = std::ptr::null_mut();
        // SAFETY: NVML declares it so; it reads a NUL-terminated text and writes one handle.
        let outcome = unsafe {
            self.function::<unsafe extern "C" fn(*const c_char, *mut Device) -> c_int>(name)
                .map(|handle| handle(pci_bus_id.as_ptr(), &raw mut device))
        };
        self.done(name, outcome)?;
        let watts = |name| self.number(name, device).map(|milliwatts| f64::from(milliwatts) / 1e3);
        Ok(Told {
            driver_version: self.driver_version(),
            sm_clock_mhz: self.clock(device, CLOCK_SM),
            memory_clock_mhz: self.clock(device, CLOCK_MEMORY),
            power_w: watts("nvmlDeviceGetPowerUsage"),
            power_limit_w: watts("nvmlDeviceGetEnforcedPowerLimit"),
        })
    }

    fn driver_version(&self) -> Result<String, String> {
        let name = "nvmlSystemGetDriverVersion";
        let mut text: [c_char; 96] = [0; 96];
        // SAFETY: NVML declares it so; it writes a NUL-terminated text of at most that many bytes.
        let outcome = unsafe {
            self.function::<unsafe extern "C" fn(*mut c_char, c_uint) -> c_int>(name)
                .map(|ask| ask(text.as_mut_ptr(), text.len() as c_uint - 1))
        };
        self.done(name, outcome)?;
        // SAFETY: the last byte is 0 still, whatever was written before it.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    fn clock(&self, device: Device, which: c_uint) -> Result<i64, String> {
        let name = "nvmlDeviceGetClockInfo";
        let mut mhz = 0;
        // SAFETY: NVML declares it so; it writes one number.
        let outcome = unsafe {
            self.function::<unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> c_int>(name)
                .map(|ask| ask(device, which, &raw mut mhz))
        };
        self.done(name, outcome).map(|()| i64::from(mhz))
    }

    /// What a function says that is asked of a device and answers with one number.
    fn number(&self, name: &str, device: Device) -> Result<c_uint, String> {
        let mut number = 0;
        // SAFETY: NVML declares those that are called here so; they write one number.
        let outcome = unsafe {
            self.function::<unsafe extern "C" fn(Device, *mut c_uint) -> c_int>(name)
                .map(|ask| ask(device, &raw mut number))
        };
        self.done(name, outcome).map(|()| number)
    }

    /// What came of a call; `None` where this NVML has no function of that name.
    fn done(&self, name: &str, outcome: Option<c_int>) -> Result<(), String> {
        const NOT_SUPPORTED: c_int = 3;
        match outcome {
            Some(0) => Ok(()),
            Some(NOT_SUPPORTED) => Err("NVML does not tell it of this device".to_owned()),
            Some(code) => Err(match self.words(code) {
                Some(words) => format!("NVML's {name} failed: {words} (code {code})"),
                None => format!("NVML's {name} failed with code {code}"),
            }),
            None => Err(format!("this NVML has no {name}; a newer driver has")),
        }
    }

    /// NVML's own words for a code.
    fn words(&self, code: c_int) -> Option<String> {
        type Words = unsafe extern "C" fn(c_int) -> *const c_char;
        // SAFETY: NVML declares it so; it takes any code, before `init` and after, and returns a text of its own or null.
        let text = unsafe { self.function::<Words>("nvmlErrorString")?(code) };
        // SAFETY: a NUL-terminated text that stays as long as the library is loaded.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}
