//! Loading, launching and measuring, by way of a double of CUDA's driver that runs the kernels on the host.

use std::ffi::c_void;
use std::num::NonZeroU64;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use stepledger::device::{
    AdamWKernel, Cache, Gpu, Hyper, Rate, Source, Storage, Tiling, measure_bandwidth, measure_fma,
};

use crate::host::Host;
use crate::tensors::{Kernel, Tensor};

/// The double, under the name by which the driver is looked for first, and by the other one a decoy: a test that asked it
/// would fail on any machine, as it would where a driver is installed.
fn double() -> (Host, Host) {
    let decoy = Host::build(
        "../../doubles/installed_driver.c",
        &["-xc", "-Wl,-soname,libcuda.so"].map(str::to_owned),
    );
    let mut flags = Source::adamw(Tiling::default()).defines();
    flags.extend(Source::fma().defines());
    flags.push("-Wl,-soname,libcuda.so.1".to_owned());
    (Host::build("driver.cpp", &flags), decoy)
}

/// What the double says of itself.
fn says<T>(double: &Host, name: &str) -> T {
    // SAFETY: the double declares functions of these names without arguments, and the callers know what they return.
    let answer: extern "C" fn() -> T = unsafe { double.function(name) };
    answer()
}

/// Has the double do something from now on, or no longer.
fn tell(double: &Host, name: &str, yes: bool) {
    // SAFETY: the double declares functions of these names so.
    let function: extern "C" fn(bool) = unsafe { double.function(name) };
    function(yes);
}

/// More tensors than a launch takes.
fn tensors(storage: Storage) -> Vec<Tensor> {
    let random = &mut ChaCha8Rng::seed_from_u64(11);
    let mut tensors: Vec<Tensor> =
        (0..70).map(|i| Tensor::new(storage, 97 * i % 5000, i % 3, 0, random)).collect();
    for tensor in &mut tensors {
        tensor.new_grads(random);
    }
    tensors
}

fn updates_are_launched_as_they_are(double: &Host, gpu: &Arc<Gpu>, cache: &Cache) {
    let hyper = Hyper { lr: 1e-2, betas: (0.9, 0.95), eps: 1e-8, weight_decay: 0.1 };
    let tiling = Tiling::default();
    let direct = Kernel::new(tiling.block_size(), tiling.tile_size());
    let stream = 0x5740 as *mut c_void;
    for storage in Storage::ALL {
        let (mut launched, mut expected) = (tensors(storage), tensors(storage));
        let kernel = AdamWKernel::load(gpu, cache, tiling, storage).unwrap();
        let before: i32 = says(double, "double_launches");
        for count in 1..=3 {
            let operands: Vec<_> = launched.iter_mut().map(Tensor::operands).collect();
            // SAFETY: the double works on the host's memory, on which these tensors lie, and at once.
            unsafe { kernel.step(&operands, hyper, NonZeroU64::new(count).unwrap(), stream) }.unwrap();
            let operands: Vec<_> = expected.iter_mut().map(Tensor::operands).collect();
            direct.step(storage, &operands, hyper, count);
        }
        assert_eq!(says::<i32>(double, "double_launches") - before, 3 * 2, "two launches a step");
        for (launched, expected) in launched.iter().zip(&expected) {
            launched.check_guards();
            assert_eq!(launched.updated(), expected.updated(), "{storage:?}");
            assert_eq!(launched.exp_avg_sqs.floats(), expected.exp_avg_sqs.floats(), "{storage:?}");
            assert_eq!(launched.step.floats(), [3.0]);
        }
        assert_eq!(says::<*mut c_void>(double, "double_last_stream"), stream);
        assert!(says::<bool>(double, "double_has_its_context_back"));
    }
}

/// By the double's clock, on which a launch takes a millisecond.
fn rates_are_work_over_time(gpu: &Arc<Gpu>, cache: &Cache) {
    let expect = |rate: Rate, expected: f64| {
        assert!((rate.median / expected - 1.0).abs() < 1e-9, "{rate:?} for {expected}");
        assert_eq!((rate.q1, rate.q3, rate.rounds), (rate.median, rate.median, 20));
    };
    let array = 1 << 20;
    let bandwidth = measure_bandwidth(gpu, cache, 3 * array).unwrap();
    expect(bandwidth.copy, 2.0 * array as f64 / 1e9 / 1e-3);
    expect(bandwidth.triad, 3.0 * array as f64 / 1e9 / 1e-3);
    // 512 threads fill this card.
    expect(measure_fma(gpu, cache).unwrap(), 2.0 * 65536.0 * 16.0 * 512.0 / 1e12 / 1e-3);
    let error = measure_bandwidth(gpu, cache, 100).unwrap_err().to_string();
    assert!(error.contains("100 bytes"), "{error}");
}

/// A kernel that computes something else has no rate.
fn wrong_results_are_no_measurement(double: &Host, gpu: &Arc<Gpu>, cache: &Cache) {
    tell(double, "double_spoils", true);
    let errors = [
        measure_bandwidth(gpu, cache, 3 << 20).map(|_| ()).unwrap_err().to_string(),
        measure_fma(gpu, cache).map(|_| ()).unwrap_err().to_string(),
    ];
    for (error, kernel) in errors.iter().zip(["copy", "fma_peak"]) {
        assert!(error.contains(&format!("the kernel {kernel} came to")), "{error}");
    }
    tell(double, "double_spoils", false);
}

/// A driver that is older than the compiler gets machine code.
fn a_driver_that_does_not_know_the_ptx_runs_machine_code(double: &Host, gpu: &Arc<Gpu>, cache: &Cache) {
    tell(double, "double_knows_ptx", false);
    assert!(measure_fma(gpu, cache).unwrap().median > 0.0);
    tell(double, "double_knows_ptx", true);
}

/// A driver of a later CUDA has codes that nobody here knows: each is told as it is.
fn a_code_that_nobody_knows_is_told(double: &Host, gpu: &Arc<Gpu>, cache: &Cache) {
    // SAFETY: the double declares it so.
    let refuse: extern "C" fn(i32) = unsafe { double.function("double_refuses") };
    for code in [917, 919, 99_999] {
        refuse(code);
        let error = measure_fma(gpu, cache).unwrap_err().to_string();
        let told = format!("CUDA driver, loading a kernel: cuModuleLoadData: code {code}");
        assert!(error.starts_with(&told), "{error}");
    }
    refuse(0);
}

/// One test, since a process has one driver.
#[test]
fn what_is_launched_is_what_the_kernels_take() {
    let (double, _decoy) = double();
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let missing = Gpu::open(3).unwrap_err().to_string();
    assert!(missing.contains("opening the GPU") && missing.contains("CUDA driver"), "{missing}");
    let gpu = Gpu::open(0).unwrap();
    updates_are_launched_as_they_are(&double, &gpu, &cache);
    rates_are_work_over_time(&gpu, &cache);
    wrong_results_are_no_measurement(&double, &gpu, &cache);
    a_driver_that_does_not_know_the_ptx_runs_machine_code(&double, &gpu, &cache);
    a_code_that_nobody_knows_is_told(&double, &gpu, &cache);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "three sources, compiled once each");
    drop(gpu);
    assert!(says::<bool>(&double, "double_is_clean"));
    // The library that was found is kept for good.
    std::mem::forget(double);
}
