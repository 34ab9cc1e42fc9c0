//! From intervals that overlap to times that add up: what a stretch of time was spent on when each instant counts
//! for one thing alone.

/// What something that takes time is. In this order one hides another: while a kernel runs, a copy beside it costs
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// The device computes.
    Kernel,
    /// Bytes move between host and device.
    Transfer,
    /// The host waits for the device.
    Sync,
    /// The host hands work to the device.
    Launch,
}

impl Activity {
    /// Every activity, the one that hides all others first.
    pub const ALL: [Activity; 4] = [Activity::Kernel, Activity::Transfer, Activity::Sync, Activity::Launch];
}

/// One activity from `begin_ns` until just before `end_ns`, on any timeline that all intervals share. One that ends
/// no later than it begins is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub activity: Activity,
    pub begin_ns: i64,
    pub end_ns: i64,
}

/// Exposed times: each is the part of a window in which its activity went on and none that hides it. They and
/// `idle_ns` add up to the window exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exposed {
    pub kernel_ns: i64,
    pub transfer_ns: i64,
    pub sync_ns: i64,
    pub launch_ns: i64,
    /// None of them.
    pub idle_ns: i64,
}

impl Exposed {
    /// The window's length.
    pub fn total_ns(&self) -> i64 {
        self.kernel_ns + self.transfer_ns + self.sync_ns + self.launch_ns + self.idle_ns
    }

    fn part(&mut self, activity: Option<Activity>) -> &mut i64 {
        match activity {
            Some(Activity::Kernel) => &mut self.kernel_ns,
            Some(Activity::Transfer) => &mut self.transfer_ns,
            Some(Activity::Sync) => &mut self.sync_ns,
            Some(Activity::Launch) => &mut self.launch_ns,
            None => &mut self.idle_ns,
        }
    }
}

/// Splits the window from `begin_ns` to `end_ns` into exposed times.
///
/// - **Formula:** an instant counts for the first activity of [`Activity::ALL`] that goes on then, and for
///   `idle_ns` where none does; a part is the length of its instants.
/// - **Units:** nanoseconds, on one timeline. Intervals of any streams, in any order, overlapping or not; what lies
///   outside the window counts for nothing.
/// - **Assumption:** what is hidden costs nothing: two activities at once do not slow each other down.
/// - **Cost:** O(n log n) in the number of intervals.
/// - A window that ends no later than it begins has no instants: all parts are 0.
///
/// ```
/// use stepledger_core::ledger::{Activity, Interval, exposed};
///
/// let copy = Interval { activity: Activity::Transfer, begin_ns: 0, end_ns: 30 };
/// let kernel = Interval { activity: Activity::Kernel, begin_ns: 10, end_ns: 90 };
/// let parts = exposed(0, 100, &[copy, kernel]);
/// assert_eq!((parts.kernel_ns, parts.transfer_ns, parts.idle_ns), (80, 10, 10));
/// ```
pub fn exposed(begin_ns: i64, end_ns: i64, intervals: &[Interval]) -> Exposed {
    let mut edges = edges(begin_ns, end_ns, intervals);
    edges.sort_unstable_by_key(|edge| edge.at_ns);
    let mut parts = Exposed::default();
    let mut going_on = [0_usize; Activity::ALL.len()];
    let mut since_ns = begin_ns;
    for edge in edges {
        *parts.part(foremost(&going_on)) += edge.at_ns - since_ns;
        since_ns = edge.at_ns;
        let count = &mut going_on[edge.activity as usize];
        // Edges at one instant come in any order, so an end may come before its begin: counted modulo 2⁶⁴, the sum is
        // right by the time that time goes on.
        *count = if edge.begins { count.wrapping_add(1) } else { count.wrapping_sub(1) };
    }
    *parts.part(None) += (end_ns - since_ns).max(0);
    parts
}

/// An instant at which an activity begins or ends.
struct Edge {
    at_ns: i64,
    activity: Activity,
    begins: bool,
}

