//! The account over streams made by hand: what is known of them is known from outside.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Event, Filing, Identity, Ledger, NodeTime, Site, SiteNames, StepAccount, flag, kind};
use crate::record::{Category, Detail, MANY_LIFETIMES, Moment, Phase};

/// Writes a stream as the hook would: numbers, totals and instants come by themselves.
#[derive(Default)]
struct Stream {
    events: Vec<Event>,
    now_ns: i64,
    total_bytes: i64,
    next_id: u64,
    sizes: std::collections::HashMap<u64, i64>,
}

impl Stream {
    fn push(&mut self, kind: u8, id: u64, bytes: i64, thread: u16, flags: u8) {
        self.now_ns += 10;
        let Stream { now_ns: at_ns, total_bytes, .. } = *self;
        let site = Site::new(7, 3);
        self.events.push(Event { at_ns, id, bytes, total_bytes, site, thread, kind, flags });
    }

    fn alloc_on(&mut self, bytes: i64, thread: u16, flags: u8) -> u64 {
        self.next_id += 1;
        self.total_bytes += bytes;
        self.sizes.insert(self.next_id, bytes);
        self.push(kind::ALLOC, self.next_id, bytes, thread, flags);
        self.next_id
    }

    fn alloc(&mut self, bytes: i64) -> u64 {
        self.alloc_on(bytes, 0, 0)
    }

    fn free(&mut self, id: u64) {
        let bytes = self.sizes[&id];
        self.total_bytes -= bytes;
        self.push(kind::FREE, id, bytes, 0, 0);
    }

    fn mark(&mut self, kind: u8, payload: u64) {
        self.push(kind, payload, 0, 0, 0);
    }

    fn step(&mut self, number: u64, work: impl FnOnce(&mut Self)) {
        self.mark(kind::STEP_BEGIN, number);
        work(self);
        self.mark(kind::STEP_END, number);
    }

    fn phase<T>(&mut self, phase: Phase, work: impl FnOnce(&mut Self) -> T) -> T {
        self.mark(kind::PHASE_BEGIN, phase as u64);
        let made = work(self);
        self.mark(kind::PHASE_END, phase as u64);
        made
    }

    fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }
}

fn ledger() -> Ledger {
    Ledger::new(0, 0, 1)
}

fn file(ledger: &mut Ledger, stream: &mut Stream, identities: &[Identity]) -> StepAccount {
    ledger.file(&stream.take(), identities, &Names)
}

struct Names;

impl SiteNames for Names {
    fn scope(&self, number: u32) -> Option<Arc<str>> {
        Some(format!("scope {number}").into())
    }

    fn op(&self, number: u32) -> Option<Arc<str>> {
        Some(format!("op {number}").into())
    }
}

fn identity(id: u64, category: Category, name: &str) -> Identity {
    Identity { id, filing: Filing::plain(category), name: name.into() }
}

fn bytes_at(account: &StepAccount, moment: Moment, category: Category) -> i64 {
    account.moments.iter().find(|row| row.moment == moment).unwrap().bytes[category]
}

/// A step with every category: parameter 100 (with gradient), activation 40, temporary 7, output 4, state 200.
fn whole_step(stream: &mut Stream) -> (u64, u64) {
    let parameter = stream.alloc(100);
    let mut gradient = 0;
    stream.step(0, |stream| {
        stream.phase(Phase::Dataloader, |stream| stream.alloc(16));
        let (activation, loss) = stream.phase(Phase::Forward, |stream| {
            let activation = stream.alloc(40);
            let temporary = stream.alloc(7);
            stream.free(temporary);
            (activation, stream.alloc(4))
        });
        gradient = stream.phase(Phase::Backward, |stream| {
            let of_activation = stream.alloc(40);
            stream.free(activation);
            let gradient = stream.alloc(100);
            stream.free(of_activation);
            gradient
        });
        stream.phase(Phase::Optimizer, |stream| stream.alloc(200));
        stream.free(loss);
    });
    (parameter, gradient)
}

#[test]
fn a_whole_step_is_filed() {
    let mut stream = Stream::default();
    let (parameter, gradient) = whole_step(&mut stream);
    let identities =
        [identity(gradient, Category::Gradient, "w"), identity(parameter, Category::Parameter, "w")];
    let account = file(&mut ledger(), &mut stream, &identities);
    let at = |moment, category| bytes_at(&account, moment, category);
    assert_eq!(at(Moment::ForwardEnd, Category::Parameter), 100);
    assert_eq!(at(Moment::ForwardEnd, Category::Activation), 40);
    assert_eq!(at(Moment::ForwardEnd, Category::Input), 16);
    assert_eq!(at(Moment::ForwardEnd, Category::Workspace), 4);
    assert_eq!(at(Moment::PeakForward, Category::Workspace), 7);
    assert_eq!(at(Moment::BackwardEnd, Category::Gradient), 100);
    assert_eq!(at(Moment::BackwardEnd, Category::Activation), 0);
    assert_eq!(at(Moment::OptimizerEnd, Category::AdamState), 200);
    // 100 + 16 + 4 + 100 + 200: the states come when the activations have gone.
    assert_eq!((account.peak_bytes, account.peak_phase), (420, Some(Phase::Optimizer)));
    assert_eq!(account.difference_bytes, 0);
    assert!(account.moments.iter().all(|moment| moment.bytes[Category::Unattributed] == 0));
}

