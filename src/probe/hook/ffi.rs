//! The C face of the hook's C++ files, name for name. Safe wrappers are in the parent module.

use std::ffi::{c_char, c_int, c_void};

use super::Blocks;
use crate::ledger::Event;

/// An `at::Tensor` on libtorch's side.
pub type RawTensor = *const c_void;

// guarded.h
unsafe extern "C" {
    pub fn sl_last_error() -> *const c_char;
}

// events.cpp
unsafe extern "C" {
    pub fn sl_now_ns() -> i64;
    pub fn sl_mark(kind: u8, payload: u64) -> i64;
    pub fn sl_set_scope(scope: u32);
    pub fn sl_mark_training(kind: u8);
    pub fn sl_begin_account(total_bytes: *mut i64, next_block: *mut u64);
    pub fn sl_dropped() -> u64;
    pub fn sl_pending() -> usize;
    pub fn sl_drain(out: *mut Event, room: usize) -> usize;
}

// crews.cpp
unsafe extern "C" {
    pub fn sl_load_here();
    pub fn sl_serve_here();
    pub fn sl_train_here(on: bool);
}

// allocator.cpp
unsafe extern "C" {
    pub fn sl_start(limit_bytes: i64) -> c_int;
    pub fn sl_stop() -> c_int;
    pub fn sl_blocks(
        tensors: *const RawTensor,
        count: usize,
        blocks: *mut Blocks,
        gradients: *mut Blocks,
    ) -> c_int;
    pub fn sl_current_stream(device: c_int, stream: *mut *mut c_void) -> c_int;
    pub fn sl_torch_version() -> *const c_char;
    pub fn sl_loaded_torch_version() -> u64;
}

// ops.cpp
unsafe extern "C" {
    pub fn sl_observe_nodes(on: bool) -> c_int;
    pub fn sl_observe_ops(on: bool) -> c_int;
    pub fn sl_take_from_node(ns: i64);
    pub fn sl_op_name(number: u32) -> *const c_char;
    pub fn sl_observe_copies(handle: *mut u64) -> c_int;
    pub fn sl_ignore_copies(handle: u64) -> c_int;
}

// cuda.cpp
unsafe extern "C" {
    pub fn sl_cuda_init() -> c_int;
    pub fn sl_cuda_start(device: c_int, limit_bytes: i64, total_bytes: *mut i64) -> c_int;
    pub fn sl_cuda_stop() -> c_int;
    pub fn sl_cuda_beside(rounding: *mut i64, cached: *mut i64, non_torch: *mut i64) -> c_int;
}

// workspaces.cpp
unsafe extern "C" {
    pub fn sl_cuda_workspaces(lt: bool, blocks: *mut u64, room: usize, count: *mut usize) -> c_int;
}
