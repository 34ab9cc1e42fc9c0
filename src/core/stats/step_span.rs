//! A step, as far as its time goes.

/// When a step began, and how long host and device took to get through with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpan {
    /// Its number: one that was left out shows in it.
    pub step: i64,
    pub warmup: bool,
    /// A device of its own computes, and may go on when the step has ended on the host.
    pub beside_host: bool,
    /// The host has waited in it for what computes; without a device of its own it always has.
    pub waited: bool,
    /// From any one instant.
    pub begin_ns: i64,
    /// Until it ended on the host.
    pub wall_ns: i64,
    /// How far the host had run ahead of the device then: until the device was through with all that it had been given in
    /// the step. `None` without a device of its own, and where that is not known.
    pub lead_ns: Option<i64>,
    /// The optimizer ran in it; `None` where that is not known.
    pub updated: Option<bool>,
    /// What of the time until the next step is known to be no step's: a validation pass, for one.
    pub between_ns: i64,
}

impl StepSpan {
    /// Whether this is the very next step after `before`: none is missing between them.
    pub fn follows(&self, before: &StepSpan) -> bool {
        before.step.checked_add(1) == Some(self.step)
    }

    /// How long the step took, in nanoseconds: from its begin until host and device were both through with it. `next` is
    /// the step that comes after it, if there is one.
    ///
    /// - **Formula:** `wall_ns + lead_ns`, but until `next` begins at most, if that [`follows`](StepSpan::follows): what the
    ///   device has left to do of this step by then lies in the time of the next one, so that no instant counts twice.
    ///   Without a device of its own, `wall_ns`.
    /// - **Assumption:** where `lead_ns` is not known the device was at the step until `next` began, but for `between_ns`;
    ///   the time is an upper bound then. Before what does not follow, and after the last step, it is `wall_ns`.
    pub fn time_ns(&self, next: Option<&StepSpan>) -> i64 {
        let until_next_ns =
            next.filter(|next| next.follows(self)).map(|next| next.begin_ns.saturating_sub(self.begin_ns));
        let through_ns = match (self.beside_host, self.lead_ns, until_next_ns) {
            (true, Some(lead_ns), until_ns) => {
                self.wall_ns.saturating_add(lead_ns).min(until_ns.unwrap_or(i64::MAX))
            }
            (true, None, Some(until_ns)) => until_ns.saturating_sub(self.between_ns),
            (true, None, None) | (false, ..) => self.wall_ns,
        };
        // Instants are kept less exactly than times.
        through_ns.max(self.wall_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// On the host from 0 to 7 ms.
    fn step(lead_ns: Option<i64>, between_ns: i64) -> StepSpan {
        let (warmup, beside_host, waited) = (false, true, true);
        let wall_ns = 7 * MS;
        StepSpan {
            step: 4,
            warmup,
            beside_host,
            waited,
            begin_ns: 0,
            wall_ns,
            lead_ns,
            updated: None,
            between_ns,
        }
    }

    fn at(number: i64, begin_ns: i64) -> StepSpan {
        StepSpan { step: number, begin_ns, ..step(None, 0) }
    }

    #[test]
    fn a_step_lasts_until_host_and_device_are_through_with_it() {
        let until = |lead_ns: i64, begins: i64| step(Some(lead_ns), 0).time_ns(Some(&at(5, begins)));
        for begins in [10 * MS, 60 * MS] {
            assert_eq!(until(3 * MS, begins), 10 * MS, "whatever comes between it and the next");
            assert_eq!(until(0, begins), 7 * MS);
            assert_eq!(until(-2 * MS, begins), 7 * MS, "the host went on when the device was through");
        }
        assert_eq!(until(9 * MS, 8 * MS), 8 * MS, "the rest is in the next one's time");
        assert_eq!(until(9 * MS, 7 * MS - 999), 7 * MS, "an instant that was rounded");
        assert_eq!(step(Some(3 * MS), 0).time_ns(None), 10 * MS);
    }

    #[test]
    fn where_the_lead_is_not_known_it_lasts_until_the_next_one_begins_but_for_what_is_known() {
        let until = |between_ns| step(None, between_ns).time_ns(Some(&at(5, 60 * MS)));
        assert_eq!((until(0), until(50 * MS), until(59 * MS)), (60 * MS, 10 * MS, 7 * MS));
        assert_eq!(step(None, 0).time_ns(None), 7 * MS);
    }

    #[test]
    fn a_step_that_is_missing_is_not_charged_to_the_one_before() {
        for number in [3, 4, 6, i64::MAX] {
            assert_eq!(step(None, 0).time_ns(Some(&at(number, 40 * MS))), 7 * MS, "{number}");
            assert_eq!(step(Some(90 * MS), 0).time_ns(Some(&at(number, 40 * MS))), 97 * MS, "{number}");
        }
    }

    #[test]
    fn without_a_device_of_its_own_it_is_the_hosts() {
        let alone = StepSpan { beside_host: false, ..step(None, 0) };
        assert_eq!(alone.time_ns(Some(&at(5, 60 * MS))), 7 * MS);
    }
}
