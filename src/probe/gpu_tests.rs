//! Whole runs on a GPU that is not there: the driver, the caching allocator and libtorch's guard of devices are doubles,
//! and nothing here is a measurement. What is real is all between them, from `Probe::start` to the records.

use std::process::Command;

use tch::Device;

use super::error::ProbeError;
use super::hook::double::Double as Allocator;
use super::kept::Kept;
use super::timing::double::{Double as Driver, on_the_double};
use super::{Options, Probe, scope, transfer, waiting};
use crate::record::{Category, Detail, Moment, Phase, RunStatus, SpanKind, StepRecords};

const MS: i64 = 1_000_000;
const GPU: Device = Device::Cuda(0);

fn path(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}

/// The doubles' sides of one run.
struct Gpu<'a> {
    driver: &'a Driver,
    allocator: Allocator,
    states: Option<usize>,
}

impl<'a> Gpu<'a> {
    fn new(driver: &'a Driver) -> Self {
        let allocator = Allocator::install();
        allocator.stand_in_for_the_device(driver.stream(0));
        Gpu { driver, allocator, states: None }
    }

    /// A step of 12 ms of the device, as long for the host: it waits at the end.
    fn step(&mut self, probe: &mut Probe) {
        let mut step = probe.step();
        let batch = step.dataloader(|| {
            let _copy = transfer();
            self.driver.work(2 * MS);
            self.allocator.give(1000)
        });
        let activation = step.forward(|| {
            let _scope = scope("block");
            self.driver.work(3 * MS);
            self.allocator.give(2048)
        });
        step.backward(|| {
            self.driver.work(6 * MS);
            self.allocator.take(activation);
        });
        step.optimizer(|| {
            self.driver.work(MS);
            self.states.get_or_insert_with(|| self.allocator.give(4096));
        });
        {
            let _waiting = waiting();
            self.driver.pass(12 * MS);
        }
        self.allocator.take(batch);
        step.finish(2.5, 64).unwrap();
    }
}

fn at(records: &StepRecords, moment: Moment, category: Category) -> i64 {
    records.moments.iter().find(|row| row.moment == moment).unwrap().bytes[category]
}

#[test]
fn a_run_is_timed_and_accounted_for_from_its_start_to_its_records() {
    on_the_double(&path("a_run_is_timed_and_accounted_for_from_its_start_to_its_records"), |driver| {
        let mut gpu = Gpu::new(driver);
        let kept = Kept::default();
        let mut probe =
            Probe::start(Options::new("doubles").device(GPU).flush_every(4), kept.clone()).unwrap();
        for _ in 0..6 {
            gpu.step(&mut probe);
        }
        probe.finish().unwrap();
        assert_eq!(kept.steps(), [0, 1, 2, 3, 4, 5]);
        for step in 0..6 {
            let device_ns = |kind, phase| kept.row(step, kind, phase).device_ns;
            assert_eq!(device_ns(SpanKind::Phase, Phase::Forward), Some(3 * MS));
            assert_eq!(device_ns(SpanKind::Scope, Phase::Forward), Some(3 * MS));
            assert_eq!(device_ns(SpanKind::Phase, Phase::Backward), Some(6 * MS));
            assert_eq!(device_ns(SpanKind::Transfer, Phase::Dataloader), Some(2 * MS));
            let records = kept.step(step);
            assert_eq!((records.step.difference_bytes, records.step.dropped_events), (Some(0), 0));
            assert!(records.step.lead_ns.is_some(), "step {step}");
            assert_eq!(at(&records, Moment::ForwardEnd, Category::Activation), 2048);
            assert_eq!(at(&records, Moment::ForwardEnd, Category::Input), 1000);
            assert_eq!(at(&records, Moment::OptimizerEnd, Category::AdamState), 4096);
            assert!(records.moments.iter().all(|row| row.bytes[Category::Unattributed] == 0));
            assert_eq!(records.step.rounding_bytes, Some(0), "the batch is gone by then");
            // The driver is asked for the free memory where it may take its time.
            let asked = [0, 3].contains(&step);
            assert_eq!(records.step.non_torch_bytes, asked.then_some(100 << 20), "step {step}");
        }
        let (run, open) = kept.end();
        assert_eq!((run.status, run.device.as_str()), (RunStatus::Complete, "cuda:0"));
        assert_eq!(run.device_facts.device_name.as_deref(), Some("Double 0"));
        // Libtorch's own, which is real.
        assert!(run.device_facts.cuda_runtime_version.is_some(), "{:?}", run.missing);
        assert_eq!(open.iter().map(|row| row.bytes).collect::<Vec<_>>(), [4096]);
        assert!(!run.missing.iter().any(|missing| missing.contains("unattributed")), "{:?}", run.missing);
        assert!(driver.calls_of("synchronize").is_empty());
        let (made, destroyed, retained) = driver.balance();
        assert_eq!((made, retained), (destroyed, 0));
    });
}

