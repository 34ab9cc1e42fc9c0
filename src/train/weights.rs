//! Weights and batches as safetensors files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tch::nn::VarStore;
use tch::{Kind, Tensor};

use super::error::{TrainError, first_part};
use super::model::Model;

/// How many names an error lists before it says "and N more".
const NAMED: usize = 8;

/// Loads every variable of the model from a file that holds exactly those, by name. Aliases of tied
/// variables may be there, if they are the same tensor. Nothing is changed unless all of it fits.
pub fn load(path: &Path, store: &VarStore, model: &dyn Model) -> Result<(), TrainError> {
    let bad = |reason: String| TrainError::Weights { flag: "--init", path: path.to_owned(), reason };
    fs::File::open(path).map_err(|error| bad(error.to_string()))?;
    let read = Tensor::read_safetensors(path).map_err(|error| {
        bad(format!("not a safetensors file that can be read: {}", first_part(&error.to_string())))
    })?;
    let mut found: BTreeMap<String, Tensor> = read.into_iter().collect();
    untie(&mut found, model).map_err(bad)?;
    let variables: BTreeMap<String, Tensor> = store.variables().into_iter().collect();
    compare(&found, &variables).map_err(bad)?;
    tch::no_grad(|| {
        for (name, mut variable) in variables {
            variable.f_copy_(&found[&name])?;
        }
        Ok(())
    })
}

/// Takes out the aliases of tied variables, after checking that they are what they alias.
fn untie(found: &mut BTreeMap<String, Tensor>, model: &dyn Model) -> Result<(), String> {
    for (alias, name) in model.tied() {
        if let Some(tensor) = found.remove(*alias)
            && found.get(*name).is_some_and(|variable| *variable != tensor)
        {
            return Err(format!("{alias} differs from {name}, to which it is tied here"));
        }
    }
    Ok(())
}

fn compare(found: &BTreeMap<String, Tensor>, variables: &BTreeMap<String, Tensor>) -> Result<(), String> {
    let missing: Vec<_> = variables.keys().filter(|name| !found.contains_key(*name)).cloned().collect();
    let extra: Vec<_> = found.keys().filter(|name| !variables.contains_key(*name)).cloned().collect();
    let wrong: Vec<_> = variables
        .iter()
        .filter_map(|(name, variable)| Some((name, variable, found.get(name)?)))
        .filter(|(_, wanted, got)| wanted.size() != got.size() || wanted.kind() != got.kind())
        .map(|(name, wanted, got)| format!("{name} is {} and must be {}", looks(got), looks(wanted)))
        .collect();
    let parts = [("missing", missing), ("not of this model", extra), ("wrong shape or type", wrong)];
    let problems: Vec<_> = parts
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| listed(what, names))
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
}

fn looks(tensor: &Tensor) -> String {
    format!("{:?} {:?}", tensor.kind(), tensor.size())
}

fn listed(what: &str, names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => format!("{what}: {shown}"),
        more => format!("{what}: {shown} and {more} more"),
    }
}

/// Checks that a file can be written where weights or batches are to go at the end, so that a run does not
/// lose them after all its steps. Leaves an existing file as it is.
pub fn check_writable(path: &Path, flag: &'static str) -> Result<(), TrainError> {
    let existed = path.exists();
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| TrainError::Weights { flag, path: path.to_owned(), reason: error.to_string() })?;
    if !existed {
        // If it cannot be removed it is an empty file, soon to be filled.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Writes every variable, and the aliases of tied ones, so that nanoGPT's own strict loading takes it.
pub fn save(path: &Path, flag: &'static str, store: &VarStore, model: &dyn Model) -> Result<(), TrainError> {
    let mut tensors: BTreeMap<String, Tensor> = store.variables().into_iter().collect();
    for (alias, name) in model.tied() {
        let tied = tensors[*name].shallow_clone();
        tensors.insert((*alias).to_owned(), tied);
    }
    let named: Vec<_> = tensors.into_iter().map(|(name, tensor)| (name, tensor.detach())).collect();
    write(path, flag, &named)
}

/// Writes the windows that were trained on, as `tokens` of shape [batches, batch, seq + 1].
pub fn save_batches(path: &Path, windows: &[i64], batch: i64, seq: i64) -> Result<(), TrainError> {
    let tokens = Tensor::f_from_slice(windows)?.f_view([-1, batch, seq + 1])?;
    write(path, "--save-batches", &[("tokens".to_owned(), tokens.to_kind(Kind::Int64))])
}

fn write(path: &Path, flag: &'static str, tensors: &[(String, Tensor)]) -> Result<(), TrainError> {
    Tensor::write_safetensors(tensors, path).map_err(|error| TrainError::Weights {
        flag,
        path: path.to_owned(),
        reason: first_part(&error.to_string()),
    })
}
