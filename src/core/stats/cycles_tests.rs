//! What the time of a step comes to in loops whose every instant is made up.

use proptest::prelude::*;

use super::{Cycles, StepSpan};

/// One step of a loop, in any unit.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// What the host takes to hand the step over.
    host: i64,
    /// What the device then has to do.
    device: i64,
    /// Whether the host waits for that,
    waits: bool,
    /// and what it gives the device after it: an optimizer, whose launch takes no time.
    after: i64,
    /// What the loop does then: a validation pass, the observer's filing.
    between: i64,
}

const BOUND_BY_DEVICE: Turn = Turn { host: 2, device: 6, waits: true, after: 4, between: 0 };

/// The steps of a loop, and when the device was through with each.
fn steps(turns: &[Turn]) -> Vec<(StepSpan, i64)> {
    let (mut now, mut through) = (0, 0);
    let step = |(number, turn): (usize, &Turn)| {
        let begin_ns = now;
        now += turn.host;
        through = through.max(now) + turn.device;
        now = if turn.waits { now.max(through) } else { now };
        through = through.max(now) + turn.after;
        let span = StepSpan {
            step: number as i64,
            warmup: false,
            beside_host: true,
            waited: turn.waits,
            begin_ns,
            wall_ns: now - begin_ns,
            lead_ns: Some(through - now),
            updated: None,
            between_ns: 0,
        };
        now += turn.between;
        (span, through)
    };
    turns.iter().enumerate().map(step).collect()
}

fn spans(turns: &[Turn]) -> Vec<StepSpan> {
    steps(turns).into_iter().map(|(span, _)| span).collect()
}

/// Of each cycle, the time of its steps together.
fn times(spans: &[StepSpan]) -> Vec<i64> {
    let cycles = Cycles::of(spans);
    let places: Vec<usize> = cycles.places().collect();
    places
        .chunks(cycles.length.max(1))
        .map(|cycle| cycle.iter().map(|&at| cycles.time_ns(at)).sum())
        .collect()
}

fn without_leads(turns: &[Turn]) -> Vec<StepSpan> {
    spans(turns).into_iter().map(|span| StepSpan { lead_ns: None, ..span }).collect()
}

/// A step of 10 is followed by a pass of 50, in which the device has long been through.
#[test]
fn what_a_loop_does_between_its_steps_is_none_of_their_time() {
    let validated = [Turn { host: 4, between: 50, ..BOUND_BY_DEVICE }; 5];
    assert_eq!(times(&spans(&validated)), [14; 5]);
    assert_eq!(times(&without_leads(&validated)), [60, 60, 60, 60, 10], "as long as it can have been");
    let known = |span: StepSpan| StepSpan { between_ns: 46, ..span };
    let spans: Vec<StepSpan> = without_leads(&validated).into_iter().map(known).collect();
    assert_eq!(times(&spans), [14, 14, 14, 14, 10]);
}

/// The next step hands over in 2 while the device is still at the optimizer for 4.
#[test]
fn an_optimizer_that_runs_on_after_a_step_is_part_of_its_time() {
    let turns = [BOUND_BY_DEVICE; 5];
    assert_eq!(times(&spans(&turns)), [8, 10, 10, 10, 14], "the last one until the device is through, too");
    assert_eq!(times(&without_leads(&turns))[..4], [8, 10, 10, 10]);
    let alone = |spans: &[StepSpan], place| Cycles::alone(spans, place).time_ns(place);
    assert_eq!((alone(&spans(&turns), 2), alone(&spans(&turns), 4)), (10, 14));
    // The host has something else to do meanwhile, and no more than that.
    let turns = [Turn { between: 3, ..BOUND_BY_DEVICE }; 5];
    assert_eq!(times(&spans(&turns)), [11, 11, 11, 11, 12]);
    assert_eq!(times(&without_leads(&turns)), [11, 11, 11, 11, 8]);
}

#[test]
fn of_a_host_that_is_slow_the_steps_are_timed_and_not_what_lies_between() {
    let slow = Turn { host: 9, device: 1, waits: true, after: 0, between: 7 };
    assert_eq!(times(&spans(&[slow; 3])), [10; 3]);
    let cycle = [Turn { waits: false, ..slow }, Turn { waits: false, ..slow }, slow];
    assert_eq!(times(&spans(&cycle.repeat(2))), [30, 30]);
    assert_eq!(times(&without_leads(&cycle.repeat(2))), [49, 42]);
}

