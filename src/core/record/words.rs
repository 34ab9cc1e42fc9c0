//! The project's vocabulary: closed sets of words, each with its one spelling in files, JSON and text.

/// A word that is not in its set; the message lists the set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {set} {word:?}; one of: {allowed}")]
pub struct UnknownWord {
    pub set: &'static str,
    pub word: String,
    pub allowed: String,
}

/// Declares a closed set of words: an enum, all its members in order, and the spelling of each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $set:literal { $($(#[$member_doc:meta])* $member:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$member_doc])* $member,)+ }

        impl $name {
            /// Every member, in the order in which tables list them.
            pub const ALL: &[$name] = &[$($name::$member,)+];

            /// The spelling of every member, in the same order.
            pub const WORDS: &[&str] = &[$($word,)+];

            /// The spelling used in files, JSON and text.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$member => $word,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::record::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|member| member.as_str() == word).ok_or_else(|| Self::Err {
                    set: $set,
                    word: word.to_owned(),
                    allowed: Self::WORDS.join(", "),
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// What a training step is doing.
    Phase, "phase" {
        /// The training thread waits for its batch.
        Dataloader = "dataloader",
        Forward = "forward",
        Backward = "backward",
        Optimizer = "optimizer",
        Communication = "communication",
        /// A pass without training, between steps: no part of any step.
        Validation = "validation",
        /// What is left of the step: its wall time less all other phases.
        Other = "other",
    }
}

words! {
    /// What an allocation is for, during its whole lifetime.
    Category, "category" {
        Parameter = "parameter",
        /// Of parameters. Gradients of activations are workspace.
        Gradient = "gradient",
        AdamState = "adam_state",
        /// Made in forward (or while recomputing it), alive when it ends, released by its backward.
        Activation = "activation",
        /// Batch and targets, prefetched ones included.
        Input = "input",
        /// Non-trained module state, such as batch-norm statistics.
        Buffer = "buffer",
        /// Everything else that is understood; [`Detail`] says what.
        Workspace = "workspace",
        /// What could not be explained. Never hidden; 0 is the goal.
        Unattributed = "unattributed",
    }
}

words! {
    /// A finer word for some allocations, chiefly those of [`Category::Workspace`].
    Detail, "detail" {
        /// Made and freed within one forward.
        ForwardTemporary = "forward_temporary",
        /// Made by forward, outlives it, and not released by backward: the loss, kept logits.
        Output = "output",
        /// Made and freed within one backward.
        ActivationGradient = "activation_gradient",
        /// Made and freed within one optimizer phase.
        OptimizerTemporary = "optimizer_temporary",
        /// Made and freed while fetching a batch.
        InputTemporary = "input_temporary",
        /// Made and freed within one validation pass.
        ValidationTemporary = "validation_temporary",
        /// Made inside an operator and freed before it returned: no tensor that left it. Known only where
        /// operators are traced.
        KernelScratch = "kernel_scratch",
        /// An activation made anew in backward, by recomputation.
        Recomputed = "recomputed",
        /// Autocast's copy of a weight in half precision, kept for backward.
        AutocastWeightCopy = "autocast_weight_copy",
        /// The optimizer's own f32 copy of a parameter in half precision.
        MasterWeight = "master_weight",
        /// Lent to a library of CUDA's (cuBLAS, cuBLASLt) for good, by libtorch.
        LibraryWorkspace = "library_workspace",
        /// What a caching allocator's blocks are larger than was asked for.
        Rounding = "rounding",
        /// Made and freed inside a step but outside its phases, or between steps.
        OtherTemporary = "other_temporary",
        /// Made outside the phases and kept: data held in memory, running sums, constants of the program.
        Held = "held",
    }
}

words! {
    /// An instant of a step at which the ledger is read.
    Moment, "moment" {
        ForwardEnd = "forward_end",
        BackwardEnd = "backward_end",
        OptimizerEnd = "optimizer_end",
        /// The instant of the step's highest total.
        Peak = "peak",
        PeakDataloader = "peak_dataloader",
        PeakForward = "peak_forward",
        PeakBackward = "peak_backward",
        PeakOptimizer = "peak_optimizer",
        PeakCommunication = "peak_communication",
        PeakValidation = "peak_validation",
        /// The instant at which an allocation failed.
        OutOfMemory = "out_of_memory",
    }
}

impl Moment {
    /// The moment at which `phase` ends, for the three phases whose end the ledger keeps.
    pub const fn end_of(phase: Phase) -> Option<Moment> {
        match phase {
            Phase::Forward => Some(Moment::ForwardEnd),
            Phase::Backward => Some(Moment::BackwardEnd),
            Phase::Optimizer => Some(Moment::OptimizerEnd),
            Phase::Dataloader | Phase::Communication | Phase::Validation | Phase::Other => None,
        }
    }

    /// The instant of the highest total while `phase` ran; what lies between phases has none of its own.
    pub const fn peak_of(phase: Phase) -> Option<Moment> {
        match phase {
            Phase::Dataloader => Some(Moment::PeakDataloader),
            Phase::Forward => Some(Moment::PeakForward),
            Phase::Backward => Some(Moment::PeakBackward),
            Phase::Optimizer => Some(Moment::PeakOptimizer),
            Phase::Communication => Some(Moment::PeakCommunication),
            Phase::Validation => Some(Moment::PeakValidation),
            Phase::Other => None,
        }
    }
}

words! {
    /// How a run ended, or that it has not.
    RunStatus, "run status" {
        /// Still going on, or killed before it could say anything else.
        Running = "running",
        Complete = "complete",
        Failed = "failed",
        OutOfMemory = "out_of_memory",
        Interrupted = "interrupted",
    }
}

words! {
    /// What a row of the `phases` table is.
    SpanKind, "span kind" {
        /// One of the parts that a step divides into.
        Phase = "phase",
        /// Nested in a phase.
        Scope = "scope",
        /// The nodes of backward's graph that belong to one scope of forward, without those of nested scopes.
        Node = "node",
        /// A phase between steps, and no part of one.
        Between = "between",
        /// A batch's copy to the device, within a phase or beside all of them.
        Transfer = "transfer",
        /// The training thread waiting for the device, within a phase or beside all of them.
        Sync = "sync",
    }
}

/// The scope of backward in which a part of forward is run again.
pub const RECOMPUTE: &str = "recompute";

words! {
    /// How deep a run was traced.
    Trace, "trace depth" {
        /// Times only; the allocator hook is off and there is no memory account.
        Phases = "phases",
        /// Times, and every allocation and free.
        Allocations = "allocations",
        /// Also which operator made each allocation, and what backward spends on each scope.
        Ops = "ops",
    }
}

words! {
    /// How much an experiment's results are worth.
    EvidenceLevel, "evidence level" {
        /// Theory only; nothing was run.
        TeachingProxy = "teaching_proxy",
        /// It ran, once or too few times.
        SmokeTest = "smoke_test",
        /// Enough repeats, and an interval clear of zero.
        RepeatedBenchmark = "repeated_benchmark",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back_as_itself() {
        for &category in Category::ALL {
            assert_eq!(category.as_str().parse::<Category>(), Ok(category));
        }
        for &moment in Moment::ALL {
            assert_eq!(moment.as_str().parse::<Moment>(), Ok(moment));
        }
    }

    #[test]
    fn an_unknown_word_names_itself_and_the_set() {
        let message = "warp".parse::<Phase>().unwrap_err().to_string();
        assert!(message.contains("phase \"warp\"") && message.contains("dataloader, forward"), "{message}");
    }
}
