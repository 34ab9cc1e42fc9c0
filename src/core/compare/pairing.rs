//! Which runs are held against which.

use super::margin::Margin;
use super::repeat::Repeat;
use super::side::{LeftOut, Side};
use super::sound::why_unsound;

/// One run in so many may be unsound; from then on the runs say nothing about the programs.
const ONE_IN: usize = 20;

/// Runs of both sides, paired in the order in which they started.
#[derive(Debug)]
pub struct Pairing<'a> {
    pub pairs: Vec<(&'a Repeat, &'a Repeat)>,
    /// Pairs of which a run is unsound, where these are few; else they are kept, and speak against all.
    dropped: Vec<(&'a Repeat, &'a Repeat)>,
}

/// What became of the runs of one side.
#[derive(Debug, Default)]
pub struct Sorted<'a> {
    pub used: Vec<&'a Repeat>,
    /// Sound runs without a partner.
    pub unpaired: Vec<&'a Repeat>,
    pub left_out: Vec<LeftOut>,
}

impl<'a> Pairing<'a> {
    pub fn of(base: &'a Side, candidate: &'a Side, margin: Margin) -> Self {
        let all = base.repeats.iter().zip(&candidate.repeats);
        let unsound = |run: &Repeat| usize::from(why_unsound(run, margin).is_some());
        let count: usize = all.clone().map(|(base, candidate)| unsound(base) + unsound(candidate)).sum();
        if count * ONE_IN > 2 * all.len() {
            return Pairing { pairs: all.collect(), dropped: Vec::new() };
        }
        let (pairs, dropped) = all.partition(|(base, candidate)| unsound(base) + unsound(candidate) == 0);
        Pairing { pairs, dropped }
    }

    pub fn base<'s>(&'s self, side: &'s Side, margin: Margin) -> Sorted<'s> {
        self.sorted(side, margin, |(base, _)| *base)
    }

    pub fn candidate<'s>(&'s self, side: &'s Side, margin: Margin) -> Sorted<'s> {
        self.sorted(side, margin, |(_, candidate)| *candidate)
    }

    fn sorted<'s>(
        &'s self,
        side: &'s Side,
        margin: Margin,
        of: impl Fn(&(&'a Repeat, &'a Repeat)) -> &'a Repeat,
    ) -> Sorted<'s> {
        let mut sorted = Sorted { used: self.pairs.iter().map(&of).collect(), ..Sorted::default() };
        for run in self.dropped.iter().map(of) {
            match why_unsound(run, margin) {
                Some(why) => sorted.left_out.push(LeftOut { run: run.run_id.clone(), why }),
                None => sorted.unpaired.push(run),
            }
        }
        sorted.unpaired.extend(&side.repeats[self.pairs.len() + self.dropped.len()..]);
        sorted
    }
}
