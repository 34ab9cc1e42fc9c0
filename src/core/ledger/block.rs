//! A block of memory during its lifetime, and the rules that say what it is for.

use std::sync::Arc;

use super::event::{Event, kind};
use crate::record::{Category, Detail, Phase};

/// Where in the run something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// `None` before, between and after the steps.
    pub step: Option<i64>,
    /// `None` outside the steps; [`Phase::Other`] inside one but outside its phases.
    pub phase: Option<Phase>,
    /// Counts the phases of the run and the gaps between them, so that two forwards of one step can be
    /// told apart.
    pub turn: u64,
}

impl Place {
    /// Before the first step.
    pub const START: Place = Place { step: None, phase: None, turn: 0 };

    /// Where the run is once `event` has happened; only markers move it.
    pub fn after(self, event: &Event) -> Place {
        let (step, phase) = match event.kind {
            kind::STEP_BEGIN => (Some(event.id as i64), Some(Phase::Other)),
            kind::STEP_END => (None, None),
            kind::PHASE_BEGIN => (self.step, Phase::ALL.get(event.id as usize).copied()),
            kind::PHASE_END => (self.step, self.step.map(|_| Phase::Other)),
            _ => return self,
        };
        Place { step, phase, turn: self.turn + 1 }
    }
}

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub at_ns: i64,
    pub place: Place,
    pub thread: u16,
}

/// One allocation, from birth to free.
#[derive(Debug, Clone)]
pub struct Block {
    pub id: u64,
    pub bytes: i64,
    pub at_ns: i64,
    pub scope: u32,
    pub thread: u16,
    pub from_loader: bool,
    pub born: Place,
    pub end: Option<End>,
    /// `None` until the step it was made in has ended.
    pub filing: Option<Filing>,
    pub name: Option<Arc<str>>,
    /// Whether the ledger's running totals contain it.
    pub counted: bool,
}

impl Block {
    /// What it is filed under; unattributed while nobody has said.
    pub fn category(&self) -> Category {
        self.filing.map_or(Category::Unattributed, |filing| filing.category)
    }
}

/// Under what a block is filed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filing {
    pub category: Category,
    pub detail: Option<Detail>,
}

impl Filing {
    pub const fn plain(category: Category) -> Self {
        Filing { category, detail: None }
    }

    const fn workspace(detail: Detail) -> Self {
        Filing { category: Category::Workspace, detail: Some(detail) }
    }
}

/// Files a block by its lifetime alone, once the step it was made in (or, for one made between steps,
/// the step after) has ended. Blocks that are known by identity (a variable, a `.grad`) never get here.
///
/// | made in | and then | filed as |
/// | --- | --- | --- |
/// | a loader thread | freed there | workspace / input_temporary |
/// | | handed over | input |
/// | dataloader | freed in it | workspace / input_temporary |
/// | | outlives it | input |
/// | forward | freed in it | workspace / forward_temporary |
/// | | released in a backward of the step | activation |
/// | | neither | workspace / output |
/// | backward | freed in it or later in the step | workspace / activation_gradient |
/// | | outlives the step, and no gradient is known by identity | gradient |
/// | | outlives the step, and is none of the known gradients | unattributed |
/// | optimizer | freed in the step | workspace / optimizer_temporary |
/// | | outlives the step | adam_state |
/// | elsewhere | freed by the end of the step | workspace / other_temporary |
/// | | outlives it | workspace / held |
pub fn file_by_lifetime(block: &Block, gradients_known: bool) -> Filing {
    if block.from_loader {
        return file_from_loader(block);
    }
    let ended = block.end.map(|end| end.place);
    let same_turn = ended.is_some_and(|end| end.turn == block.born.turn);
    let same_step = ended.is_some_and(|end| end.step == block.born.step);
    match block.born.phase {
        Some(Phase::Dataloader) if same_turn => Filing::workspace(Detail::InputTemporary),
        Some(Phase::Dataloader) => Filing::plain(Category::Input),
        Some(Phase::Forward) if same_turn => Filing::workspace(Detail::ForwardTemporary),
        Some(Phase::Forward) if same_step && ended.and_then(|end| end.phase) == Some(Phase::Backward) => {
            Filing::plain(Category::Activation)
        }
        Some(Phase::Forward) => Filing::workspace(Detail::Output),
        Some(Phase::Backward) if same_step => Filing::workspace(Detail::ActivationGradient),
        Some(Phase::Backward) if gradients_known => Filing::plain(Category::Unattributed),
        Some(Phase::Backward) => Filing::plain(Category::Gradient),
        Some(Phase::Optimizer) if same_step => Filing::workspace(Detail::OptimizerTemporary),
        Some(Phase::Optimizer) => Filing::plain(Category::AdamState),
        Some(Phase::Communication | Phase::Other) | None if block.end.is_some() => {
            Filing::workspace(Detail::OtherTemporary)
        }
        Some(Phase::Communication | Phase::Other) | None => Filing::workspace(Detail::Held),
    }
}

