//! The allocator hook: every allocation and free of libtorch's CPU allocator, or of a CUDA device's caching
//! allocator, on any thread, as a stream of [`Event`](crate::ledger::Event)s.
//!
//! The C++ side watches and writes (`events.cpp` the stream, `crews.cpp` who works for whom, `allocator.cpp` the CPU,
//! `cuda.cpp` CUDA, `ops.cpp` the operators); this side starts it, marks the step's boundaries in the same stream,
//! and reads. The stream has room for 2,088,960 events of 48 bytes (the last 4,096 places are for markers). Where a phase
//! or a scope begins or ends with half of them taken, they are moved to a list, until it has 8 million of 40 bytes; what
//! does not fit is counted, not lost in silence.

mod copies;
#[cfg(test)]
mod cuda_tests;
#[cfg(test)]
pub mod double;
mod ffi;
mod ops;
mod stream;
mod version;

pub use copies::CopyObserver;
pub use ops::OpNames;
pub use version::{check_libtorch, torch_version};

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use tch::{Device, Tensor};

use self::stream::Stream;
use crate::ledger::kind;

/// Bytes of the observer's own memory that one unread event takes.
pub const BYTES_PER_EVENT: usize = 48;

/// What went wrong at the edge to libtorch.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    #[error("another probe of this process is recording; finish it first: libtorch has one CPU allocator")]
    AlreadyRecording,
    #[error("libtorch: {0}")]
    Libtorch(String),
    #[error(
        "libtorch {loaded} is loaded, and this was built for {built}, whose allocators and operators it watches; put \
         libtorch {built} first in LD_LIBRARY_PATH, or build again with LIBTORCH set to the one to use"
    )]
    OtherLibtorch { loaded: String, built: String },
}

static RECORDING: AtomicBool = AtomicBool::new(false);

/// What the hook is to watch.
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    /// Whose memory the account is of.
    pub device: Device,
    /// The most bytes that may be alive there; an allocation beyond fails.
    pub limit_bytes: Option<i64>,
    /// Whether operators are observed too.
    pub ops: bool,
}

/// What lies beside a caching allocator's account, and the part of it that is rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beside {
    pub rounding_bytes: i64,
    pub cached_bytes: i64,
    /// `None` where it was not asked for.
    pub non_torch_bytes: Option<i64>,
}

/// The hook while it records; one at a time in a process. Dropping it gives libtorch its allocator back.
#[derive(Debug)]
pub struct Hook {
    watch: Watch,
    dropped_before: u64,
    observes_ops: Cell<bool>,
    /// What it has written, to be read.
    pub stream: Stream,
}

impl Hook {
    /// Puts the recorder in front of libtorch's CPU allocator, or on a CUDA device's caching allocator.
    pub fn start(watch: Watch) -> Result<Hook, HookError> {
        if RECORDING.swap(true, Ordering::SeqCst) {
            return Err(HookError::AlreadyRecording);
        }
        // 0 is no limit there.
        let limit_bytes = watch.limit_bytes.map_or(0, |bytes| bytes.max(1));
        let mut total_bytes = 0;
        // SAFETY: plain values in, one number out; the flag above makes this the only recorder and reader.
        let (hook, failed) = unsafe {
            ffi::sl_train_here(true);
            let (observes_ops, stream) = Default::default();
            let hook = Hook { watch, dropped_before: ffi::sl_dropped(), observes_ops, stream };
            let failed = match watch.device {
                Device::Cuda(ordinal) => {
                    ffi::sl_cuda_start(ordinal as i32, limit_bytes, &raw mut total_bytes)
                }
                _ => ffi::sl_start(limit_bytes),
            };
            // From here on dropping the hook undoes what has been done.
            (hook, failed != 0 || (watch.ops && ffi::sl_observe_nodes(true) != 0))
        };
        if failed {
            return Err(last_error());
        }
        hook.observe_ops(true);
        Ok(hook)
    }

    /// Whether operators are observed on this thread, if they are to be at all; returns whether they were. In backward its
    /// nodes tell, and observing operators there too would cost much more.
    pub fn observe_ops(&self, on: bool) -> bool {
        if self.watch.ops {
            // SAFETY: a plain call. If it fails, operators stay unnamed.
            unsafe { ffi::sl_observe_ops(on) };
        }
        self.observes_ops.replace(on && self.watch.ops)
    }

    /// What lies beside the account now; `None` on a CPU, which has no caching allocator. `non_torch` says whether
    /// the driver is asked for the device's free memory, which may take it a millisecond.
    pub fn beside(&self, non_torch: bool) -> Result<Option<Beside>, HookError> {
        let Device::Cuda(_) = self.watch.device else { return Ok(None) };
        let mut beside =
            Beside { rounding_bytes: 0, cached_bytes: 0, non_torch_bytes: non_torch.then_some(0) };
        let Beside { rounding_bytes, cached_bytes, non_torch_bytes } = &mut beside;
        let non_torch_bytes = non_torch_bytes.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: writes numbers to places of ours, to the last one unless it is null.
        let failed = unsafe { ffi::sl_cuda_beside(rounding_bytes, cached_bytes, non_torch_bytes) };
        if failed != 0 { Err(last_error()) } else { Ok(Some(beside)) }
    }

    /// Puts a marker into the stream and returns its instant.
    pub fn mark(&self, kind: u8, payload: u64) -> i64 {
        // SAFETY: plain values in, a plain value out.
        unsafe { ffi::sl_mark(kind, payload) }
    }

    /// Files what follows under the scope with this number: on this thread, and on those that work for it.
    pub fn set_scope(&self, scope: u32) {
        // SAFETY: stores one atomic number.
        unsafe { ffi::sl_set_scope(scope) }
    }

