//! Which instructions a kernel is compiled to.

use std::fmt;

/// A compute capability, as the first `major.minor` of cards that have it; PTX for it runs on all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    pub major: u32,
    pub minor: u32,
}

impl Arch {
    pub const fn new(major: u32, minor: u32) -> Arch {
        Arch { major, minor }
    }

    /// The newest of those that a compiler knows which this card runs.
    pub(super) fn best_of(self, known: &[Arch]) -> Option<Arch> {
        known.iter().copied().filter(|&arch| arch <= self).max()
    }

    /// The newest of those that a compiler knows whose machine code this card runs: of its own generation, and not newer.
    pub(super) fn code_of(self, known: &[Arch]) -> Option<Arch> {
        known.iter().copied().filter(|arch| arch.major == self.major && arch.minor <= self.minor).max()
    }

    /// Read as compilers write it: 90 is 9.0, 103 is 10.3.
    pub(super) const fn from_number(number: u32) -> Arch {
        Arch::new(number / 10, number % 10)
    }
}

/// As compilers write it: `compute_90`.
impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("compute_{}{}", self.major, self.minor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_gets_the_newest_instructions_that_it_and_the_compiler_know() {
        let known = [75, 80, 90, 100, 120].map(Arch::from_number);
        let best = |major, minor| Arch::new(major, minor).best_of(&known).map(|arch| arch.to_string());
        assert_eq!(best(9, 0).as_deref(), Some("compute_90"));
        assert_eq!(best(8, 9).as_deref(), Some("compute_80"));
        assert_eq!(best(10, 3).as_deref(), Some("compute_100"));
        assert_eq!(best(13, 0).as_deref(), Some("compute_120"));
        assert_eq!(best(7, 0), None);
    }

    #[test]
    fn machine_code_is_of_the_cards_own_generation() {
        let known = [75, 80, 86, 90, 100].map(Arch::from_number);
        let code = |major, minor| Arch::new(major, minor).code_of(&known);
        assert_eq!(code(8, 9), Some(Arch::new(8, 6)));
        assert_eq!(code(10, 3), Some(Arch::new(10, 0)));
        assert_eq!((code(12, 0), code(7, 0)), (None, None));
    }
}
