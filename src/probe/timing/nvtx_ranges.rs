//! NVTX ranges in a domain of our own, so that Nsight shows phases and scopes under the names we give
//! them. Without a tool attached each call is a jump through a null pointer.

use std::sync::LazyLock;

use nvtx::domain::{Category, LocalRange, RegisteredString};
use nvtx::{Domain, Str};

use crate::record::{Phase, SpanKind};

static DOMAIN: LazyLock<Domain> = LazyLock::new(|| Domain::new(c"stepledger"));

/// A range's name, made known to the tool once.
pub type Name = RegisteredString<'static>;

/// An open range of this thread; dropping it closes it.
pub type Range = LocalRange<'static>;

/// Makes a name known.
pub fn register(name: &str) -> Name {
    DOMAIN.register_string(Str::from_str_lossy(name))
}

/// Opens the ranges of one probe: the category tells phases from what is nested in them, the colour is that of the
/// phase, the payload the number of the step.
pub struct Ranges {
    phases: Category<'static>,
    scopes: Category<'static>,
    /// Of each phase, and of each kind of span that has no name but that.
    phase_names: Vec<Name>,
    kind_names: Vec<Name>,
    step: i64,
}

impl Ranges {
    pub fn new() -> Self {
        Ranges {
            phases: DOMAIN.register_category(c"phase"),
            scopes: DOMAIN.register_category(c"scope"),
            phase_names: Phase::ALL.iter().map(|phase| register(phase.as_str())).collect(),
            kind_names: SpanKind::ALL.iter().map(|kind| register(kind.as_str())).collect(),
            step: 0,
        }
    }

    /// The number that ranges bear from now on; before the first step and between two it is that of the last one.
    pub fn set_step(&mut self, step: i64) {
        self.step = step;
    }

    pub fn phase(&self, phase: Phase) -> Range {
        self.open(self.phase_names[phase as usize], self.phases, phase)
    }

    pub fn scope(&self, name: Name, phase: Phase) -> Range {
        self.open(name, self.scopes, phase)
    }

    /// A transfer or a waiting.
    pub fn nameless(&self, kind: SpanKind, phase: Phase) -> Range {
        self.open(self.kind_names[kind as usize], self.scopes, phase)
    }

    fn open(&self, name: Name, category: Category<'static>, phase: Phase) -> Range {
        let attributes = DOMAIN.event_attributes_builder().message(name).category(category);
        DOMAIN.local_range(attributes.color(colour(phase)).payload(self.step).build())
    }
}

/// Opens a range of somebody else's, which knows no phase and no step.
pub fn foreign(name: Name) -> Range {
    static CATEGORY: LazyLock<Category<'static>> = LazyLock::new(|| DOMAIN.register_category(c"tracing"));
    DOMAIN.local_range(DOMAIN.event_attributes_builder().message(name).category(*CATEGORY).build())
}

/// Red, green and blue. Shades that people with any kind of colour vision tell apart: Okabe and Ito's palette.
const fn colour(phase: Phase) -> [u8; 3] {
    match phase {
        Phase::Dataloader => [230, 159, 0],
        Phase::Forward => [86, 180, 233],
        Phase::Backward => [0, 114, 178],
        Phase::Optimizer => [0, 158, 115],
        Phase::Communication => [213, 94, 0],
        Phase::Validation => [204, 121, 167],
        Phase::Other => [153, 153, 153],
    }
}
