//! The sentences of rule `choose-next-validation`: one set for each outcome and language.
//!
//! `{total}` and `{capacity}` stand for the two amounts of memory. Identifiers keep their English spelling.

use super::Validation;
use crate::record::words;

words! {
    /// The language of the sentences. Identifiers never change with it.
    Lang, "language" {
        En = "en",
        Zh = "zh",
    }
}

/// What is believed, what to change, and why this comes first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sentences {
    pub hypothesis: &'static str,
    pub change: &'static str,
    pub reason: &'static str,
}

pub(super) const fn sentences(outcome: Validation, lang: Lang) -> Sentences {
    match lang {
        Lang::En => english(outcome),
        Lang::Zh => chinese(outcome),
    }
}

const fn english(outcome: Validation) -> Sentences {
    match outcome {
        Validation::CompareBatchCheckpointOffload => Sentences {
            hypothesis: "The step needs more memory than the device has, so this configuration cannot run as it is.",
            change: "Try a smaller batch, activation checkpointing and offloading, one at a time, \
                     and keep everything else as it was.",
            reason: "The ledger adds up to {total} MiB and the device has {capacity} MiB; \
                     speed is not worth a look before the step fits.",
        },
        Validation::InspectInputPipeline => Sentences {
            hypothesis: "The device waits for its next batch, so the input pipeline sets the pace.",
            change: "Run the same step with a batch that already lies in memory; \
                     if it becomes faster, add workers or prefetching.",
            reason: "Memory fits ({total} of {capacity} MiB) and loading data takes the most time; \
                     a faster kernel would only wait longer.",
        },
        Validation::InspectCommunication => Sentences {
            hypothesis: "The ranks spend their time exchanging data that computation does not hide.",
            change: "Communicate less often (accumulate gradients, use larger buckets) \
                     or let it overlap with backward; change one of them.",
            reason: "Memory fits ({total} of {capacity} MiB), the input pipeline is not the hotspot, \
                     and communication is heavy.",
        },
        Validation::ProfileForward => Sentences {
            hypothesis: "Forward takes the most time, and a few of its modules probably take most of that.",
            change: "Split forward into its modules and time each; change nothing else yet.",
            reason: "Memory fits ({total} of {capacity} MiB), and neither data nor communication holds the step \
                     up; one number for all of forward is too coarse to act on.",
        },
        Validation::ProfileBackward => Sentences {
            hypothesis: "Backward takes the most time: expensive gradients, or activations computed again.",
            change: "Split backward into its modules, with recomputation on its own; change nothing else yet.",
            reason: "Memory fits ({total} of {capacity} MiB), and neither data nor communication holds the step \
                     up; what backward spends must be known before it can be saved.",
        },
        Validation::ProfileOptimizer => Sentences {
            hypothesis: "The optimizer takes the most time, often because it updates many small tensors one by one.",
            change: "Time the update by parameter group, then compare it with a fused one.",
            reason: "Memory fits ({total} of {capacity} MiB), and neither data nor communication holds the step \
                     up; an update that outweighs forward and backward is unusual.",
        },
        Validation::CollectMoreEvidence => Sentences {
            hypothesis: "Nothing stands out yet; a guess now would be no better than chance.",
            change: "Change nothing: run more steps under the same configuration, with finer scopes.",
            reason: "Memory fits ({total} of {capacity} MiB), and no stage that this rule knows is the hotspot.",
        },
    }
}

const fn chinese(outcome: Validation) -> Sentences {
    match outcome {
        Validation::CompareBatchCheckpointOffload => Sentences {
            hypothesis: "这一步需要的显存（内存）超过了设备的容量，按现在的配置跑不起来。",
            change: "分别尝试减小批大小、激活检查点和卸载，每次只改一项，其余保持不变。",
            reason: "账本合计 {total} MiB，而设备只有 {capacity} MiB；装得下之前，先不必谈速度。",
        },
        Validation::InspectInputPipeline => Sentences {
            hypothesis: "设备在等下一批数据，节奏由输入流水线决定。",
            change: "换成一批已经在内存里的数据再跑同一步；如果变快了，再增加加载进程或预取。",
            reason: "内存放得下（{total} / {capacity} MiB），耗时最多的是取数据；计算再快，也只是等得更久。",
        },
        Validation::InspectCommunication => Sentences {
            hypothesis: "各个 rank 的时间花在交换数据上，而计算没能把它遮住。",
            change: "降低通信频率（梯度累积、更大的桶），或者让通信与反向重叠；两者只改其一。",
            reason: "内存放得下（{total} / {capacity} MiB），热点不在输入流水线，而通信负担很重。",
        },
        Validation::ProfileForward => Sentences {
            hypothesis: "前向耗时最多，其中大部分很可能集中在少数几个模块。",
            change: "把前向拆到各个模块分别计时，其他暂时都不改。",
            reason: "内存放得下（{total} / {capacity} MiB），数据和通信也没有拖慢这一步；只有一个前向总时间，还不足以动手。",
        },
        Validation::ProfileBackward => Sentences {
            hypothesis: "反向耗时最多：要么梯度本身昂贵，要么在重新计算激活。",
            change: "把反向拆到各个模块，重计算单独计时，其他暂时都不改。",
            reason: "内存放得下（{total} / {capacity} MiB），数据和通信也没有拖慢这一步；先弄清反向把时间花在哪里，才谈得上节省。",
        },
        Validation::ProfileOptimizer => Sentences {
            hypothesis: "优化器耗时最多，常见的原因是逐个更新大量的小张量。",
            change: "按参数组给更新计时，再与融合的实现比较。",
            reason: "内存放得下（{total} / {capacity} MiB），数据和通信也没有拖慢这一步；更新比前向和反向还慢，并不寻常。",
        },
        Validation::CollectMoreEvidence => Sentences {
            hypothesis: "目前没有突出的信号，现在下结论和瞎猜差不多。",
            change: "什么都先不改：用同样的配置多跑几步，并把计时范围分得更细。",
            reason: "内存放得下（{total} / {capacity} MiB），热点也不是本规则认识的阶段。",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_sentences_in_both_languages() {
        let mut seen = std::collections::HashSet::new();
        for &lang in Lang::ALL {
            for &outcome in Validation::ALL {
                let Sentences { hypothesis, change, reason } = sentences(outcome, lang);
                for sentence in [hypothesis, change, reason] {
                    assert!(seen.insert(sentence), "said twice: {sentence}");
                    assert!(sentence.ends_with(['.', '。']), "{sentence}");
                }
            }
        }
    }
}
