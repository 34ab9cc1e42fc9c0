//! NVIDIA's management library, where it is installed: the driver's version, clocks and power.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use libloading::Library;

use crate::device::is_missing;
use crate::record::DeviceFacts;

/// What NVML said; each `None` where it said nothing.
#[derive(Debug, Default)]
pub struct Told {
    driver_version: Option<String>,
    sm_clock_mhz: Option<i64>,
    memory_clock_mhz: Option<i64>,
    power_w: Option<f64>,
    power_limit_w: Option<f64>,
}

impl Told {
    /// The columns that it has nothing for.
    pub fn untold(&self) -> Vec<&'static str> {
        let told = [
            ("driver_version", self.driver_version.is_some()),
            ("sm_clock_mhz", self.sm_clock_mhz.is_some()),
            ("memory_clock_mhz", self.memory_clock_mhz.is_some()),
            ("power_w", self.power_w.is_some()),
            ("power_limit_w", self.power_limit_w.is_some()),
        ];
        told.into_iter().filter(|(_, told)| !told).map(|(name, _)| name).collect()
    }

    pub fn into_facts(self, facts: DeviceFacts) -> DeviceFacts {
        let Told { driver_version, sm_clock_mhz, memory_clock_mhz, power_w, power_limit_w } = self;
        DeviceFacts { driver_version, sm_clock_mhz, memory_clock_mhz, power_w, power_limit_w, ..facts }
    }
}

/// Asks NVML of the device at this place on the bus.
pub fn ask(pci_bus_id: &CString) -> Result<Told, String> {
    // SAFETY: a library that is made to be loaded so.
    let library = unsafe { Library::new(NVML) }.map_err(|why| match is_missing(NVML, &why) {
        true => format!("NVML ({NVML}) was not found; it comes with NVIDIA's driver"),
        false => format!("NVML ({NVML}) cannot be loaded: {why}"),
    })?;
    let nvml = Nvml { library };
    nvml.check("nvmlInit_v2", nvml.init())?;
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

    fn check(&self, name: &str, outcome: Option<c_int>) -> Result<(), String> {
        match outcome {
            Some(0) => Ok(()),
            Some(code) => Err(format!("NVML's {name} failed with code {code}")),
            None => Err(format!("this NVML has no {name}; a newer driver has")),
        }
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
        self.check(name, outcome)?;
        let watts = |name| self.number(name, device).map(|milliwatts| f64::from(milliwatts) / 1e3);
        Ok(Told {
            driver_version: self.driver_version(),
            sm_clock_mhz: self.clock(device, CLOCK_SM),
            memory_clock_mhz: self.clock(device, CLOCK_MEMORY),
            power_w: watts("nvmlDeviceGetPowerUsage"),
            power_limit_w: watts("nvmlDeviceGetEnforcedPowerLimit"),
        })
    }

    fn driver_version(&self) -> Option<String> {
        let mut text: [c_char; 96] = [0; 96];
        // SAFETY: NVML declares it so; it writes a NUL-terminated text of at most that many bytes.
        let failed = unsafe {
            let name = "nvmlSystemGetDriverVersion";
            let ask = self.function::<unsafe extern "C" fn(*mut c_char, c_uint) -> c_int>(name)?;
            ask(text.as_mut_ptr(), text.len() as c_uint)
        };
        let text = text.map(|byte| byte as u8);
        let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| failed == 0)?;
        Some(text.to_string_lossy().into_owned())
    }

    fn clock(&self, device: Device, which: c_uint) -> Option<i64> {
        let mut mhz = 0;
        // SAFETY: NVML declares it so; it writes one number.
        let failed = unsafe {
            let name = "nvmlDeviceGetClockInfo";
            let ask = self.function::<unsafe extern "C" fn(Device, c_uint, *mut c_uint) -> c_int>(name)?;
            ask(device, which, &raw mut mhz)
        };
        (failed == 0).then_some(i64::from(mhz))
    }

    /// What a function says that is asked of a device and answers with one number.
    fn number(&self, name: &str, device: Device) -> Option<c_uint> {
        let mut number = 0;
        // SAFETY: NVML declares those that are called here so; they write one number.
        let failed = unsafe {
            let ask = self.function::<unsafe extern "C" fn(Device, *mut c_uint) -> c_int>(name)?;
            ask(device, &raw mut number)
        };
        (failed == 0).then_some(number)
    }
}
