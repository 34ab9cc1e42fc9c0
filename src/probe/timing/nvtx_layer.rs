//! The spans of `tracing` as NVTX ranges.

use std::cell::RefCell;

use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::nvtx_ranges::{Name, Range, foreign, register};

/// Shows the `tracing` spans that a program has already as ranges of the domain `stepledger`, category `tracing`,
/// beside our phases and scopes.
///
/// A span is a range on each thread while it is entered there. Ranges of a thread are nested; where spans are not (a
/// span is left while one entered after it goes on), the outer range ends with the inner one.
///
/// ```
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let subscriber = tracing_subscriber::registry().with(stepledger::probe::NvtxLayer::new());
/// tracing::subscriber::with_default(subscriber, || {
///     let _entered = tracing::info_span!("tokenize").entered();
/// });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NvtxLayer(());

impl NvtxLayer {
    pub fn new() -> Self {
        NvtxLayer(())
    }
}

/// The range of a span that this thread has entered.
struct Entered {
    span: Id,
    left: bool,
    /// Held for its drop, which closes it.
    _range: Range,
}

thread_local! {
    /// Innermost last.
    static ENTERED: RefCell<Vec<Entered>> = const { RefCell::new(Vec::new()) };
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for NvtxLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            // Entering is the hot part: the tool learns the name here.
            span.extensions_mut().insert(register(attributes.metadata().name()));
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let name = context.span(id).and_then(|span| span.extensions().get::<Name>().copied());
        if let Some(name) = name {
            let entered = Entered { span: id.clone(), left: false, _range: foreign(name) };
            ENTERED.with_borrow_mut(|all| all.push(entered));
        }
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        ENTERED.with_borrow_mut(|all| {
            if let Some(entered) = all.iter_mut().rev().find(|entered| entered.span == *id && !entered.left) {
                entered.left = true;
            }
            while all.last().is_some_and(|entered| entered.left) {
                all.pop();
            }
        });
    }
}