/// A kernel of the third step has faulted: neither the driver nor libtorch says anything of the device any more.
#[test]
fn a_device_that_is_lost_costs_no_row_and_the_run_is_closed() {
    on_the_double(&path("a_device_that_is_lost_costs_no_row_and_the_run_is_closed"), |driver| {
        const LAUNCH_FAILED: i32 = 719;
        let mut gpu = Gpu::new(driver);
        let kept = Kept::default();
        let options = Options::new("doubles").device(GPU).flush_every(1);
        let mut probe = Probe::start(options, kept.clone()).unwrap();
        (0..2).for_each(|_| gpu.step(&mut probe));
        gpu.allocator.lose();
        driver.fail("cuEventQuery", LAUNCH_FAILED, 0);
        (2..5).for_each(|_| gpu.step(&mut probe));
        probe.finish().unwrap();
        driver.fail("", 0, 0);
        assert_eq!(kept.steps(), [0, 1, 2, 3, 4]);
        for step in 0..5 {
            let row = kept.step(step).step;
            assert_eq!(row.non_torch_bytes, (step < 2).then_some(100 << 20), "step {step}");
            assert!(row.rounding_bytes.is_some() && row.cached_bytes.is_some(), "step {step}");
            assert_eq!(row.difference_bytes, Some(0), "step {step}");
        }
        let (run, _) = kept.end();
        assert_eq!(run.status, RunStatus::Complete);
        let of = |words: &str| run.missing.iter().filter(|line| line.contains(words)).collect::<Vec<_>>();
        let [memory] = of("non_torch_bytes: ")[..] else { panic!("{:?}", run.missing) };
        assert!(memory.contains("at step 2") && memory.ends_with("unspecified launch failure"), "{memory}");
        assert_eq!(of("the device was not timed").len(), 1, "{:?}", run.missing);
    });
}

/// cuBLAS has a handle, and a workspace, for each thread: backward's is lent in backward, on a thread of its own.
#[test]
fn what_backwards_own_thread_lends_to_cublas_is_explained() {
    on_the_double(&path("what_backwards_own_thread_lends_to_cublas_is_explained"), |driver| {
        const WORKSPACE: usize = 32 << 20;
        let mut gpu = Gpu::new(driver);
        let kept = Kept::default();
        let mut probe = Probe::start(Options::new("doubles").device(GPU), kept.clone()).unwrap();
        let mut step = probe.step();
        step.forward(|| gpu.allocator.lend(gpu.allocator.give(WORKSPACE)));
        let on_its_thread = || gpu.allocator.give(WORKSPACE);
        let lent = step.backward(|| std::thread::scope(|scope| scope.spawn(on_its_thread).join().unwrap()));
        gpu.allocator.lend(lent);
        step.finish(None, None).unwrap();
        gpu.step(&mut probe);
        probe.finish().unwrap();
        for step in 0..2 {
            let records = kept.step(step);
            assert_eq!(
                at(&records, Moment::BackwardEnd, Category::Workspace),
                2 * WORKSPACE as i64 + 24 * step as i64
            );
            assert_eq!(at(&records, Moment::BackwardEnd, Category::Gradient), 0);
        }
        let (_, open) = kept.end();
        let lent: Vec<_> = open.iter().filter(|row| row.detail == Some(Detail::LibraryWorkspace)).collect();
        assert_eq!(
            lent.iter().map(|row| (row.bytes, row.name.as_deref())).collect::<Vec<_>>(),
            [(WORKSPACE as i64, Some("cublas")), (WORKSPACE as i64, Some("cublas")),]
        );
        gpu.allocator.lend(0);
    });
}

/// A loop of one's own that seeds first, on a libtorch whose CUDA half is not loaded yet: told, not "no GPU".
#[test]
fn a_seed_before_the_probe_is_told_with_the_way_out() {
    const TOLD: &str = "STEPLEDGER_SEED_FIRST";
    if std::env::var_os(TOLD).is_some() {
        tch::manual_seed(1);
        let error = Probe::start(Options::new("own_loop").device(GPU), Kept::default()).err().unwrap();
        assert!(matches!(error, ProbeError::Hook(_)));
        for words in ["tch::manual_seed", "start the probe first", "load_cuda"] {
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
        return;
    }
    let test = path("a_seed_before_the_probe_is_told_with_the_way_out");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([&test, "--exact", "--nocapture", "--test-threads", "1"]).env(TOLD, "1");
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the test's name: {said}");
}
