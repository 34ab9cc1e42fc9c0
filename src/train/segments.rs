//! A model's parts in a row, as they are or as checkpointed segments.

use tch::{TchError, Tensor};

use super::checkpoint::Checkpoint;

/// One of a row of parts: a block, a layer.
pub trait Part: Send + 'static {
    fn name(&self) -> &str;

    fn forward(&self, hidden: Tensor) -> Result<Tensor, TchError>;

    /// The same part with the same variables, for a segment to hold.
    fn shallow_clone(&self) -> Self;
}

/// Runs the parts one after the other; in segments of `group` parts, where there is one.
pub fn run<P: Part>(parts: &[P], group: Option<usize>, mut hidden: Tensor) -> Result<Tensor, TchError> {
    let Some(group) = group else { return in_a_row(parts, hidden) };
    for segment in parts.chunks(group) {
        let parts: Vec<P> = segment.iter().map(P::shallow_clone).collect();
        let name = segment_name(&parts);
        // What follows the last tensor that a part saves is work that backward does not need.
        hidden = Checkpoint::new(&name).stop_early().run_one(hidden, move |x| in_a_row(&parts, x))?;
    }
    Ok(hidden)
}

fn in_a_row<P: Part>(parts: &[P], hidden: Tensor) -> Result<Tensor, TchError> {
    parts.iter().try_fold(hidden, |hidden, part| part.forward(hidden))
}

/// `h.0`, or `h.0 to h.3`.
fn segment_name<P: Part>(parts: &[P]) -> String {
    match parts {
        [first, .., last] => format!("{} to {}", first.name(), last.name()),
        [only] => only.name().to_owned(),
        [] => String::new(),
    }
}
