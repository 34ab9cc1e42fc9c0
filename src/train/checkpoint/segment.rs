//! A segment: its closure, and what its first run gave.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use tch::{Device, Kind, TchError, Tensor};

use super::super::error::first_part;
use crate::probe::Recomputation;

type Call = Box<dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>, TchError> + Send>;

/// A part of a model that can be run again.
pub(super) struct Segment {
    name: String,
    call: Call,
    /// What the first run gave.
    outputs: OnceLock<Vec<Output>>,
}

/// What an output is, without what is in it.
#[derive(Debug, PartialEq, Eq)]
struct Output {
    size: Vec<i64>,
    kind: Kind,
    device: Device,
}

impl Segment {
    pub fn new(name: &str, call: Call) -> Self {
        Segment { name: name.to_owned(), call, outputs: OnceLock::new() }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs it; a panic comes back as an error.
    pub fn run(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, TchError> {
        caught(|| (self.call)(inputs))
    }

    /// Runs it and notes what that gives.
    pub fn first_run(&self, inputs: Vec<Tensor>) -> Result<Vec<Tensor>, TchError> {
        let outputs = self.run(inputs)?;
        let described = caught(|| outputs.iter().map(Output::of).collect())?;
        self.outputs.get_or_init(|| described);
        Ok(outputs)
    }

    /// Runs it once more and compares the outputs with those of the first run.
    pub fn recompute(&self, inputs: Vec<Tensor>) -> Result<(), String> {
        let _recomputation = Recomputation::begin();
        let told = |error: TchError| format!("in recomputation: {}", text(&error));
        let outputs = self.run(inputs).map_err(told)?;
        let again: Vec<_> = caught(|| outputs.iter().map(Output::of).collect()).map_err(told)?;
        self.outputs.get().map_or(Ok(()), |first| compare(first, &again))
    }

    /// The error of a first run, with the segment's name.
    pub fn named(&self, error: &TchError) -> TchError {
        let Segment { name, .. } = self;
        TchError::Torch(format!("checkpointed segment \"{name}\": {}", text(error)))
    }
}

impl Output {
    fn of(tensor: &Tensor) -> Result<Self, TchError> {
        Ok(Output { size: tensor.size(), kind: tensor.f_kind()?, device: tensor.device() })
    }
}

fn compare(first: &[Output], again: &[Output]) -> Result<(), String> {
    if first.len() != again.len() {
        return Err(format!(
            "it gave {} outputs in forward and gives {} in recomputation",
            first.len(),
            again.len()
        ));
    }
    match first.iter().zip(again).position(|(first, again)| first != again) {
        None => Ok(()),
        Some(number) => {
            let text = |Output { size, kind, device }: &Output| format!("{size:?} {kind:?} on {device:?}");
            let (was, is) = (text(&first[number]), text(&again[number]));
            Err(format!("its output {number} was {was} in forward and is {is} in recomputation"))
        }
    }
}

/// The error without the stack of C++ frames.
fn text(error: &TchError) -> String {
    match error {
        TchError::Torch(message) => first_part(message),
        other => first_part(&other.to_string()),
    }
}

fn caught<T>(work: impl FnOnce() -> Result<T, TchError>) -> Result<T, TchError> {
    // What a panic leaves half done is the closure's own and tensors, which other code may see after any error too.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(TchError::Torch(format!("panicked: {}", message(&*panic)))))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    let message = owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no message)");
    // Where tch unwraps an error, the line breaks before the C++ stack are escaped.
    message.split("\\nException raised from").next().unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told() {
        let output = |size: &[i64], kind| Output { size: size.to_vec(), kind, device: Device::Cpu };
        let first = [output(&[2], Kind::Float), output(&[2, 3], Kind::Float)];
        assert_eq!(compare(&first, &[output(&[2], Kind::Float), output(&[2, 3], Kind::Float)]), Ok(()));
        let shorter = compare(&first, &[output(&[2], Kind::Float)]).unwrap_err();
        assert_eq!(shorter, "it gave 2 outputs in forward and gives 1 in recomputation");
        let other =
            compare(&first, &[output(&[2], Kind::Float), output(&[2, 3], Kind::BFloat16)]).unwrap_err();
        assert!(other.contains("output 1 was [2, 3] Float on Cpu") && other.contains("BFloat16"), "{other}");
    }

    #[test]
    fn panics_become_errors() {
        let error = caught::<()>(|| std::panic::panic_any(3)).unwrap_err();
        assert!(error.to_string().contains("(no message)"));
    }
}