/// In a cycle the device is at work all the time, whatever the host does meanwhile.
#[test]
fn of_a_device_that_is_behind_a_cycle_goes_from_one_wait_to_the_next() {
    let ahead = Turn { host: 1, device: 10, waits: false, after: 0, between: 2 };
    let cycle = [ahead, ahead, ahead, Turn { waits: true, between: 0, ..ahead }];
    let turns = cycle.repeat(3);
    for spans in [spans(&turns), without_leads(&turns)] {
        assert_eq!(times(&spans), [41; 3]);
    }
}

/// Steps of 1, with an optimizer that takes 6 in those that it runs in.
fn micro_steps(count: i64, updated: impl Fn(i64) -> bool) -> Vec<StepSpan> {
    let step = |step: i64| StepSpan {
        step,
        warmup: step < 2,
        beside_host: false,
        waited: true,
        begin_ns: 10 * step,
        wall_ns: if updated(step) { 7 } else { 1 },
        lead_ns: None,
        updated: Some(updated(step)),
        between_ns: 0,
    };
    (0..count).map(step).collect()
}

#[test]
fn a_cycle_goes_from_one_optimizer_to_the_next_where_most_steps_have_none() {
    let told = |spans: &[StepSpan]| {
        let Cycles { length, accumulates, uneven_steps, .. } = Cycles::of(spans);
        (length, accumulates, uneven_steps, times(spans))
    };
    let every_fourth = |step| step % 4 == 3;
    // The first cycle begins within the warm-up, the last one is not at its end.
    assert_eq!(told(&micro_steps(15, every_fourth)), (4, true, 0, vec![10, 10]));
    assert_eq!(told(&micro_steps(16, every_fourth)), (4, true, 0, vec![10, 10, 10]));
    // One that was left out makes a long cycle, one that came early two short ones.
    assert_eq!(told(&micro_steps(24, |step| every_fourth(step) && step != 11)), (4, true, 8, vec![10; 3]));
    assert_eq!(told(&micro_steps(24, |step| every_fourth(step) || step == 13)), (4, true, 4, vec![10; 4]));
    // In every step, in none, or nobody knows.
    for updated in [true, false] {
        assert_eq!(told(&micro_steps(4, |_| updated)), (1, false, 0, vec![if updated { 7 } else { 1 }; 2]));
    }
    let unknown = |span| StepSpan { updated: None, ..span };
    let unknown: Vec<StepSpan> = micro_steps(4, every_fourth).into_iter().map(unknown).collect();
    assert_eq!(told(&unknown), (1, false, 0, vec![1, 7]));
}

#[test]
fn a_cycle_of_accumulation_that_lacks_a_step_is_not_whole() {
    let mut spans = micro_steps(24, |step| step % 4 == 3);
    spans.retain(|span| span.step != 10);
    assert_eq!(times(&spans), [10; 4], "of the five that lie within the measured steps");
    spans.retain(|span| span.step != 11);
    assert_eq!(times(&spans), [10; 3], "whether the missing one ended a cycle is not known");
}

/// Of a device that is waited for in steps of which the optimizer runs in others.
fn accumulating(count: usize, waits: impl Fn(usize) -> bool, updated: impl Fn(i64) -> bool) -> Vec<StepSpan> {
    let turns: Vec<Turn> = (0..count).map(|at| Turn { waits: waits(at), ..BOUND_BY_DEVICE }).collect();
    let mut spans = spans(&turns);
    spans.iter_mut().for_each(|span| span.updated = Some(updated(span.step)));
    spans
}

fn lengths(spans: &[StepSpan]) -> (usize, usize, Option<f64>) {
    let cycles = Cycles::of(spans);
    (cycles.length, cycles.count(), cycles.steps_per_update())
}

