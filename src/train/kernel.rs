//! AdamW by a kernel of our own, on libtorch's memory and its current stream. Never yet run on a card.

use std::ffi::{c_int, c_void};
use std::num::NonZeroU64;

use tch::{Device, Kind, TchError, Tensor};

use super::config::AdamWConfig;
use super::error::TrainError;
use super::shim::{RawTensor, checked};
use crate::device::{AdamWKernel, Cache, Gpu, Hyper, Operands, Storage, Tiling, TilingError};
use crate::theory::{AdamWKind, SetupError};

unsafe extern "C" {
    #[allow(clippy::too_many_arguments)]
    fn sl_adamw_operands(
        parameters: *const RawTensor,
        masters: *const RawTensor,
        exp_avgs: *const RawTensor,
        exp_avg_sqs: *const RawTensor,
        steps: *const RawTensor,
        count: usize,
        layout: *const Layout,
        operands: *mut Operands,
    ) -> c_int;
    // Of the probe's hook.
    fn sl_current_stream(device: c_int, stream: *mut *mut c_void) -> c_int;
}

/// What a kernel was loaded for, and all tensors that it is given must be; `AdamWLayout` in adamw.cpp.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    half_params: i32,
    half_states: i32,
    masters: i32,
    /// Of the GPU; -1 is the CPU, on which tests can have the shim look at tensors.
    ordinal: i32,
}

impl Layout {
    fn new(storage: Storage, ordinal: i32) -> Layout {
        Layout {
            half_params: i32::from(storage != Storage::F32),
            half_states: i32::from(storage == Storage::Bf16),
            masters: i32::from(storage == Storage::Bf16Masters),
            ordinal,
        }
    }
}

/// The tensors of an update by their pointers, as many in each list.
#[derive(Debug)]
pub struct Lists {
    pub parameters: Vec<RawTensor>,
    pub masters: Option<Vec<RawTensor>>,
    pub exp_avgs: Vec<RawTensor>,
    pub exp_avg_sqs: Vec<RawTensor>,
    pub steps: Vec<RawTensor>,
}

impl Lists {
    /// Null where there are no masters.
    pub fn masters(&self) -> *const RawTensor {
        self.masters.as_ref().map_or(std::ptr::null(), |masters| masters.as_ptr())
    }
}

/// The kernel for some parameters, and the number of its next update.
#[derive(Debug)]
pub struct KernelAdamW {
    kernel: AdamWKernel,
    layout: Layout,
    hyper: Hyper,
    next: NonZeroU64,
}

impl KernelAdamW {
    /// For parameters like this one, with states of this type.
    ///
    /// # Errors
    /// On a CPU, and for types that the kernel does not know.
    pub fn load(config: &AdamWConfig, parameter: &Tensor, state: Kind) -> Result<Self, TrainError> {
        let Device::Cuda(ordinal) = parameter.device() else {
            return Err(SetupError::kernel_needs_gpu().into());
        };
        let ordinal = i32::try_from(ordinal).map_err(|_| SetupError::kernel_needs_gpu())?;
        let storage = storage(parameter.kind(), state, config.master_weights)?;
        let AdamWConfig { lr, betas, eps, weight_decay, .. } = *config;
        let gpu = Gpu::open(ordinal)?;
        let kernel = AdamWKernel::load(&gpu, &Cache::standard(), config.tiling()?, storage)?;
        let layout = Layout::new(storage, ordinal);
        Ok(KernelAdamW {
            kernel,
            layout,
            hyper: Hyper { lr, betas, eps, weight_decay },
            next: NonZeroU64::MIN,
        })
    }

    /// Queues one update behind what libtorch has queued.
    pub fn step(&mut self, lists: &Lists) -> Result<(), TrainError> {
        let operands = operands(lists, &self.layout)?;
        let mut stream = std::ptr::null_mut();
        // SAFETY: writes one pointer to a place of ours.
        checked(unsafe { sl_current_stream(self.layout.ordinal, &raw mut stream) })?;
        // SAFETY: the shim has checked of each tensor that it is a contiguous one of the GPU, of the type that the kernel
        // was loaded for, and of as many elements as are read. Their memory is the caching allocator's, which gives it to
        // nobody before what is queued on this stream, libtorch's own, has run.
        unsafe { self.kernel.step(&operands, self.hyper, self.next, stream)? };
        self.next = self.next.saturating_add(1);
        Ok(())
    }
}

/// Where the tensors lie, all of which must be of this layout. Says to libtorch that they change.
fn operands(lists: &Lists, layout: &Layout) -> Result<Vec<Operands>, TchError> {
    let mut operands = vec![Operands::default(); lists.parameters.len()];
    // SAFETY: all lists hold as many pointers to live tensors (or, for masters, the list is null), and there is room
    // for as many operands; the shim returns libtorch's errors.
    checked(unsafe {
        sl_adamw_operands(
            lists.parameters.as_ptr(),
            lists.masters(),
            lists.exp_avgs.as_ptr(),
            lists.exp_avg_sqs.as_ptr(),
            lists.steps.as_ptr(),
            operands.len(),
            &raw const *layout,
            operands.as_mut_ptr(),
        )
    })?;
    Ok(operands)
}

fn storage(parameter: Kind, state: Kind, masters: bool) -> Result<Storage, TrainError> {
    match (parameter, state, masters) {
        (Kind::Float, Kind::Float, false) => Ok(Storage::F32),
        (Kind::BFloat16, Kind::BFloat16, false) => Ok(Storage::Bf16),
        (Kind::BFloat16, Kind::Float, false) => Ok(Storage::Bf16F32States),
        (Kind::BFloat16, Kind::Float, true) => Ok(Storage::Bf16Masters),
        _ => Err(TrainError::flag(
            "--adamw",
            AdamWKind::Kernel,
            format!(
                "updates f32 parameters, or bf16 ones with states in bf16 or f32, and not {parameter:?} with states in \
                 {state:?}; use --adamw fused"
            ),
        )),
    }
}

impl AdamWConfig {
    /// How the kernel divides the work.
    ///
    /// # Errors
    /// Sizes that are not offered, or for another way than the kernel.
    pub fn tiling(&self) -> Result<Tiling, TrainError> {
        let sizes = [("--block-size", self.block_size), ("--tile-size", self.tile_size)];
        let given = sizes.into_iter().find_map(|(flag, size)| size.map(|size| (flag, size)));
        match given {
            Some((flag, size)) if self.kind != AdamWKind::Kernel => {
                let allowed = format!("is for --adamw kernel, and this is --adamw {}", self.kind);
                Err(TrainError::flag(flag, size, allowed))
            }
            _ => {
                let default = Tiling::default();
                let block_size = self.block_size.unwrap_or(default.block_size());
                Ok(Tiling::new(block_size, self.tile_size.unwrap_or(default.tile_size()))?)
            }
        }
    }
}

impl From<TilingError> for TrainError {
    fn from(error: TilingError) -> Self {
        let flag = if error.name == "block_size" { "--block-size" } else { "--tile-size" };
        TrainError::flag(flag, error.value, error.allowed)
    }
}

#[cfg(test)]
#[path = "kernel_tests.rs"]
mod tests;
