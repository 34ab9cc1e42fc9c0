//! What a model or a loop says of its own parts, to the probe that its thread trains under, if there is one.

use std::cell::RefCell;
use std::rc::Rc;

use super::spans::Spans;
use crate::record::SpanKind;

thread_local! {
    /// The spans of the probe that this thread trains under, if any.
    static CURRENT: RefCell<Option<Rc<RefCell<Spans>>>> = const { RefCell::new(None) };
}

/// Makes `spans` the ones that [`scope`] on this thread adds to.
pub fn set_current(spans: Rc<RefCell<Spans>>) {
    CURRENT.with(|current| *current.borrow_mut() = Some(spans));
}

/// Makes [`scope`] do nothing on this thread, if it was `spans` that it added to.
pub fn unset_current(spans: &Rc<RefCell<Spans>>) {
    CURRENT.with(|current| {
        let ours = current.borrow().as_ref().is_some_and(|set| Rc::ptr_eq(set, spans));
        if ours {
            *current.borrow_mut() = None;
        }
    });
}

/// A named part of the work, nested as the calls are; it ends when the guard is dropped.
///
/// Costs next to nothing where no probe is running, so models can carry their scopes always:
///
/// ```
/// let _scope = stepledger::probe::scope("encoder");
/// ```
#[must_use = "the scope ends when this guard is dropped"]
pub fn scope(name: &str) -> Scope {
    open(|spans| Some(spans.enter_scope(name)))
}

/// The copy of a batch to the device, until the guard is dropped: timed by the device, as `transfer`, and told apart
/// from what the step spends otherwise (`transfer_ns` of the `steps` table). Does nothing on a CPU, and within another of the same
/// step; where it goes on beyond the step, that has its part, but of one around all of it nothing.
///
/// ```
/// # use tch::{Device, Tensor};
/// # fn to_device(batch: &Tensor, device: Device) -> Tensor {
/// let _transfer = stepledger::probe::transfer();
/// batch.to_device(device)
/// # }
/// ```
#[must_use = "the transfer ends when this guard is dropped"]
pub fn transfer() -> Scope {
    open(|spans| spans.enter_device_span(SpanKind::Transfer))
}

/// The training thread waiting for the device (reading a loss, a `synchronize`), until the guard is dropped: timed as
/// `sync` (`sync_ns` of the `steps` table). Does nothing on a CPU, and within another of the same step; where it goes on
/// beyond the step, that has its part, but of one around all of it nothing.
#[must_use = "the waiting ends when this guard is dropped"]
pub fn waiting() -> Scope {
    open(|spans| spans.enter_device_span(SpanKind::Sync))
}

/// Whether operators are observed on this thread, if the probe that it trains under observes them at all. Returns whether
/// they were.
pub fn observe_ops(on: bool) -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(|spans| spans.borrow().observe_ops(on)))
}

fn open(enter: impl FnOnce(&mut Spans) -> Option<usize>) -> Scope {
    let spans = CURRENT.with(|current| current.borrow().clone());
    let open = spans.and_then(|spans| {
        let depth = enter(&mut spans.borrow_mut())?;
        Some((spans, depth))
    });
    Scope { open }
}

/// An open scope; see [`scope`], [`transfer`] and [`waiting`].
pub struct Scope {
    open: Option<(Rc<RefCell<Spans>>, usize)>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        if let Some((spans, depth)) = &self.open {
            spans.borrow_mut().leave_scope(*depth);
        }
    }
}
