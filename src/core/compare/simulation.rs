//! The whole method on runs as they really are, by the very code that decides: how often it is wrong, and how often it
//! sees what is there.

use super::made_up::Made;
use super::repeat::RunTables;
use super::side::{Gathering, Side};
use super::{Comparison, Verdict, compare};
use crate::record::StepRow;
use crate::stats::made_up::{Course, LEVEL, Random};
use crate::stats::{ENOUGH_PAIRS, LEAST_MARGIN};

const COMPARISONS: usize = 1000;
/// So many are enough to tell 90 from 99 %.
const FEWER: usize = 300;
/// Enough pairs for one run of theirs to be dropped.
const MANY_PAIRS: usize = 10;

/// Two sides of runs, made pair by pair.
#[derive(Clone, Copy)]
struct Sides {
    pairs: usize,
    /// What the candidate takes longer, as a share.
    change: f64,
    /// Of all runs.
    course: Course,
    /// Of the candidate's second run alone, where that is another one.
    odd: Option<Course>,
}

const ALIKE: Sides = Sides { pairs: ENOUGH_PAIRS, change: 0.0, course: LEVEL, odd: None };

impl Sides {
    fn compared(self, random: &mut Random) -> Comparison {
        let (mut base, mut candidate) = (Gathering::new("base"), Gathering::new("candidate"));
        for pair in 0..self.pairs {
            let course = self.odd.filter(|_| pair == 1).unwrap_or(self.course);
            // Which side comes first takes turns.
            let (first, second) = (2 * pair as i64 + pair as i64 % 2, 2 * pair as i64 + 1 - pair as i64 % 2);
            base.add(&tables(random, 0.0, self.course, first)).unwrap();
            candidate.add(&tables(random, self.change.ln_1p(), course, second)).unwrap();
        }
        let [base, candidate]: [Side; 2] = [base, candidate].map(|side| side.finish().unwrap());
        compare(&base, &candidate, None).unwrap()
    }

    /// How so many comparisons ended.
    fn ends(self, n: usize) -> Vec<Comparison> {
        let mut random = Random::new(2026);
        (0..n).map(|_| self.compared(&mut random)).collect()
    }
}

/// A run with steps of 10 ms or so, that started in this minute.
fn tables(random: &mut Random, level: f64, course: Course, minute: i64) -> RunTables {
    let row = |(step, time): (usize, f64)| StepRow {
        step: step as i64,
        wall_ns: (1e7 * time) as i64,
        ..StepRow::default()
    };
    let steps = random.run(level, course).into_iter().enumerate().map(row).collect();
    RunTables { steps, ..Made { steps: 0, ..Made::default() }.tables(&format!("run-{minute}"), minute) }
}

fn share(ends: &[Comparison], is: impl Fn(&Comparison) -> bool) -> f64 {
    ends.iter().filter(|end| is(end)).count() as f64 / ends.len() as f64
}

fn called(ends: &[Comparison], verdicts: &[Verdict]) -> f64 {
    share(ends, |end| verdicts.contains(&end.verdict))
}

fn refused(ends: &[Comparison]) -> f64 {
    share(ends, |end| end.abstained)
}

const DIFFERENT: [Verdict; 2] = [Verdict::Faster, Verdict::Slower];

#[test]
fn identical_programs_are_hardly_ever_called_different_or_refused() {
    let ends = ALIKE.ends(COMPARISONS);
    let (wrong, refused) = (called(&ends, &DIFFERENT), refused(&ends));
    assert!(wrong <= 0.01 && refused <= 0.05, "{wrong} {refused}");
}

#[test]
fn a_change_of_five_percent_is_seen() {
    let seen = |change, verdict| called(&Sides { change, ..ALIKE }.ends(FEWER), &[verdict]);
    let (slower, faster) = (seen(0.05, Verdict::Slower), seen(-0.05, Verdict::Faster));
    assert!(slower >= 0.9 && faster >= 0.9, "{slower} {faster}");
}

/// `same` is a claim, too: of programs that differ by the margin it is made in one case of forty, as often as one end
/// of a 95 % interval misses.
#[test]
fn programs_that_differ_are_hardly_ever_called_the_same() {
    let same = |change, n| called(&Sides { change, ..ALIKE }.ends(n), &[Verdict::Same]);
    let (at_the_margin, beyond) = (same(LEAST_MARGIN, COMPARISONS), same(0.02, FEWER));
    assert!(at_the_margin <= 0.025 && beyond <= 0.001, "{at_the_margin} {beyond}");
}

/// From ten pairs on one run in twenty may be unsound, and is dropped with its partner; what is left is no worse a
/// sample for that.
#[test]
fn dropping_what_is_unsound_by_chance_makes_no_change_of_it() {
    let many = Sides { pairs: MANY_PAIRS, ..ALIKE };
    let ends = many.ends(FEWER);
    let dropped = share(&ends, |end| end.pairs < MANY_PAIRS);
    let (wrong, refused) = (called(&ends, &DIFFERENT), refused(&ends));
    assert!(dropped > 0.0 && wrong <= 0.01 && refused <= 0.05, "{dropped} {wrong} {refused}");
    let seen = called(&Sides { change: 0.05, ..many }.ends(FEWER), &[Verdict::Slower]);
    assert!(seen >= 0.9, "{seen}");
}

/// One run that changes its level is refused among five pairs, and left out of ten; where it is not seen, since it must
/// be clear of the margin by more than chance, it only widens the interval.
#[test]
fn one_run_that_does_not_stay_level_makes_no_change() {
    let slowed: Course = |place| if place < 0.5 { 0.0 } else { 0.08 };
    let slightly: Course = |place| if place < 0.5 { 0.0 } else { 0.03 };
    for (odd, pairs, least) in
        [(slowed, ENOUGH_PAIRS, 0.85), (slowed, MANY_PAIRS, 0.85), (slightly, ENOUGH_PAIRS, 0.0)]
    {
        let ends = Sides { pairs, odd: Some(odd), ..ALIKE }.ends(FEWER);
        let wrong = called(&ends, &DIFFERENT);
        let seen = share(&ends, |end| if pairs < MANY_PAIRS { end.abstained } else { end.pairs < pairs });
        assert!(wrong <= 0.01 && seen >= least, "{pairs} pairs: {wrong} {seen}");
    }
}

/// All runs change their level alike, so that no scatter between them gives it away: a step, or a slope.
#[test]
fn runs_that_do_not_stay_level_are_refused() {
    let courses: [(&str, Course, f64); 6] = [
        ("8 % more from the middle on", |place| if place < 0.5 { 0.0 } else { 0.08 }, 0.99),
        ("8 % more from 60 % on", |place| if place < 0.6 { 0.0 } else { 0.08 }, 0.99),
        ("8 % more from 80 % on", |place| if place < 0.8 { 0.0 } else { 0.08 }, 0.9),
        ("8 % less from the middle on", |place| if place < 0.5 { 0.0 } else { -0.08 }, 0.99),
        ("3 % more from the middle on", |place| if place < 0.5 { 0.0 } else { 0.03 }, 0.9),
        ("a slope of 8 %", |place| 0.08 * place, 0.9),
    ];
    for (what, course, least) in courses {
        let refused = refused(&Sides { course, ..ALIKE }.ends(FEWER));
        assert!(refused >= least, "{what}: {refused}");
    }
}
