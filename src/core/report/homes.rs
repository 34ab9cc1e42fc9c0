//! Which module a block belongs to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::record::{AllocationRow, Category};

/// The modules of variables, by the variables' names.
#[derive(Debug, Clone)]
pub struct Homes {
    of_variables: HashMap<Arc<str>, Option<Arc<str>>>,
    ran: HashSet<Arc<str>>,
}

impl Homes {
    /// From everything that may be a variable, and the scopes that ran.
    pub fn new(lifetimes: &[AllocationRow], ran: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut homes = Homes { of_variables: HashMap::new(), ran: ran.into_iter().collect() };
        let variables =
            lifetimes.iter().filter(|row| matches!(row.category, Category::Parameter | Category::Buffer));
        for row in variables {
            if let Some(name) = &row.name {
                let home = row.scope.clone().or_else(|| homes.module_of(name));
                homes.of_variables.insert(name.clone(), home);
            }
        }
        homes
    }

    /// A variable belongs to the scope it was made in or, if it was made in none, to the module in its name;
    /// its gradient and its states belong there too. Everything else belongs to the scope it was made in.
    pub fn of(&self, row: &AllocationRow) -> Option<Arc<str>> {
        let Some(name) = &row.name else { return row.scope.clone() };
        match self.of_variables.get(name) {
            Some(home) => home.clone(),
            None => self.module_of(name).or_else(|| row.scope.clone()),
        }
    }

    /// A variable's name without its last part. A model's scopes seldom begin where its variables' names do
    /// (`h.0.attn` runs, `transformer.h.0.attn.c_attn.weight` is trained): leading parts are left out where
    /// what remains lies in a scope that ran.
    fn module_of(&self, name: &str) -> Option<Arc<str>> {
        let (module, _) = name.rsplit_once('.')?;
        let starts = std::iter::once(0).chain(module.match_indices('.').map(|(dot, _)| dot + 1));
        let mut tails = starts.map(|start| &module[start..]);
        Some(tails.find(|tail| self.lies_in_a_scope(tail)).unwrap_or(module).into())
    }

    fn lies_in_a_scope(&self, path: &str) -> bool {
        let ends = path.match_indices('.').map(|(dot, _)| dot).chain([path.len()]);
        ends.map(|end| &path[..end]).any(|prefix| self.ran.contains(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(name: &str, ran: &[&str]) -> Option<String> {
        let homes = Homes::new(&[], ran.iter().map(|&scope| Arc::from(scope)));
        homes.module_of(name).map(|module| module.to_string())
    }

    #[test]
    fn a_variable_lies_in_the_scope_that_its_name_ends_up_in() {
        let ran = ["h.0", "h.0.attn", "embed"];
        for (name, expected) in [
            ("transformer.h.0.attn.c_attn.weight", "h.0.attn.c_attn"),
            ("h.0.attn.bias", "h.0.attn"),
            ("transformer.h.1.attn.bias", "transformer.h.1.attn"),
            ("transformer.wte.weight", "transformer.wte"),
            ("module.embed.weight", "embed"),
            ("embedding.weight", "embedding"),
        ] {
            assert_eq!(home(name, &ran).as_deref(), Some(expected), "{name}");
        }
        assert_eq!(home("weight", &ran), None);
    }
}
