//! The variables whose blocks, and whose gradients' blocks, are known for what they are.

use std::collections::HashSet;
use std::sync::Arc;

use tch::Tensor;
use tch::nn::VarStore;

use super::hook::{self, Blocks, HookError};
use crate::ledger::{Filing, Identity};
use crate::record::{Category, Detail};

/// Variables of one or more `VarStore`s.
#[derive(Debug, Default)]
pub struct Watched {
    tensors: Vec<Tensor>,
    names: Vec<Arc<str>>,
    categories: Vec<Category>,
}

impl Watched {
    /// Adds every variable of a store: trained (or frozen) ones are parameters, the others buffers.
    pub fn add(&mut self, store: &VarStore) {
        let trainable: HashSet<_> = store.trainable_variables().iter().map(storage).collect();
        let mut variables: Vec<_> = store.variables().into_iter().collect();
        variables.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, tensor) in variables {
            let trained = trainable.contains(&storage(&tensor));
            self.push(&name, tensor, if trained { Category::Parameter } else { Category::Buffer });
        }
    }

    /// Adds tensors that are module state without being in a store.
    pub fn add_buffers(&mut self, buffers: &[(String, Tensor)]) {
        for (name, tensor) in buffers {
            self.push(name, tensor.shallow_clone(), Category::Buffer);
        }
    }

    fn push(&mut self, name: &str, tensor: Tensor, category: Category) {
        self.names.push(name.into());
        self.tensors.push(tensor);
        self.categories.push(category);
    }

    /// Trained scalars, tied ones once; `None` while nothing is watched.
    pub fn parameters(&self) -> Option<i64> {
        let mut seen = HashSet::new();
        let own = |(tensor, _): &(&Tensor, _)| seen.insert(storage(tensor));
        let parameters =
            self.tensors.iter().zip(&self.categories).filter(|(_, c)| **c == Category::Parameter);
        (!self.tensors.is_empty())
            .then(|| parameters.filter(own).map(|(tensor, _)| tensor.numel() as i64).sum())
    }

    /// The blocks that the variables and their gradients occupy now.
    pub fn identities(&self) -> Result<Vec<Identity>, HookError> {
        let (blocks, gradients) = hook::blocks_of(&self.tensors)?;
        let identity = |i: usize, id, category| Identity {
            id,
            filing: Filing::plain(category),
            name: self.names[i].clone(),
        };
        let gradients = known(&gradients).map(|(i, id)| identity(i, id, Category::Gradient));
        let variables = known(&blocks).map(|(i, id)| identity(i, id, self.categories[i]));
        Ok(gradients.chain(variables).collect())
    }
}

/// The blocks that tensors of the optimizer occupy now, each with the name of the variable it belongs to.
pub fn states<'a>(
    states: impl IntoIterator<Item = (&'a str, &'a Tensor)>,
    detail: Option<Detail>,
) -> Result<Vec<Identity>, HookError> {
    let (names, tensors): (Vec<&str>, Vec<Tensor>) =
        states.into_iter().map(|(name, tensor)| (name, tensor.shallow_clone())).unzip();
    let (blocks, _) = hook::blocks_of(&tensors)?;
    let filing = Filing { category: Category::AdamState, detail };
    Ok(known(&blocks).map(|(i, id)| Identity { id, filing, name: names[i].into() }).collect())
}

/// The blocks that there are, each with the place of the tensor it is behind.
fn known(blocks: &[Blocks]) -> impl Iterator<Item = (usize, u64)> + '_ {
    let each = |(i, ids): (usize, &Blocks)| ids.map(|id| (i, id));
    blocks.iter().enumerate().flat_map(each).filter(|(_, id)| *id != 0)
}

/// What CUDA's libraries have been lent for good. Each thread that computes has its own, so that of backward's is made in
/// backward, outlives it, and is no gradient.
pub fn library_workspaces() -> Result<Vec<Identity>, HookError> {
    let mut known = Vec::new();
    for (lt, name) in [(false, "cublas"), (true, "cublaslt")] {
        let blocks = hook::library_workspaces(lt)?;
        let name: Arc<str> = name.into();
        let filing = Filing::workspace(Detail::LibraryWorkspace);
        known.extend(blocks.into_iter().map(|id| Identity { id, filing, name: name.clone() }));
    }
    Ok(known)
}

fn storage(tensor: &Tensor) -> usize {
    tensor.data_ptr() as usize
}
