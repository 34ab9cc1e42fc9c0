//! The C face of `hooks.cpp`, and what it calls.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use tch::{TchError, Tensor};

use super::super::shim::{RawTensor, checked, raw};
use super::segment::Segment;

type CppString = c_void;

/// What the frame can do with a segment; the same in frame.h.
#[repr(C)]
struct Calls {
    recompute: unsafe extern "C" fn(*const c_void, *const RawTensor, usize, *mut CppString) -> c_int,
    drop: unsafe extern "C" fn(*mut c_void),
}

static CALLS: Calls = Calls { recompute: recompute_segment, drop: drop_segment };

unsafe extern "C" {
    fn sl_grad_enabled() -> bool;
    fn sl_checkpoint_enter(
        name: *const c_char,
        length: usize,
        calls: *const Calls,
        segment: *mut c_void,
        inputs: *const RawTensor,
        count: usize,
        stop_early: bool,
        first_run: *mut *mut c_void,
    ) -> c_int;
    fn sl_checkpoint_finish(first_run: *mut c_void, outputs: *const RawTensor, count: usize) -> c_int;
    fn sl_checkpoint_leave(first_run: *mut c_void);
    fn sl_set_text(text: *mut CppString, bytes: *const c_char, length: usize);
}

/// Whether operators on this thread save tensors for backward.
pub fn grad_enabled() -> bool {
    // SAFETY: reads a thread-local flag.
    unsafe { sl_grad_enabled() }
}

/// A segment's first run; while it lives, operators on this thread save promises instead of tensors.
pub struct FirstRun {
    /// The shim's struct, which is bound to this thread.
    raw: *mut c_void,
    /// Owned by the frame, which `raw` holds.
    segment: *const Segment,
}

impl FirstRun {
    /// Saves the inputs and the surroundings, and begins.
    pub fn enter(segment: Segment, inputs: &[Tensor], stop_early: bool) -> Result<Self, TchError> {
        let inputs = raw(inputs);
        let name = segment.name().to_owned();
        let segment = Box::into_raw(Box::new(segment));
        let mut first_run = ptr::null_mut();
        // SAFETY: `name` and the list of live tensors outlive the call; the segment is given away, to be dropped
        // by `drop_segment`, also if this fails.
        let failed = unsafe {
            sl_checkpoint_enter(
                name.as_ptr().cast(),
                name.len(),
                &raw const CALLS,
                segment.cast(),
                inputs.as_ptr(),
                inputs.len(),
                stop_early,
                &raw mut first_run,
            )
        };
        checked(failed)?;
        Ok(FirstRun { raw: first_run, segment })
    }

    pub fn segment(&self) -> &Segment {
        // SAFETY: `raw` holds the frame, and the frame the segment, as long as `self` lives. Until `finish` the frame
        // lets no backward run it, so this thread is the only one to use it.
        unsafe { &*self.segment }
    }

    /// From here on backward may run the segment.
    pub fn finish(self, outputs: &[Tensor]) -> Result<(), TchError> {
        let outputs = raw(outputs);
        // SAFETY: `raw` comes from `sl_checkpoint_enter`; the tensors live.
        checked(unsafe { sl_checkpoint_finish(self.raw, outputs.as_ptr(), outputs.len()) })
    }
}

impl Drop for FirstRun {
    fn drop(&mut self) {
        // SAFETY: `raw` comes from `sl_checkpoint_enter`, on this thread, and is not used again. Guards are dropped in
        // the opposite order of their making.
        unsafe { sl_checkpoint_leave(self.raw) }
    }
}

/// Runs a segment again.
///
/// # Safety
/// `segment` comes from [`FirstRun::enter`] and is not dropped; no other thread uses it during the call (the frame
/// has a lock for that). `inputs` are `count` live tensors, and `error` is a C++ string.
unsafe extern "C" fn recompute_segment(
    segment: *const c_void,
    inputs: *const RawTensor,
    count: usize,
    error: *mut CppString,
) -> c_int {
    let work = || {
        // SAFETY: as the caller vouches.
        let segment = unsafe { &*segment.cast::<Segment>() };
        // SAFETY: there are `count` live tensors; these are new references to them.
        let input = |i| unsafe { Tensor::clone_from_ptr((*inputs.add(i)).cast()) };
        segment.recompute((0..count).map(input).collect())
    };
    // The segment's own panics are errors by now; one of ours must not go further either.
    let outcome =
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("panicked in recomputation".to_owned()));
    let Err(reason) = outcome else { return 0 };
    // SAFETY: copies the bytes, which live until the end of this function, into the caller's string.
    unsafe { sl_set_text(error, reason.as_ptr().cast(), reason.len()) };
    1
}

/// Drops a segment.
///
/// # Safety
/// `segment` comes from [`FirstRun::enter`], and this is its last use.
unsafe extern "C" fn drop_segment(segment: *mut c_void) {
    // SAFETY: as the caller vouches; it was boxed there.
    let segment = unsafe { Box::from_raw(segment.cast::<Segment>()) };
    // What a closure captured may panic when dropped; nobody is left to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(segment)));
}