fn file_from_loader(block: &Block) -> Filing {
    match block.end {
        Some(end) if end.thread == block.thread => Filing::workspace(Detail::InputTemporary),
        _ => Filing::plain(Category::Input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(step: Option<i64>, phase: Option<Phase>, turn: u64) -> Place {
        Place { step, phase, turn }
    }

    fn block(born: Place, ended: Option<Place>) -> Block {
        let end = ended.map(|place| End { at_ns: 2, place, thread: 0 });
        Block {
            id: 1,
            bytes: 8,
            at_ns: 1,
            scope: 0,
            thread: 0,
            from_loader: false,
            born,
            end,
            filing: None,
            name: None,
            counted: false,
        }
    }

    #[test]
    fn the_table_in_the_doc_holds() {
        let inside = |phase, turn| place(Some(1), Some(phase), turn);
        let next_step = place(Some(2), Some(Phase::Other), 9);
        let cases = [
            (inside(Phase::Dataloader, 1), Some(inside(Phase::Dataloader, 1)), "workspace/input_temporary"),
            (inside(Phase::Dataloader, 1), Some(inside(Phase::Optimizer, 4)), "input"),
            (inside(Phase::Forward, 2), Some(inside(Phase::Forward, 2)), "workspace/forward_temporary"),
            (inside(Phase::Forward, 2), Some(inside(Phase::Backward, 3)), "activation"),
            (inside(Phase::Forward, 2), Some(inside(Phase::Forward, 4)), "workspace/output"),
            (inside(Phase::Forward, 2), Some(inside(Phase::Other, 5)), "workspace/output"),
            (inside(Phase::Forward, 2), None, "workspace/output"),
            (inside(Phase::Backward, 3), Some(inside(Phase::Backward, 3)), "workspace/activation_gradient"),
            (inside(Phase::Backward, 3), None, "unattributed"),
            (inside(Phase::Optimizer, 4), Some(inside(Phase::Optimizer, 4)), "workspace/optimizer_temporary"),
            (inside(Phase::Optimizer, 4), None, "adam_state"),
            (inside(Phase::Optimizer, 4), Some(next_step), "adam_state"),
            (place(None, None, 0), None, "workspace/held"),
            (place(None, None, 0), Some(inside(Phase::Other, 5)), "workspace/other_temporary"),
        ];
        for (born, ended, expected) in cases {
            let filing = file_by_lifetime(&block(born, ended), true);
            let detail = filing.detail.map_or(String::new(), |detail| format!("/{detail}"));
            assert_eq!(format!("{}{detail}", filing.category), expected, "{born:?} to {ended:?}");
        }
    }

    #[test]
    fn a_survivor_of_backward_is_a_gradient_where_none_is_known_by_identity() {
        let survivor = block(place(Some(1), Some(Phase::Backward), 3), None);
        assert_eq!(file_by_lifetime(&survivor, false), Filing::plain(Category::Gradient));
    }

    #[test]
    fn a_loaders_block_is_input_unless_the_loader_frees_it_itself() {
        let mut made = block(place(Some(1), Some(Phase::Forward), 2), None);
        (made.from_loader, made.thread) = (true, 3);
        assert_eq!(file_by_lifetime(&made, true).category, Category::Input);
        made.end = Some(End { at_ns: 5, place: made.born, thread: 0 });
        assert_eq!(file_by_lifetime(&made, true).category, Category::Input);
        made.end = Some(End { at_ns: 5, place: made.born, thread: 3 });
        assert_eq!(file_by_lifetime(&made, true).detail, Some(Detail::InputTemporary));
    }
}
