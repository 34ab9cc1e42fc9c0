//! The kernels, as far as they can be proven without a GPU: each is compiled by NVRTC and assembled for three kinds of
//! cards, and each runs, compiled from the same source as C++ for the host, against references in double precision.
#![cfg(feature = "torch")]

mod adamw;
mod barrier;
mod bf16;
mod driver;
mod fused;
mod host;
mod measuring;
mod ptx;
mod tensors;
