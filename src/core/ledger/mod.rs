//! From raw events to a reconciled account: events, lifetimes, categories, moments. Pure.
#![forbid(unsafe_code)]

mod account;
mod block;
mod event;
mod moments;
#[cfg(test)]
mod tests;

pub use account::{Identity, Ledger, ScopeNames, StepAccount};
pub use event::{Event, kind, origin};
