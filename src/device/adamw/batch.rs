//! What a launch of AdamW's kernel is told: pure values, laid out as kernels/adamw.cu reads them.

use super::super::error::DeviceError;
use super::tiling::Tiling;

/// Tensors of one launch; the same in kernels/adamw.cu.
pub const TENSORS: usize = 64;

/// The most blocks that a launch can have (CUDA C++ Programming Guide, "Compute Capabilities").
const MAX_BLOCKS: u64 = i32::MAX as u64;

/// One parameter and what its update reads and writes, by their addresses in the card's memory: each of `numel`
/// elements, one after the other in the same order, but for `step`, a single f32.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operands {
    pub param: u64,
    pub grad: u64,
    pub exp_avg: u64,
    pub exp_avg_sq: u64,
    /// The f32 copy that is updated in the parameter's place; 0 where there is none.
    pub master: u64,
    /// The counter, which is set to the number of the step.
    pub step: u64,
    pub numel: u64,
}

/// The tensors of one launch; `Batch` in kernels/adamw.cu.
#[repr(C)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    params: [u64; TENSORS],
    grads: [u64; TENSORS],
    exp_avgs: [u64; TENSORS],
    exp_avg_sqs: [u64; TENSORS],
    masters: [u64; TENSORS],
    steps: [u64; TENSORS],
    numels: [u64; TENSORS],
    first_chunks: [u32; TENSORS + 1],
}

impl Batch {
    const EMPTY: Batch = Batch {
        params: [0; TENSORS],
        grads: [0; TENSORS],
        exp_avgs: [0; TENSORS],
        exp_avg_sqs: [0; TENSORS],
        masters: [0; TENSORS],
        steps: [0; TENSORS],
        numels: [0; TENSORS],
        first_chunks: [0; TENSORS + 1],
    };

    /// Blocks of the launch: one a chunk.
    pub fn blocks(&self) -> u32 {
        self.first_chunks[TENSORS]
    }

    /// Puts a tensor of so many chunks into a free place; those after it begin where it ends.
    fn put(&mut self, place: usize, operands: &Operands, chunks: u32) {
        self.params[place] = operands.param;
        self.grads[place] = operands.grad;
        self.exp_avgs[place] = operands.exp_avg;
        self.exp_avg_sqs[place] = operands.exp_avg_sq;
        self.masters[place] = operands.master;
        self.steps[place] = operands.step;
        self.numels[place] = operands.numel;
        let end = self.blocks() + chunks;
        self.first_chunks[place + 1..].fill(end);
    }
}

/// The launches that update all these tensors. An empty tensor has a chunk too, whose block counts its step.
///
/// # Errors
/// A tensor of more chunks than a launch can have blocks: at least 10¹² elements.
pub fn batches(all: &[Operands], tiling: Tiling) -> Result<Vec<Batch>, DeviceError> {
    let mut batches: Vec<Batch> = Vec::with_capacity(all.len().div_ceil(TENSORS));
    let mut place = TENSORS;
    for operands in all {
        let chunks = chunks(operands.numel, tiling)?;
        let full = |batch: &Batch| u64::from(batch.blocks()) + u64::from(chunks) > MAX_BLOCKS;
        if place == TENSORS || batches.last().is_none_or(full) {
            batches.push(Batch::EMPTY);
            place = 0;
        }
        if let Some(batch) = batches.last_mut() {
            batch.put(place, operands, chunks);
        }
        place += 1;
    }
    Ok(batches)
}

fn chunks(elements: u64, tiling: Tiling) -> Result<u32, DeviceError> {
    let chunks = elements.div_ceil(tiling.chunk()).max(1);
    let fitting = u32::try_from(chunks).ok().filter(|&chunks| u64::from(chunks) <= MAX_BLOCKS);
    fitting.ok_or(DeviceError::TooManyChunks { elements })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors(numels: &[u64]) -> Vec<Operands> {
        let tensor = |(place, &numel): (usize, &u64)| Operands {
            param: place as u64 + 1,
            numel,
            ..Operands::default()
        };
        numels.iter().enumerate().map(tensor).collect()
    }

    fn tiling() -> Tiling {
        Tiling::new(128, 8).unwrap()
    }

    #[test]
    fn each_tensor_has_the_chunks_that_cover_it_and_at_least_one() {
        let batch = batches(&tensors(&[1, 1024, 1025, 0, 5000]), tiling()).unwrap().remove(0);
        assert_eq!(batch.first_chunks[..7], [0, 1, 2, 4, 5, 10, 10]);
        assert_eq!((batch.blocks(), batch.params[4], batch.params[5]), (10, 5, 0));
    }

    #[test]
    fn more_tensors_than_a_launch_takes_make_further_ones() {
        for (count, launches) in [(0, 0), (1, 1), (64, 1), (65, 2), (129, 3)] {
            let all = batches(&tensors(&vec![10; count]), tiling()).unwrap();
            assert_eq!(all.len(), launches, "{count}");
            let params: Vec<u64> =
                all.iter().flat_map(|batch| batch.params).filter(|&param| param > 0).collect();
            assert_eq!(params, (1..=count as u64).collect::<Vec<_>>());
            assert_eq!(all.iter().map(Batch::blocks).sum::<u32>() as usize, count);
        }
    }

    #[test]
    fn no_launch_has_more_blocks_than_it_can() {
        let most = MAX_BLOCKS * tiling().chunk();
        let all = batches(&tensors(&[most - 1, 1, most]), tiling()).unwrap();
        assert_eq!(all.iter().map(Batch::blocks).collect::<Vec<_>>(), [i32::MAX as u32, 1, i32::MAX as u32]);
        let error = batches(&tensors(&[most + 1]), tiling()).unwrap_err().to_string();
        assert!(error.contains(&(most + 1).to_string()), "{error}");
    }

    #[test]
    fn the_arguments_fit_what_all_cards_take() {
        assert!(size_of::<Batch>() + size_of::<super::super::Numbers>() <= 4096);
    }
}