#[test]
fn lifetimes_end_once_and_the_rest_stays_open() {
    let mut stream = Stream::default();
    let (parameter, gradient) = whole_step(&mut stream);
    let mut ledger = ledger();
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!(account.ended.iter().map(|row| row.bytes).collect::<Vec<_>>(), [40, 7, 4, 40]);
    let details: Vec<_> = account.ended.iter().map(|row| row.detail).collect();
    let temporaries = [Detail::ForwardTemporary, Detail::Output, Detail::ActivationGradient].map(Some);
    assert_eq!(details, [[None].as_slice(), &temporaries].concat());
    let open: Vec<_> = ledger.open().iter().map(|row| row.id as u64).collect();
    assert_eq!((open.len(), open[0], open.contains(&gradient)), (4, parameter, true));
    // The next step frees the gradient: its lifetime is told then.
    stream.step(1, |stream| stream.free(gradient));
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!((account.ended.len(), account.ended[0].id as u64), (1, gradient));
    assert_eq!(account.ended[0].freed_step, Some(1));
}

#[test]
fn a_loaders_blocks_are_input_wherever_the_step_is() {
    let mut stream = Stream::default();
    let mut batch = 0;
    stream.step(0, |stream| {
        stream.phase(Phase::Forward, |stream| {
            batch = stream.alloc_on(64, 3, flag::LOADER);
        });
    });
    stream.step(1, |stream| stream.free(batch));
    let mut ledger = ledger();
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!(account.ended[0].category, Category::Input);
}

#[test]
fn what_was_alive_before_is_held_and_its_end_is_understood() {
    let mut ledger = Ledger::new(0, 500, 10);
    let mut stream = Stream { total_bytes: 500, next_id: 20, ..Stream::default() };
    stream.sizes.insert(4, 300);
    stream.step(0, |stream| stream.phase(Phase::Forward, |stream| stream.free(4)));
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!(bytes_at(&account, Moment::ForwardEnd, Category::Workspace), 200);
    assert_eq!(account.difference_bytes, 0);
}

#[test]
fn lost_events_show_as_unattributed_bytes() {
    let mut stream = Stream::default();
    stream.step(0, |stream| {
        stream.phase(Phase::Forward, |stream| {
            stream.alloc(30);
            stream.events.pop(); // the birth did not fit the buffer
            stream.alloc(5);
        });
    });
    let account = file(&mut ledger(), &mut stream, &[]);
    assert_eq!(account.difference_bytes, 30);
    assert_eq!(bytes_at(&account, Moment::ForwardEnd, Category::Unattributed), 30);
    let moment = account.moments[0];
    assert_eq!(moment.bytes.total(), moment.allocator_bytes);
}

#[test]
fn a_block_that_turns_out_to_be_a_variable_moves_its_bytes() {
    let mut stream = Stream::default();
    let data = stream.alloc(50);
    stream.step(0, |_| {});
    let mut ledger = ledger();
    file(&mut ledger, &mut stream, &[]);
    stream.step(1, |stream| stream.phase(Phase::Forward, |_| ()));
    let account = file(&mut ledger, &mut stream, &[identity(data, Category::Parameter, "w")]);
    assert_eq!(bytes_at(&account, Moment::ForwardEnd, Category::Parameter), 50);
    assert_eq!(bytes_at(&account, Moment::ForwardEnd, Category::Workspace), 0);
    let name: Arc<str> = "w".into();
    assert_eq!(ledger.open()[0].name, Some(name));
}

#[test]
fn the_last_forward_of_several_gives_the_moment() {
    let mut stream = Stream::default();
    stream.step(0, |stream| {
        for bytes in [10, 20] {
            let made = stream.phase(Phase::Forward, |stream| stream.alloc(bytes));
            stream.phase(Phase::Backward, |stream| stream.free(made));
        }
    });
    let account = file(&mut ledger(), &mut stream, &[]);
    assert_eq!(bytes_at(&account, Moment::ForwardEnd, Category::Activation), 20);
}

