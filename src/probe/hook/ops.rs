//! The names behind operators' numbers.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::Arc;

use super::ffi;

/// Keeps one copy of each name met.
#[derive(Debug, Default)]
pub struct OpNames(RefCell<Vec<Option<Arc<str>>>>);

impl OpNames {
    /// The name of an operator; `None` for 0, which is no operator, and for numbers never given.
    pub fn get(&self, number: u32) -> Option<Arc<str>> {
        let place = (number as usize).checked_sub(1)?;
        let mut known = self.0.borrow_mut();
        if place >= known.len() {
            known.resize(place + 1, None);
        }
        if known[place].is_none() {
            known[place] = name(number);
        }
        known[place].clone()
    }
}

fn name(number: u32) -> Option<Arc<str>> {
    // SAFETY: takes a number; the answer is null or a NUL-terminated string that lives as long as the program.
    let name = unsafe {
        let name = ffi::sl_op_name(number);
        (!name.is_null()).then(|| CStr::from_ptr(name))
    };
    Some(name?.to_string_lossy().into())
}
