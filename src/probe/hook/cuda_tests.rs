//! The watch on CUDA's caching allocator, against a double of it: there is no GPU here, and nothing it says is a
//! measurement.

use std::sync::Arc;

use tch::Device;

use super::double::Double;
use super::{Beside, Hook, Watch};
use crate::ledger::{Filing, Identity, Ledger, SiteNames, StepAccount, kind};
use crate::probe::watched;
use crate::record::{Category, Detail, Moment, Phase};

struct Nameless;

impl SiteNames for Nameless {
    fn scope(&self, _: u32) -> Option<Arc<str>> {
        None
    }

    fn op(&self, _: u32) -> Option<Arc<str>> {
        None
    }
}

/// Runs `work` in a step's forward, under an account that begins with what is alive already.
fn step(hook: &Hook, ledger: &mut Ledger, number: u64, work: impl FnOnce()) -> StepAccount {
    hook.mark(kind::STEP_BEGIN, number);
    in_phase(hook, Phase::Forward, work);
    hook.mark(kind::STEP_END, number);
    file(hook, ledger, &[])
}

fn in_phase<T>(hook: &Hook, phase: Phase, work: impl FnOnce() -> T) -> T {
    hook.mark(kind::PHASE_BEGIN, phase as u64);
    let made = work();
    hook.mark(kind::PHASE_END, phase as u64);
    made
}

fn file(hook: &Hook, ledger: &mut Ledger, identities: &[Identity]) -> StepAccount {
    let mut events = Vec::new();
    hook.stream.drain(&mut events);
    ledger.file(&events, identities, &Nameless)
}

fn at(account: &StepAccount, moment: Moment) -> (i64, i64, i64) {
    let row = account.moments.iter().find(|row| row.moment == moment).unwrap();
    (row.bytes.total(), row.allocator_bytes, row.bytes[Category::Unattributed])
}

/// One test, since the process has one caching allocator and one hook.
#[test]
fn the_caching_allocators_account_is_exact_to_its_own_total() {
    let double = Double::install();
    let before = double.give(1000);
    double.set_fraction(0.75);
    let limit = 1 << 20;
    let hook = Hook::start(Watch { device: Device::Cuda(0), limit_bytes: Some(limit), ops: false }).unwrap();
    assert!((double.fraction() * f64::from(1 << 30) - limit as f64).abs() < 1.0);
    let (held, first_id) = hook.stream.begin_account();
    assert_eq!(held, 1024);
    let mut ledger = Ledger::new(0, held, first_id);

    // Three blocks: one freed before its size could be known, one with rounding, one without.
    let mut kept = 0;
    let account = step(&hook, &mut ledger, 0, || {
        let brief = double.give(700);
        double.take(brief);
        kept = double.give(100);
        let exact = double.give(2048);
        double.take(exact);
    });
    assert_eq!(at(&account, Moment::ForwardEnd), (1024 + 512, 1024 + 512, 0));
    assert_eq!(account.difference_bytes, 0);
    assert_eq!(account.peak_bytes, 1024 + 512 + 2048);
    let rounding: Vec<_> = account.ended.iter().filter(|row| row.detail == Some(Detail::Rounding)).collect();
    assert_eq!(rounding.iter().map(|row| row.bytes).collect::<Vec<_>>(), [1024 - 700]);
    assert!(account.ended.iter().any(|row| row.bytes == 700), "what was asked for, not what was given");

    // Beside the account: what is reserved in no block, and what others use.
    let cached_bytes = 1024 + 512 + 2048 - double.allocated();
    for non_torch_bytes in [None, Some(100 << 20)] {
        let asked = double.asked_for_free();
        let beside = hook.beside(non_torch_bytes.is_some()).unwrap().unwrap();
        assert_eq!(beside, Beside { rounding_bytes: 512 - 100, cached_bytes, non_torch_bytes });
        assert_eq!(double.asked_for_free() - asked, usize::from(non_torch_bytes.is_some()));
    }

    // A block from before the watch, and a request beyond the limit.
    let account = step(&hook, &mut ledger, 1, || {
        double.take(before);
        double.take(kept);
        assert_eq!(double.give(2 << 20), 0);
    });
    assert_eq!(at(&account, Moment::ForwardEnd), (0, 0, 0));
    assert_eq!((account.difference_bytes, double.allocated()), (0, 0));
    assert_eq!(account.failed.as_ref().map(|failed| failed.asked_bytes), Some(2 << 20));

    drop(hook);
    assert_eq!(double.fraction(), 0.75, "the program's own share, again");
    // What happens after the watch is nobody's.
    double.take(double.give(64));
    what_cublas_is_lent_is_no_gradient(&double);
}

/// Forward's handle and that of backward's own thread have a workspace each, which stays for good.
fn what_cublas_is_lent_is_no_gradient(double: &Double) {
    const WORKSPACE: usize = 32 << 20;
    let hook = Hook::start(Watch { device: Device::Cuda(0), limit_bytes: None, ops: false }).unwrap();
    assert_eq!(double.fraction(), 0.75, "no limit of ours");
    let (held, first_id) = hook.stream.begin_account();
    let mut ledger = Ledger::new(0, held, first_id);
    hook.mark(kind::STEP_BEGIN, 0);
    let forwards = in_phase(&hook, Phase::Forward, || double.give(WORKSPACE));
    let (backwards, gradient) = in_phase(&hook, Phase::Backward, || {
        let on_its_thread = || (double.give(WORKSPACE), double.give(1024));
        std::thread::scope(|scope| scope.spawn(on_its_thread).join().unwrap())
    });
    assert_eq!(watched::library_workspaces().unwrap().len(), 0);
    [forwards, backwards].iter().for_each(|&address| double.lend(address));
    let mut known = watched::library_workspaces().unwrap();
    assert_eq!(known.len(), 2);
    let id = known.iter().map(|known| known.id).max().unwrap() + 1;
    known.push(Identity { id, filing: Filing::plain(Category::Gradient), name: "weight".into() });
    hook.mark(kind::STEP_END, 0);
    let account = file(&hook, &mut ledger, &known);
    assert_eq!(account.difference_bytes, 0);
    for row in &account.moments {
        assert_eq!(row.bytes[Category::Unattributed], 0, "{row:?}");
    }
    let open: Vec<_> = ledger.open().iter().map(|row| (row.bytes, row.category, row.detail)).collect();
    let lent = (WORKSPACE as i64, Category::Workspace, Some(Detail::LibraryWorkspace));
    assert_eq!(open, [lent, lent, (1024, Category::Gradient, None)]);
    double.lend(0);
    [forwards, backwards, gradient].iter().for_each(|&address| double.take(address));
}