#[test]
fn a_cycle_of_accumulation_is_whole_when_the_device_was_waited_for() {
    // The host waits in every third step, the optimizer runs in every second: both in every sixth.
    let spans = accumulating(19, |at| at % 3 == 2, |step| step % 2 == 1);
    assert_eq!(lengths(&spans), (6, 3, Some(2.0)));
    // They never meet: from a wait to the next that lies as many steps behind the optimizer.
    let spans = accumulating(400, |at| at % 10 == 0, |step| step % 4 == 3);
    assert_eq!(lengths(&spans), (20, 19, Some(4.0)));
    let spans = accumulating(400, |at| at % 4 == 1, |step| step % 4 == 3);
    assert_eq!(lengths(&spans), (4, 99, Some(4.0)));
}

/// A loop that reads its loss in each of its first steps, and in every fiftieth then.
#[test]
fn the_cycles_that_hold_the_most_steps_tell() {
    let turns = |at: usize| Turn { waits: at <= 10 || at.is_multiple_of(50), ..BOUND_BY_DEVICE };
    let cycles = Cycles::of(&spans(&(0..301).map(turns).collect::<Vec<_>>()));
    assert_eq!((cycles.length, cycles.count(), cycles.uneven_steps), (50, 5, 11 + 40));
}

#[test]
fn a_run_of_no_rhythm_has_no_cycle() {
    // Longer and longer.
    let at_squares = |step: i64| (0..20).any(|n| n * n + 1 == step);
    let cycles = Cycles::of(&micro_steps(300, at_squares));
    assert_eq!((cycles.count(), cycles.length), (0, 0));
    assert!(cycles.uneven_steps > 200, "{}", cycles.uneven_steps);
    let waits =
        spans(&(0..300).map(|at| Turn { waits: at_squares(at), ..BOUND_BY_DEVICE }).collect::<Vec<_>>());
    assert_eq!(Cycles::of(&waits).count(), 0);
}

fn turn() -> impl Strategy<Value = Turn> {
    (0..20_i64, 0..20_i64, prop::bool::weighted(0.4), 0..10_i64, 0..20_i64)
        .prop_map(|(host, device, waits, after, between)| Turn { host, device, waits, after, between })
}

proptest! {
    /// By definition: one instant after the other.
    #[test]
    fn a_cycle_takes_as_long_as_a_step_of_it_is_under_way(turns in prop::collection::vec(turn(), 1..30)) {
        let steps = steps(&turns);
        let spans: Vec<StepSpan> = steps.iter().map(|(span, _)| *span).collect();
        let cycles = Cycles::of(&spans);
        prop_assume!(cycles.told);
        let places: Vec<usize> = cycles.places().collect();
        for (cycle, time) in places.chunks(cycles.length.max(1)).zip(times(&spans)) {
            let under_way = |at: &i64| cycle.iter().any(|&place| {
                let (span, through) = steps[place];
                (span.begin_ns..through.max(span.begin_ns + span.wall_ns)).contains(at)
            });
            let until = spans.get(cycle[cycle.len() - 1] + 1).map_or(i64::MAX, |next| next.begin_ns);
            let until = until.min(steps.iter().map(|(_, through)| *through).max().unwrap_or_default() + 100);
            prop_assert_eq!((spans[cycle[0]].begin_ns..until).filter(under_way).count() as i64, time);
        }
    }

    /// Where the device's end is not known a step is told to be no shorter than it was, but for the run's last.
    #[test]
    fn a_lead_that_is_not_known_makes_no_step_shorter(turns in prop::collection::vec(turn(), 2..30)) {
        let (known, unknown) = (spans(&turns), without_leads(&turns));
        for (place, (one, other)) in known.iter().zip(&unknown).enumerate().take(turns.len() - 1) {
            let next = place + 1;
            prop_assert!(one.time_ns(known.get(next)) <= other.time_ns(unknown.get(next)));
            prop_assert!(one.time_ns(known.get(next)) >= one.wall_ns);
        }
    }

    /// No instant counts for two steps.
    #[test]
    fn the_steps_of_a_run_take_no_longer_than_the_run(turns in prop::collection::vec(turn(), 1..30)) {
        let steps = steps(&turns);
        let spans: Vec<StepSpan> = steps.iter().map(|(span, _)| *span).collect();
        let sum: i64 = spans.iter().enumerate().map(|(at, span)| span.time_ns(spans.get(at + 1))).sum();
        let end = steps.iter().map(|(span, through)| (span.begin_ns + span.wall_ns).max(*through)).max();
        prop_assert!(Some(sum) <= end);
    }
}
