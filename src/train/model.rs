//! What the training loop needs of a model.

use tch::nn::Path;
use tch::{TchError, Tensor};

use super::config::Config;
use super::gpt::Gpt;
use super::mlp::MlpModel;
use crate::theory::ModelKind;

/// A model that turns a batch into a loss.
pub trait Model {
    /// The mean cross-entropy of predicting `targets` [B, T] from `tokens` [B, T], both int64.
    fn loss(&self, tokens: &Tensor, targets: &Tensor) -> Result<Tensor, TchError>;

    /// Names under which a weights file lists a variable again: (alias, variable).
    fn tied(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// State that is not trained and not part of a weights file.
    fn buffers(&self) -> Vec<(String, Tensor)> {
        Vec::new()
    }
}

/// Builds the model that `config` names.
pub fn build(root: &Path, config: &Config) -> Result<Box<dyn Model>, TchError> {
    Ok(match config.model {
        ModelKind::Gpt => Box::new(Gpt::new(root, config)?),
        ModelKind::Mlp => Box::new(MlpModel::new(root, config)?),
    })
}
