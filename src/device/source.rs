//! The kernels' sources, which are part of the program, and what each is compiled with.

use super::adamw::Tiling;

/// Threads a block of the measuring kernels.
pub(super) const MEASURING_BLOCK: u32 = 256;
/// Values that a thread of `fma_peak` works on in turn. An FMA takes 4 cycles and a quarter of a multiprocessor issues one
/// a cycle for a warp: four would do for a single warp.
pub(super) const CHAINS: u32 = 16;

/// A file of kernels together with the numbers it is compiled with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) defines: Vec<(&'static str, u32)>,
}

impl Source {
    /// `kernels/adamw.cu`: AdamW's update of many tensors.
    pub fn adamw(tiling: Tiling) -> Source {
        Source {
            name: "adamw",
            text: include_str!("../../kernels/adamw.cu"),
            defines: vec![("BLOCK_SIZE", tiling.block_size()), ("TILE_SIZE", tiling.tile_size())],
        }
    }

    /// `kernels/bandwidth.cu`: copy and triad.
    pub fn bandwidth() -> Source {
        Source {
            name: "bandwidth",
            text: include_str!("../../kernels/bandwidth.cu"),
            defines: vec![("BLOCK_SIZE", MEASURING_BLOCK)],
        }
    }

    /// `kernels/fma.cu`: fused multiply-adds, nothing else.
    pub fn fma() -> Source {
        Source {
            name: "fma",
            text: include_str!("../../kernels/fma.cu"),
            defines: vec![("BLOCK_SIZE", MEASURING_BLOCK), ("CHAINS", CHAINS)],
        }
    }

    /// The name of its file, without the ending.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The compiler's flags for these numbers, the same for any compiler of C++.
    pub fn defines(&self) -> Vec<String> {
        self.defines.iter().map(|(name, value)| format!("-D{name}={value}")).collect()
    }
}