    /// Events that did not fit since this hook was started.
    pub fn dropped(&self) -> u64 {
        // SAFETY: loads one atomic number.
        unsafe { ffi::sl_dropped() - self.dropped_before }
    }

    /// Nanoseconds that writing and reading back one event takes, on this machine, now: the median of
    /// several short rounds.
    pub fn measure_event_cost(&self) -> f64 {
        const ROUNDS: usize = 5;
        const EVENTS: usize = 1000;
        let mut events = Vec::with_capacity(EVENTS);
        let mut round = || {
            events.clear();
            let begin = now_ns();
            for _ in 0..EVENTS {
                self.mark(kind::STEP_END, 0);
            }
            self.stream.drain(&mut events);
            (now_ns() - begin) as f64 / EVENTS as f64
        };
        let mut costs: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
        costs.sort_by(f64::total_cmp);
        costs[ROUNDS / 2]
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // SAFETY: plain calls; their failure would only leave a recorder in place, not recording.
        unsafe {
            if self.watch.ops {
                ffi::sl_observe_ops(false);
                ffi::sl_observe_nodes(false);
            }
            ffi::sl_train_here(false);
            match self.watch.device {
                Device::Cuda(_) => ffi::sl_cuda_stop(),
                _ => ffi::sl_stop(),
            };
        }
        RECORDING.store(false, Ordering::SeqCst);
    }
}

/// The monotonic clock that events are stamped with, in nanoseconds.
pub fn now_ns() -> i64 {
    // SAFETY: reads a clock.
    unsafe { ffi::sl_now_ns() }
}

/// Puts a marker into the stream, from whatever thread that trains; does nothing on others, and while no hook records.
pub fn mark_training(kind: u8) {
    // SAFETY: a plain value in.
    unsafe { ffi::sl_mark_training(kind) };
}

/// Takes a time out of that of the backward node in progress on this thread, if there is one.
pub fn take_from_node(ns: i64) {
    // SAFETY: changes a thread-local number.
    unsafe { ffi::sl_take_from_node(ns) }
}

/// Says that the calling thread fetches batches: what it makes and hands over is `input`.
pub fn this_thread_loads() {
    // SAFETY: stores one thread-local number, and one of OpenMP's for this thread.
    unsafe { ffi::sl_load_here() }
}

/// Says that the calling thread trains beside the one that the probe was started on, in a program whose model runs on
/// several: what it makes in the step is filed as if made there, at either depth of trace. Operators and scopes are the
/// training thread's alone.
///
/// Without it a thread is taken for one beside training (which saves checkpoints, say), but for what backward on the
/// training thread releases.
pub fn this_thread_trains() {
    // SAFETY: stores thread-local numbers, and one of OpenMP's for this thread.
    unsafe { ffi::sl_serve_here() }
}

/// The numbers of the blocks behind a tensor: of its values, and of their indices if it is sparse. 0 where there is no
/// such block or it was made before any hook.
pub type Blocks = [u64; 3];

/// The blocks behind `tensors`, and those behind their gradients.
pub fn blocks_of(tensors: &[Tensor]) -> Result<(Vec<Blocks>, Vec<Blocks>), HookError> {
    let raw: Vec<ffi::RawTensor> = tensors.iter().map(|tensor| tensor.as_ptr() as ffi::RawTensor).collect();
    let (mut blocks, mut gradients) =
        (vec![Blocks::default(); raw.len()], vec![Blocks::default(); raw.len()]);
    // SAFETY: the pointers come from live `Tensor`s, which are `at::Tensor*`; all three arrays have
    // `raw.len()` elements.
    let failed =
        unsafe { ffi::sl_blocks(raw.as_ptr(), raw.len(), blocks.as_mut_ptr(), gradients.as_mut_ptr()) };
    if failed != 0 { Err(last_error()) } else { Ok((blocks, gradients)) }
}

/// Makes libtorch ready to work on CUDA. Its CUDA half must be loaded.
pub fn init_cuda() -> Result<(), HookError> {
    // SAFETY: takes nothing; libtorch's own initialisation, which it would do at its first CUDA tensor.
    if unsafe { ffi::sl_cuda_init() } != 0 { Err(last_error()) } else { Ok(()) }
}

/// The numbers of the blocks that libtorch has lent to cuBLAS (or, with `lt`, to cuBLASLt) on the watched device; none on a
/// CPU.
pub fn library_workspaces(lt: bool) -> Result<Vec<u64>, HookError> {
    let mut blocks = vec![0; 16];
    loop {
        let mut count = 0;
        // SAFETY: writes at most as many numbers as there is room for, and how many there are.
        let failed = unsafe { ffi::sl_cuda_workspaces(lt, blocks.as_mut_ptr(), blocks.len(), &mut count) };
        if failed != 0 {
            return Err(last_error());
        }
        let fits = count <= blocks.len();
        blocks.resize(count, 0);
        if fits {
            return Ok(blocks);
        }
    }
}

/// The stream that libtorch works on now, on the GPU with this number: a `CUstream`.
pub fn current_stream(device: i32) -> Result<*mut c_void, HookError> {
    let mut stream = std::ptr::null_mut();
    // SAFETY: writes one pointer to a place of ours.
    let failed = unsafe { ffi::sl_current_stream(device, &mut stream) };
    if failed != 0 { Err(last_error()) } else { Ok(stream) }
}

fn last_error() -> HookError {
    HookError::Libtorch(libtorch_error())
}

/// What the last failure of a shim on this thread was.
pub fn libtorch_error() -> String {
    // SAFETY: the message is a NUL-terminated string that lives until this thread's next failure.
    unsafe { CStr::from_ptr(ffi::sl_last_error()) }.to_string_lossy().into_owned()
}
