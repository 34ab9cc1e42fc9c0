//! AdamW's update of many tensors by a kernel of our own (kernels/adamw.cu), on memory and streams that are given.

mod batch;
mod numbers;
mod tiling;

pub use batch::{Batch, Operands, TENSORS, batches};
pub use numbers::{Hyper, Numbers};
pub use tiling::{Tiling, TilingError};

use std::ffi::c_void;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::cache::Cache;
use super::error::DeviceError;
use super::gpu::{Function, Gpu, Launch, Module};
use super::loading::load;
use super::source::Source;

/// What parameters and their gradients, the two states, and what is updated are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    F32,
    Bf16,
    /// bf16 parameters, states in f32.
    Bf16F32States,
    /// bf16 parameters made from their f32 masters, states in f32.
    Bf16Masters,
}

impl Storage {
    pub const ALL: [Storage; 4] = [Storage::F32, Storage::Bf16, Storage::Bf16F32States, Storage::Bf16Masters];

    /// The kernel's name in kernels/adamw.cu.
    pub const fn kernel(self) -> &'static str {
        match self {
            Storage::F32 => "adamw_f32",
            Storage::Bf16 => "adamw_bf16",
            Storage::Bf16F32States => "adamw_bf16_f32_states",
            Storage::Bf16Masters => "adamw_bf16_masters",
        }
    }
}

/// The kernel on a GPU, ready to run. Never yet run on a card.
#[derive(Debug)]
pub struct AdamWKernel {
    module: Module,
    function: Function,
    tiling: Tiling,
}

impl AdamWKernel {
    /// Compiles the kernel for this GPU, or takes it from the cache, and loads it.
    pub fn load(
        gpu: &Arc<Gpu>,
        cache: &Cache,
        tiling: Tiling,
        storage: Storage,
    ) -> Result<Self, DeviceError> {
        let module = load(gpu, cache, &Source::adamw(tiling))?;
        let function = module.function(storage.kernel())?;
        Ok(AdamWKernel { module, function, tiling })
    }

    /// Queues the update number `count` (the first being 1) of all these tensors on a stream, 64 tensors a launch.
    /// Takes no memory of the GPU.
    ///
    /// # Safety
    /// 1. Every address in `operands` is that of as many elements, of the types that the kernel was loaded for, in
    ///    this GPU's memory; none overlaps another. Addresses of empty tensors, and of masters where there are none,
    ///    may be anything.
    /// 2. They stay until the work queued on `stream` is done, and no other stream touches them meanwhile.
    /// 3. `stream` is a `CUstream` of the GPU's primary context, or null.
    pub unsafe fn step(
        &self,
        operands: &[Operands],
        hyper: Hyper,
        count: NonZeroU64,
        stream: *mut c_void,
    ) -> Result<(), DeviceError> {
        let mut numbers = Numbers::new(hyper, count);
        for mut batch in batches(operands, self.tiling)? {
            let launch = Launch { blocks: batch.blocks(), threads: self.tiling.block_size(), stream };
            let mut arguments = [(&raw mut batch).cast(), (&raw mut numbers).cast()];
            // SAFETY: the function is the module's; the kernel takes a `Batch` and `Numbers`, laid out as here; the
            // rest is what the caller promises.
            unsafe { self.module.launch(self.function, launch, &mut arguments)? };
        }
        Ok(())
    }
}
