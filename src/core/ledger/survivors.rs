//! What outlived the batch it was made in.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::batch::End;
use crate::record::{AllocationRow, Category};

/// Living blocks by their number, each filed.
#[derive(Debug, Default)]
pub struct Survivors {
    blocks: HashMap<u64, Survivor, BuildHasherDefault<IdHasher>>,
    /// Those that have ended since they were last taken.
    ended: Vec<u64>,
}

#[derive(Debug)]
struct Survivor {
    row: AllocationRow,
    end: Option<End>,
}

impl Survivors {
    pub fn admit(&mut self, id: u64, row: AllocationRow) {
        self.blocks.insert(id, Survivor { row, end: None });
    }

    pub fn category(&self, id: u64) -> Option<Category> {
        self.blocks.get(&id).map(|survivor| survivor.row.category)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut AllocationRow> {
        self.blocks.get_mut(&id).map(|survivor| &mut survivor.row)
    }

    /// Notes a block's end. Blocks from before the account, and those whose birth was lost, are not there.
    pub fn end(&mut self, id: u64, end: End) {
        if let Some(survivor) = self.blocks.get_mut(&id) {
            survivor.end = Some(end);
            self.ended.push(id);
        }
    }

    /// How many have ended.
    pub fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Takes those that have ended, in the order they did.
    pub fn take_ended(&mut self) -> impl Iterator<Item = (AllocationRow, End)> + '_ {
        let Survivors { blocks, ended } = self;
        ended.drain(..).filter_map(|id| {
            let Survivor { row, end } = blocks.remove(&id)?;
            Some((row, end?))
        })
    }

    /// In order of birth.
    pub fn rows(&self) -> Vec<AllocationRow> {
        let mut rows: Vec<_> = self.blocks.values().map(|survivor| survivor.row.clone()).collect();
        rows.sort_by_key(|row| row.id);
        rows
    }
}

/// Spreads block numbers, which come in order and from ourselves: a defence against chosen keys, which the
/// standard hasher is, would cost more than all the rest of an event.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // 2⁶⁴ over the golden ratio: neighbours land far apart, in the upper bits too.
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
