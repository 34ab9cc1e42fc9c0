//! Where to put the checkpoints: how many blocks make a segment.

use serde::Serialize;

use crate::theory::{Checkpoint, Shape};

/// One size of segments, in theory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Segmented {
    /// Blocks in a segment.
    pub blocks: i64,
    /// As `--checkpoint` has it.
    pub checkpoint: String,
    /// The largest batch that fits; 0 where none does.
    pub theory_max_batch: i64,
    /// Of that batch (of one sequence where it is 0).
    pub theory_peak_bytes: i64,
    pub recompute_share: f64,
}

/// The best sizes of segments among all from one block to all of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Placement {
    pub layers: i64,
    /// The least computed again among those with which something fits; null where nothing does.
    pub for_capacity: Option<Segmented>,
    /// The largest batch, or the lowest peak among equals.
    pub for_memory: Segmented,
    /// The rule of thumb, segments of √L blocks (Chen et al. 2016, *Training Deep Nets with Sublinear Memory Cost*).
    pub square_root: Segmented,
}

/// Tries every size of segments. `None` where there is but one block.
pub fn placement(shape: &Shape, capacity_bytes: i64) -> Option<Placement> {
    if shape.layers < 2 {
        return None;
    }
    let all: Vec<Segmented> =
        (1..=shape.layers).map(|blocks| segmented(shape, blocks, capacity_bytes)).collect();
    let fitting = all.iter().filter(|size| size.theory_max_batch > 0);
    let by_compute = |one: &&Segmented, other: &&Segmented| {
        let larger_batch = other.theory_max_batch.cmp(&one.theory_max_batch);
        one.recompute_share.total_cmp(&other.recompute_share).then(larger_batch)
    };
    let for_memory = all.iter().min_by_key(|size| (-size.theory_max_batch, size.theory_peak_bytes))?;
    let root = (shape.layers as f64).sqrt().round() as usize;
    Some(Placement {
        layers: shape.layers,
        for_capacity: fitting.min_by(by_compute).cloned(),
        for_memory: for_memory.clone(),
        square_root: all.get(root.saturating_sub(1))?.clone(),
    })
}

fn segmented(shape: &Shape, blocks: i64, capacity_bytes: i64) -> Segmented {
    let checkpoint = if blocks == 1 { Checkpoint::Full } else { Checkpoint::Every(blocks) };
    let shape = Shape { checkpoint, ..*shape };
    let batch = shape.largest_batch_within(capacity_bytes).unwrap_or(0);
    Segmented {
        blocks,
        checkpoint: checkpoint.to_string(),
        theory_max_batch: batch,
        theory_peak_bytes: Shape { batch: batch.max(1), ..shape }.peak_bytes(),
        recompute_share: shape.recompute_share(),
    }
}
