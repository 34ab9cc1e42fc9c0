//! Numbers for scopes: a dotted path each, made once and compared as a number ever after.

use std::collections::HashMap;
use std::sync::Arc;

use super::timing;
use crate::ledger::Site;

/// The number of "no scope".
pub const ROOT: u32 = 0;

/// What a scope's number stands for.
#[derive(Debug, Clone)]
pub struct ScopeName {
    /// The dotted path, such as `h.0.attn`.
    pub path: Arc<str>,
    /// The enclosing scope; [`ROOT`] for none.
    pub parent: u32,
    pub nvtx: timing::Name,
}

/// All scopes met so far.
#[derive(Debug)]
pub struct Names {
    scopes: Vec<ScopeName>,
    /// The children of each scope by their last part.
    children: Vec<HashMap<Box<str>, u32>>,
}

impl Names {
    pub fn new() -> Self {
        let root = ScopeName { path: "".into(), parent: ROOT, nvtx: timing::register("") };
        Names { scopes: vec![root], children: vec![HashMap::new()] }
    }

    /// The number of scope `name` inside scope `parent`; `parent` itself once there are too many to number.
    pub fn number(&mut self, parent: u32, name: &str) -> u32 {
        if let Some(&number) = self.children[parent as usize].get(name) {
            return number;
        }
        if self.scopes.len() > Site::MAX_SCOPE as usize {
            return parent;
        }
        let number = self.scopes.len() as u32;
        let path: Arc<str> = match parent {
            ROOT => name.into(),
            _ => format!("{}.{name}", self.scopes[parent as usize].path).into(),
        };
        let nvtx = timing::register(&path);
        self.scopes.push(ScopeName { path, parent, nvtx });
        self.children.push(HashMap::new());
        self.children[parent as usize].insert(name.into(), number);
        number
    }

    pub fn get(&self, number: u32) -> &ScopeName {
        &self.scopes[number as usize]
    }

    /// The dotted path of a scope; `None` for [`ROOT`] and for numbers never given.
    pub fn path(&self, number: u32) -> Option<Arc<str>> {
        (number != ROOT).then(|| self.scopes.get(number as usize).map(|scope| scope.path.clone())).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_dotted_and_numbers_are_stable() {
        let mut names = Names::new();
        let block = names.number(ROOT, "h.0");
        let attention = names.number(block, "attn");
        assert_eq!(names.path(attention).as_deref(), Some("h.0.attn"));
        assert_eq!(names.number(block, "attn"), attention);
        assert_ne!(names.number(ROOT, "attn"), attention);
        assert_eq!((names.path(ROOT), names.path(999)), (None, None));
    }
}
