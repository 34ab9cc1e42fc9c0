//! The rules that say what a block of memory is for.

use super::place::Place;
use crate::record::{Category, Detail, Phase};

/// One block's life, as far as its filing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub born: Place,
    pub ended: Option<Place>,
    pub from_loader: bool,
    /// It was freed on a thread that fetches batches.
    pub ended_in_loader: bool,
    /// It was made on a thread that has no part in training, and freed on one.
    pub made_aside: bool,
    pub ended_aside: bool,
    /// It was freed within the call of the operator that made it.
    pub ended_in_op: bool,
    pub autocast_copy: bool,
    /// It stands for what a caching allocator added to the block before it.
    pub rounding: bool,
    /// It was alive when an allocation failed, or the step was left.
    pub at_failure: bool,
    /// Its step was left unfinished.
    pub step_left: bool,
    /// A backward had ended after it was made, and before the failure.
    pub outlived_backward: bool,
}

impl Life {
    /// Whether it was alive when its step failed for good: what it was for has not come to pass.
    fn stranded(&self) -> bool {
        self.at_failure && self.step_left
    }

    /// A thread without a part in training may free what it was given while backward runs.
    fn released_by_backward(&self, same_step: bool) -> bool {
        same_step && !self.ended_aside && self.ended.and_then(|end| end.phase) == Some(Phase::Backward)
    }

