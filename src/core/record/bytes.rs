//! Bytes by category: the currency of the ledger.

use std::ops::{Index, IndexMut};

use super::Category;

/// One byte count for each [`Category`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByCategory([i64; Category::ALL.len()]);

impl ByCategory {
    /// The sum over all categories.
    pub fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    /// The sum over all categories but `unattributed`: what is known for what it is.
    pub fn attributed(&self) -> i64 {
        self.total() - self[Category::Unattributed]
    }

    /// Each category with its bytes, in the order of [`Category::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Category, i64)> + '_ {
        Category::ALL.iter().copied().zip(self.0)
    }
}

impl Index<Category> for ByCategory {
    type Output = i64;

    fn index(&self, category: Category) -> &i64 {
        &self.0[category as usize]
    }
}

impl IndexMut<Category> for ByCategory {
    fn index_mut(&mut self, category: Category) -> &mut i64 {
        &mut self.0[category as usize]
    }
}
