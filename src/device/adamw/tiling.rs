//! How AdamW's kernel divides tensors.

use std::fmt::Display;

/// Threads a block, and elements a thread: what the kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    block_size: u32,
    tile_size: u32,
}

/// A tiling that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} {value}: {allowed}")]
pub struct TilingError {
    /// `block_size` or `tile_size`.
    pub name: &'static str,
    pub value: u32,
    pub allowed: String,
}

impl Tiling {
    pub const BLOCK_SIZES: [u32; 4] = [128, 256, 512, 1024];
    pub const TILE_SIZES: [u32; 4] = [4, 8, 16, 32];
    /// Elements a block at most. A thread holds its tile of four arrays in registers, and a block has 65,536 of them:
    /// beyond this they would spill into memory, which this kernel is there to spare.
    pub const MAX_CHUNK: u32 = 8192;

    /// A tiling that is offered: both sizes of the lists, and their product within [`Tiling::MAX_CHUNK`].
    pub fn new(block_size: u32, tile_size: u32) -> Result<Tiling, TilingError> {
        one_of("block_size", block_size, &Tiling::BLOCK_SIZES)?;
        one_of("tile_size", tile_size, &Tiling::TILE_SIZES)?;
        if block_size * tile_size > Tiling::MAX_CHUNK {
            let most = Tiling::MAX_CHUNK / block_size;
            let allowed = format!(
                "allowed with {block_size} threads a block: up to {most}, or the threads' registers do not suffice"
            );
            return Err(TilingError { name: "tile_size", value: tile_size, allowed });
        }
        Ok(Tiling { block_size, tile_size })
    }

    /// All that are offered.
    pub fn all() -> impl Iterator<Item = Tiling> {
        let pairs =
            Tiling::BLOCK_SIZES.into_iter().flat_map(|block| Tiling::TILE_SIZES.map(|tile| (block, tile)));
        pairs.filter_map(|(block, tile)| Tiling::new(block, tile).ok())
    }

    pub const fn block_size(self) -> u32 {
        self.block_size
    }

    pub const fn tile_size(self) -> u32 {
        self.tile_size
    }

    /// Elements that a block takes.
    pub(super) fn chunk(self) -> u64 {
        u64::from(self.block_size) * u64::from(self.tile_size)
    }
}

/// 256 threads of 8 elements. Never tuned on a card: it keeps 128 bytes of each thread under way, and the multiprocessor
/// half full.
impl Default for Tiling {
    fn default() -> Self {
        Tiling { block_size: 256, tile_size: 8 }
    }
}

fn one_of(name: &'static str, value: u32, sizes: &[u32]) -> Result<(), TilingError> {
    match sizes.contains(&value) {
        true => Ok(()),
        false => Err(TilingError { name, value, allowed: format!("allowed: {}", list(sizes)) }),
    }
}

fn list(values: &[impl Display]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_what_the_registers_hold() {
        let all: Vec<_> = Tiling::all().map(|tiling| (tiling.block_size, tiling.tile_size)).collect();
        assert_eq!(all.len(), 13);
        assert!(
            all.contains(&(1024, 8)) && all.contains(&(256, 32)) && !all.contains(&(1024, 16)),
            "{all:?}"
        );
        let default = Tiling::default();
        assert_eq!(Tiling::new(default.block_size, default.tile_size), Ok(default));
    }

    #[test]
    fn what_is_not_offered_is_named_with_what_is() {
        let message = |block, tile| Tiling::new(block, tile).unwrap_err().to_string();
        assert_eq!(message(100, 4), "block_size 100: allowed: 128, 256, 512, 1024");
        assert_eq!(message(128, 0), "tile_size 0: allowed: 4, 8, 16, 32");
        assert!(message(1024, 16).starts_with("tile_size 16: allowed with 1024 threads a block: up to 8"));
    }
}