#[test]
fn a_validation_pass_is_filed_by_itself_and_leaves_the_steps_peak_alone() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    stream.step(0, |stream| stream.phase(Phase::Forward, |_| ()));
    file(&mut ledger, &mut stream, &[]);
    stream.phase(Phase::Validation, |stream| {
        let logits = stream.alloc(1000);
        stream.free(logits);
    });
    let between = file(&mut ledger, &mut stream, &[]);
    let details: Vec<_> = between.ended.iter().map(|row| (row.step, row.phase, row.detail)).collect();
    assert_eq!(details, [(None, Some(Phase::Validation), Some(Detail::ValidationTemporary))]);
    let moments: Vec<_> =
        between.moments.iter().map(|row| (row.step, row.moment, row.bytes.total())).collect();
    assert_eq!(moments, [(1, Moment::PeakValidation, 1000)]);
    stream.step(1, |stream| {
        stream.phase(Phase::Forward, |stream| stream.alloc(10));
    });
    let next = file(&mut ledger, &mut stream, &[]);
    assert_eq!((next.peak_bytes, next.peak_phase), (10, Some(Phase::Forward)));
}

#[test]
fn a_step_that_runs_out_of_memory_says_what_was_alive_then() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    stream.mark(kind::STEP_BEGIN, 0);
    stream.mark(kind::PHASE_BEGIN, Phase::Forward as u64);
    let temporary = stream.alloc(7);
    stream.free(temporary);
    let kept = stream.alloc(40);
    stream.push(kind::ALLOC_FAILED, 0, 5000, 0, 0);
    // The error goes up, and frees what forward had kept.
    stream.free(kept);
    stream.mark(kind::PHASE_END, Phase::Forward as u64);
    stream.mark(kind::STEP_LEFT, 0);
    let account = file(&mut ledger, &mut stream, &[]);
    let failed = account.failed.as_ref().unwrap();
    assert_eq!((failed.asked_bytes, failed.step, failed.phase), (5000, Some(0), Some(Phase::Forward)));
    assert_eq!((failed.scope.as_deref(), failed.op.as_deref()), (Some("scope 7"), Some("op 3")));
    assert_eq!(bytes_at(&account, Moment::OutOfMemory, Category::Activation), 40);
    let filed: Vec<_> = account.ended.iter().map(|row| (row.category, row.detail)).collect();
    let temporary = (Category::Workspace, Some(Detail::ForwardTemporary));
    assert_eq!(filed, [temporary, (Category::Activation, None)]);
}

/// Its end came first, and then what it takes to record it failed.
#[test]
fn a_step_that_is_left_behind_its_end_has_its_events_for_itself() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    let work = |stream: &mut Stream| {
        let made = stream.alloc(40);
        stream.free(made);
    };
    stream.step(0, |stream| stream.phase(Phase::Forward, work));
    stream.mark(kind::STEP_LEFT, 0);
    let left = file(&mut ledger, &mut stream, &[]);
    stream.step(1, |stream| stream.phase(Phase::Forward, work));
    let next = file(&mut ledger, &mut stream, &[]);
    for (account, step) in [(&left, 0), (&next, 1)] {
        assert_eq!((account.events, account.difference_bytes), (2, 0), "step {step}");
        assert!(account.moments.iter().all(|row| row.step == step), "{:?}", account.moments);
        assert_eq!(account.ended.iter().map(|row| row.step).collect::<Vec<_>>(), [Some(step)]);
    }
}

#[test]
fn an_error_that_was_caught_changes_no_filing() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    stream.step(0, |stream| {
        stream.phase(Phase::Forward, |stream| {
            let kept = stream.alloc(40);
            stream.push(kind::ALLOC_FAILED, 0, 5000, 0, 0);
            stream.free(kept);
        });
    });
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!(account.ended[0].detail, Some(Detail::ForwardTemporary));
    assert_eq!(bytes_at(&account, Moment::OutOfMemory, Category::Workspace), 40);
}

#[test]
fn backward_nodes_add_up_by_scope_and_scratch_is_told_apart() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    stream.step(0, |stream| {
        stream.phase(Phase::Backward, |stream| {
            let scratch = stream.alloc(64);
            stream.total_bytes -= 64;
            stream.push(kind::FREE, scratch, 64, 0, flag::IN_OP);
            for ns in [100, 50] {
                stream.push(kind::NODE, 0, ns, 0, 0);
            }
        });
    });
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!(account.backward, [(7, NodeTime { calls: 2, total_ns: 150 })].into());
    assert_eq!(account.ended[0].detail, Some(Detail::KernelScratch));
    assert_eq!(account.difference_bytes, 0);
}

