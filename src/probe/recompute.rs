//! Backward running a part of forward again, as activation checkpointing does.

use super::current::{Scope, observe_ops, scope};
use super::hook;
use crate::ledger::kind;
use crate::record::RECOMPUTE;

/// While it lives, what this thread does is recomputation: timed as the scope `recompute` of the phase it happens in,
/// and what is allocated for backward is filed as activation again.
///
/// `train::checkpoint` opens one around each of its recomputations; open one in a checkpointing of your own.
#[must_use = "the recomputation ends when this guard is dropped"]
pub struct Recomputation {
    scope: Option<Scope>,
    begin_ns: i64,
    /// Whether operators were observed before.
    observed: bool,
}

impl Recomputation {
    pub fn begin() -> Self {
        let begin_ns = hook::now_ns();
        hook::mark_training(kind::RECOMPUTE_BEGIN);
        // In backward its nodes are observed; here operators run that are no node's.
        let observed = observe_ops(true);
        Recomputation { scope: Some(scope(RECOMPUTE)), begin_ns, observed }
    }
}

impl Drop for Recomputation {
    fn drop(&mut self) {
        drop(self.scope.take());
        observe_ops(self.observed);
        hook::mark_training(kind::RECOMPUTE_END);
        hook::take_from_node(hook::now_ns() - self.begin_ns);
    }
}
