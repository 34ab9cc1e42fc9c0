//! What is known of the device that a run computed on.

/// A GPU's facts as the run began; all `None` on a CPU, and each where the driver did not tell.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct DeviceFacts {
    pub device_name: Option<String>,
    /// Such as `9.0`.
    pub compute_capability: Option<String>,
    pub multiprocessors: Option<i64>,
    pub device_memory_bytes: Option<i64>,
    /// Of it, what was free before the model was built.
    pub device_free_bytes: Option<i64>,
    /// The version of the kernel driver, such as `580.65.06`.
    pub driver_version: Option<String>,
    /// The version of CUDA that the driver offers, such as `13.0`.
    pub cuda_driver_version: Option<String>,
    /// The version of CUDA's runtime that libtorch has loaded.
    pub cuda_runtime_version: Option<String>,
    /// Of the multiprocessors and of the memory, at that instant.
    pub sm_clock_mhz: Option<i64>,
    pub memory_clock_mhz: Option<i64>,
    /// Drawn at that instant, and the most that is allowed.
    pub power_w: Option<f64>,
    pub power_limit_w: Option<f64>,
    /// How libtorch's caching allocator was told to work.
    pub allocator_settings: Option<String>,
}