    /// Whatever the step was at meanwhile, it is none of the step's.
    fn is_aside(&self) -> bool {
        self.made_aside && (self.ended.is_none() || self.ended_aside)
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

    pub const fn workspace(detail: Detail) -> Self {
        Filing { category: Category::Workspace, detail: Some(detail) }
    }
}

/// Files a block by its lifetime alone, once the step it was made in (or, for one made between steps,
/// the step after) has ended. Blocks that are known by identity (a variable, a `.grad`, what cuBLAS was lent) never get
/// here.
///
/// | made in | and then | filed as |
/// | --- | --- | --- |
/// | a loader thread | freed by one before the step's end | workspace / input_temporary |
/// | | handed over, or waiting | input |
/// | any operator | freed before it returned, unless its step failed then | workspace / kernel_scratch |
/// | a thread without a part in training | freed by one before the step's end | workspace / other_temporary |
/// | | alive then | workspace / held |
/// | | handed over, and freed by training | as if made there |
/// | a caching allocator, rounding up | | workspace / rounding |
/// | dataloader | freed in it | workspace / input_temporary |
/// | | outlives it | input |
/// | forward | freed in it | workspace / forward_temporary |
/// | | released in a backward of the step | activation |
/// | | alive when its step failed before a backward ended | activation |
/// | | neither | workspace / output |
/// | backward, running a part of forward again | freed in that | workspace / forward_temporary |
/// | | freed later in backward, or alive when its step failed | activation / recomputed |
/// | backward | freed in it or later in the step, or alive when it failed | workspace / activation_gradient |
/// | | outlives the step, and no gradient is known by identity | gradient |
/// | | outlives the step, and is none of the known gradients | unattributed |
/// | optimizer | freed in the step | workspace / optimizer_temporary |
/// | | outlives the step | adam_state |
/// | validation | freed in it | workspace / validation_temporary |
/// | elsewhere | freed by the end of the step | workspace / other_temporary |
/// | | outlives it | workspace / held |
pub fn file_by_lifetime(life: &Life, gradients_known: bool) -> Filing {
    if life.rounding {
        return Filing::workspace(Detail::Rounding);
    }
    if life.from_loader {
        return file_from_loader(life);
    }
    // What a failing operator had made already its own exception frees: that says nothing of what it was for.
    if life.ended_in_op && !life.stranded() {
        return Filing::workspace(Detail::KernelScratch);
    }
    if life.is_aside() {
        return Filing::workspace(if life.ended.is_some() { Detail::OtherTemporary } else { Detail::Held });
    }
    let same_turn = life.ended.is_some_and(|end| end.turn == life.born.turn);
    let same_step = life.ended.is_some_and(|end| end.step == life.born.step);
    match life.born.phase {
        Some(Phase::Dataloader) if same_turn => Filing::workspace(Detail::InputTemporary),
        Some(Phase::Dataloader) => Filing::plain(Category::Input),
        Some(Phase::Forward) => file_from_forward(life, same_turn, same_step),
        Some(Phase::Backward) if life.born.recomputing > 0 => {
            file_from_recomputation(life, same_turn, same_step)
        }
        // After an error libtorch's engine keeps what it was working on.
        Some(Phase::Backward) if same_step || life.stranded() => {
            Filing::workspace(Detail::ActivationGradient)
        }
        Some(Phase::Backward) if gradients_known => Filing::plain(Category::Unattributed),
        Some(Phase::Backward) => Filing::plain(Category::Gradient),
        Some(Phase::Optimizer) if same_step => Filing::workspace(Detail::OptimizerTemporary),
        Some(Phase::Optimizer) => Filing::plain(Category::AdamState),
        Some(Phase::Validation) if same_turn => Filing::workspace(Detail::ValidationTemporary),
        _ if life.ended.is_some() => Filing::workspace(Detail::OtherTemporary),
        _ => Filing::workspace(Detail::Held),
    }
}

fn file_from_loader(life: &Life) -> Filing {
    match life.ended_in_loader {
        true => Filing::workspace(Detail::InputTemporary),
        false => Filing::plain(Category::Input),
    }
}

fn file_from_forward(life: &Life, same_turn: bool, same_step: bool) -> Filing {
    let needed = life.released_by_backward(same_step) || (life.stranded() && !life.outlived_backward);
    match (needed, same_turn) {
        (true, _) => Filing {
            category: Category::Activation,
            detail: life.autocast_copy.then_some(Detail::AutocastWeightCopy),
        },
        (false, true) => Filing::workspace(Detail::ForwardTemporary),
        (false, false) => Filing::workspace(Detail::Output),
    }
}

fn file_from_recomputation(life: &Life, same_turn: bool, same_step: bool) -> Filing {
    match (same_turn && !life.stranded(), life.released_by_backward(same_step) || life.stranded()) {
        (true, _) => Filing::workspace(Detail::ForwardTemporary),
        (false, true) => Filing { category: Category::Activation, detail: Some(Detail::Recomputed) },
        (false, false) => Filing::workspace(Detail::Output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(step: Option<i64>, phase: Option<Phase>, turn: u32) -> Place {
        Place { step, phase, recomputing: 0, turn }
    }

    fn life(born: Place, ended: Option<Place>) -> Life {
        Life {
            born,
            ended,
            from_loader: false,
            ended_in_loader: false,
            made_aside: false,
            ended_aside: false,
            ended_in_op: false,
            autocast_copy: false,
            rounding: false,
            at_failure: false,
            step_left: false,
            outlived_backward: false,
        }
    }

    #[test]
    fn the_table_in_the_doc_holds() {
        let inside = |phase, turn| place(Some(1), Some(phase), turn);
        let next_step = place(Some(2), Some(Phase::Other), 9);
        let validation = place(None, Some(Phase::Validation), 6);
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
            (validation, Some(validation), "workspace/validation_temporary"),
            (validation, None, "workspace/held"),
            (place(None, None, 0), None, "workspace/held"),
            (place(None, None, 0), Some(inside(Phase::Other, 5)), "workspace/other_temporary"),
        ];
        for (born, ended, expected) in cases {
            assert_eq!(shown(&life(born, ended)), expected, "{born:?} to {ended:?}");
        }
    }

    fn shown(life: &Life) -> String {
        let filing = file_by_lifetime(life, true);
        let detail = filing.detail.map_or(String::new(), |detail| format!("/{detail}"));
        format!("{}{detail}", filing.category)
    }

    #[test]
    fn a_survivor_of_backward_is_a_gradient_where_none_is_known_by_identity() {
        let survivor = life(place(Some(1), Some(Phase::Backward), 3), None);
        assert_eq!(file_by_lifetime(&survivor, false), Filing::plain(Category::Gradient));
    }

    #[test]
    fn a_loaders_block_is_input_unless_the_loader_frees_it_itself() {
        let born = place(Some(1), Some(Phase::Forward), 2);
        let made = Life { from_loader: true, ..life(born, None) };
        assert_eq!(shown(&made), "input");
        assert_eq!(shown(&Life { ended: Some(born), ended_in_loader: false, ..made }), "input");
        let kept = Life { ended: Some(born), ended_in_loader: true, ..made };
        assert_eq!(shown(&kept), "workspace/input_temporary");
    }

    /// As its step failed in the optimizer: the loss, say.
    #[test]
    fn what_a_backward_had_no_more_use_for_is_no_activation() {
        let stranded =
            Life { at_failure: true, step_left: true, ..life(place(Some(1), Some(Phase::Forward), 2), None) };
        assert_eq!(shown(&stranded), "activation");
        assert_eq!(shown(&Life { outlived_backward: true, ..stranded }), "workspace/output");
        let given_away = Some(place(Some(1), Some(Phase::Backward), 3));
        let freed_aside = Life { ended: given_away, ended_aside: true, ..life(stranded.born, None) };
        assert_eq!(shown(&freed_aside), "workspace/output");
    }

    #[test]
    fn another_threads_block_is_none_of_the_steps_unless_training_gets_it() {
        for phase in [Phase::Forward, Phase::Backward, Phase::Optimizer] {
            let born = place(Some(1), Some(phase), 2);
            let aside = Life { made_aside: true, ..life(born, None) };
            assert_eq!(shown(&aside), "workspace/held", "{phase}");
            let later = Some(place(Some(1), Some(Phase::Backward), 3));
            let ended = Life { ended: later, ended_aside: true, ..aside };
            assert_eq!(shown(&ended), "workspace/other_temporary", "{phase}");
        }
        let made = Life { made_aside: true, ..life(place(Some(1), Some(Phase::Forward), 2), None) };
        let released = Life { ended: Some(place(Some(1), Some(Phase::Backward), 3)), ..made };
        assert_eq!(shown(&released), "activation");
    }

    #[test]
    fn what_never_left_its_operator_is_scratch() {
        let backward = place(Some(1), Some(Phase::Backward), 3);
        let scratch = Life { ended_in_op: true, ..life(backward, Some(backward)) };
        assert_eq!(shown(&scratch), "workspace/kernel_scratch");
        assert_eq!(shown(&Life { at_failure: true, ..scratch }), "workspace/kernel_scratch");
    }

    #[test]
    fn what_a_failing_operator_frees_is_filed_as_without_a_trace_of_operators() {
        let phases = [Phase::Forward, Phase::Backward, Phase::Optimizer];
        for phase in phases {
            let born = place(Some(1), Some(phase), 2);
            let coarse = Life { at_failure: true, step_left: true, ..life(born, Some(born)) };
            assert_eq!(shown(&Life { ended_in_op: true, ..coarse }), shown(&coarse), "{phase}");
            assert!(!shown(&coarse).contains("scratch"));
        }
    }

    #[test]
    fn what_is_recomputed_for_backward_is_an_activation_again() {
        let backward = |turn| place(Some(1), Some(Phase::Backward), turn);
        let again = Place { recomputing: 1, ..backward(4) };
        assert_eq!(shown(&life(again, Some(again))), "workspace/forward_temporary");
        assert_eq!(shown(&life(again, Some(backward(5)))), "activation/recomputed");
        assert_eq!(shown(&life(again, Some(place(Some(1), Some(Phase::Other), 9)))), "workspace/output");
        assert_eq!(
            shown(&Life { at_failure: true, step_left: true, ..life(again, Some(again)) }),
            "activation/recomputed"
        );
    }

    #[test]
    fn what_a_failed_step_leaves_of_its_forward_is_activation() {
        let forward = place(Some(1), Some(Phase::Forward), 2);
        let stranded = Life { at_failure: true, step_left: true, ..life(forward, Some(forward)) };
        assert_eq!(shown(&stranded), "activation");
        let backward = Life { born: place(Some(1), Some(Phase::Backward), 3), ended: None, ..stranded };
        assert_eq!(shown(&backward), "workspace/activation_gradient");
        let copy = Life { autocast_copy: true, ..stranded };
        assert_eq!(shown(&copy), "activation/autocast_weight_copy");
    }
}