/// Both edges of all that lies in the window, cut to it.
fn edges(begin_ns: i64, end_ns: i64, intervals: &[Interval]) -> Vec<Edge> {
    let mut edges = Vec::with_capacity(2 * intervals.len());
    for &Interval { activity, begin_ns: from, end_ns: until } in intervals {
        let (from, until) = (from.max(begin_ns), until.min(end_ns));
        if from < until {
            edges.push(Edge { at_ns: from, activity, begins: true });
            edges.push(Edge { at_ns: until, activity, begins: false });
        }
    }
    edges
}

fn foremost(going_on: &[usize; Activity::ALL.len()]) -> Option<Activity> {
    Activity::ALL.into_iter().find(|&activity| going_on[activity as usize] > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: (i64, i64) = (20, 120);

    fn interval() -> impl Strategy<Value = Interval> {
        (0..Activity::ALL.len(), 0..150_i64, -5..60_i64).prop_map(|(place, begin_ns, length)| Interval {
            activity: Activity::ALL[place],
            begin_ns,
            end_ns: begin_ns + length,
        })
    }

    fn intervals() -> impl Strategy<Value = Vec<Interval>> {
        prop::collection::vec(interval(), 0..40)
    }

    /// By definition: one instant after the other.
    fn instant_by_instant(begin_ns: i64, end_ns: i64, intervals: &[Interval]) -> Exposed {
        let mut parts = Exposed::default();
        for at_ns in begin_ns..end_ns {
            let here = intervals.iter().filter(|one| (one.begin_ns..one.end_ns).contains(&at_ns));
            *parts.part(here.map(|one| one.activity).min()) += 1;
        }
        parts
    }

    proptest! {
        #[test]
        fn every_instant_counts_once_for_what_hides_the_rest(intervals in intervals()) {
            let (begin_ns, end_ns) = WINDOW;
            let parts = exposed(begin_ns, end_ns, &intervals);
            prop_assert_eq!(parts, instant_by_instant(begin_ns, end_ns, &intervals));
            prop_assert_eq!(parts.total_ns(), end_ns - begin_ns);
        }

        #[test]
        fn the_parts_add_up_to_the_window_at_any_size(
            (begin_ns, length) in (-1_i64 << 60..1 << 60, 0..1_i64 << 60),
            intervals in prop::collection::vec((0..4_usize, any::<i64>(), any::<i64>()), 0..20),
        ) {
            let intervals: Vec<_> = intervals
                .into_iter()
                .map(|(place, begin_ns, end_ns)| Interval { activity: Activity::ALL[place], begin_ns, end_ns })
                .collect();
            prop_assert_eq!(exposed(begin_ns, begin_ns + length, &intervals).total_ns(), length);
        }

        #[test]
        fn the_order_of_the_intervals_does_not_matter(
            (intervals, shuffled) in intervals().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        ) {
            let (begin_ns, end_ns) = WINDOW;
            prop_assert_eq!(exposed(begin_ns, end_ns, &intervals), exposed(begin_ns, end_ns, &shuffled));
        }

        #[test]
        fn one_more_kernel_exposes_no_more_of_anything_else(intervals in intervals(), more in interval()) {
            let (begin_ns, end_ns) = WINDOW;
            let before = exposed(begin_ns, end_ns, &intervals);
            let kernel = Interval { activity: Activity::Kernel, ..more };
            let after = exposed(begin_ns, end_ns, &[&intervals[..], &[kernel]].concat());
            prop_assert!(after.kernel_ns >= before.kernel_ns && after.idle_ns <= before.idle_ns);
            prop_assert!(after.transfer_ns <= before.transfer_ns && after.sync_ns <= before.sync_ns);
            prop_assert!(after.launch_ns <= before.launch_ns);
        }
    }

    #[test]
    fn a_window_without_instants_has_no_parts() {
        let kernel = Interval { activity: Activity::Kernel, begin_ns: 0, end_ns: 10 };
        assert_eq!(exposed(5, 5, &[kernel]), Exposed::default());
        assert_eq!(exposed(9, 3, &[kernel]), Exposed::default());
    }
}