#[test]
fn numbers_far_from_the_others_are_found_too() {
    let (mut ledger, mut stream) = (ledger(), Stream { next_id: 5000, ..Stream::default() });
    stream.step(0, |stream| {
        stream.alloc(1);
        stream.next_id = 1 << 40;
        let far = stream.alloc(2);
        stream.next_id = 10;
        let early = stream.alloc(4);
        stream.free(far);
        stream.free(early);
    });
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!(account.ended.iter().map(|row| row.bytes).collect::<Vec<_>>(), [2, 4]);
    assert_eq!((account.difference_bytes, ledger.open().len()), (0, 1));
}

/// Late writers: the index reaches past a number that was too far off when it came.
#[test]
fn a_number_that_was_far_off_is_found_when_the_others_have_come_near() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    stream.step(0, |stream| {
        let mut numbered = |id: u64| {
            stream.next_id = id - 1;
            stream.alloc(8)
        };
        let made = [1_000, 151_000, 51_000, 151_010].map(&mut numbered);
        made.into_iter().for_each(|id| stream.free(id));
    });
    let account = file(&mut ledger, &mut stream, &[]);
    assert_eq!((account.ended.len(), account.difference_bytes, ledger.open().len()), (4, 0, 0));
}

/// Those who lent it see its pages again, and none of what was in it.
#[test]
fn many_lifetimes_are_told_in_the_room_that_was_lent() {
    let (mut ledger, mut stream) = (ledger(), Stream::default());
    let mut told = |number: u64, blocks: usize, ledger: &mut Ledger| {
        stream.step(number, |stream| {
            let made: Vec<_> = (0..blocks).map(|_| stream.alloc(8)).collect();
            made.into_iter().for_each(|id| stream.free(id));
        });
        file(ledger, &mut stream, &[]).ended
    };
    let first = told(0, MANY_LIFETIMES, &mut ledger);
    let place = first.as_ptr();
    ledger.lend(first);
    let few = told(1, 10, &mut ledger);
    assert!((few.len(), few.capacity() < MANY_LIFETIMES) == (10, true), "few need no such room");
    let again = told(2, MANY_LIFETIMES, &mut ledger);
    assert_eq!((again.as_ptr(), again.len()), (place, MANY_LIFETIMES));
    assert!(again.iter().all(|row| row.step == Some(2)));
}

/// What a random step does next.
#[derive(Debug, Clone)]
enum Deed {
    Alloc(i64, bool),
    Free(usize),
    Phase(usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        4 => (1i64..1000, any::<bool>()).prop_map(|(bytes, loader)| Deed::Alloc(bytes, loader)),
        3 => any::<usize>().prop_map(Deed::Free),
        1 => (0..Phase::ALL.len() - 1).prop_map(Deed::Phase),
    ];
    proptest::collection::vec(deed, 0..200)
}

proptest! {
    /// At every moment of any stream the categories add up to the allocator's own total, nothing is
    /// unattributed but survivors of backward, and every lifetime is told exactly once.
    #[test]
    fn bytes_are_conserved_whatever_happens(steps in proptest::collection::vec(deeds(), 1..5)) {
        let (mut ledger, mut stream) = (ledger(), Stream::default());
        let (mut alive, mut born, mut told): (Vec<u64>, usize, usize) = (Vec::new(), 0, 0);
        for (number, deeds) in steps.into_iter().enumerate() {
            stream.step(number as u64, |stream| {
                let mut running: Option<usize> = None;
                for deed in deeds {
                    match deed {
                        Deed::Alloc(bytes, loader) => {
                            born += 1;
                            let flags = if loader { flag::LOADER } else { 0 };
                            alive.push(stream.alloc_on(bytes, u16::from(loader), flags));
                        }
                        Deed::Free(which) if !alive.is_empty() => {
                            let id = alive.swap_remove(which % alive.len());
                            stream.free(id);
                        }
                        Deed::Free(_) => {}
                        Deed::Phase(phase) => {
                            if let Some(last) = running.replace(phase) {
                                stream.mark(kind::PHASE_END, last as u64);
                            }
                            stream.mark(kind::PHASE_BEGIN, phase as u64);
                        }
                    }
                }
                if let Some(last) = running {
                    stream.mark(kind::PHASE_END, last as u64);
                }
            });
            let account = file(&mut ledger, &mut stream, &[]);
            prop_assert_eq!(account.difference_bytes, 0);
            for moment in &account.moments {
                prop_assert_eq!(moment.bytes.total(), moment.allocator_bytes);
                prop_assert_eq!(moment.bytes[Category::Unattributed], 0);
                prop_assert!(moment.bytes.iter().all(|(_, bytes)| bytes >= 0));
            }
            told += account.ended.len();
        }
        let open = ledger.open();
        prop_assert_eq!(told + open.len(), born);
        prop_assert_eq!(open.iter().map(|row| row.bytes).sum::<i64>(), stream.total_bytes);
    }
}
