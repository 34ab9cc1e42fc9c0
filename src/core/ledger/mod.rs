//! From raw events to a reconciled account: events, lifetimes, categories, moments. Pure.
#![forbid(unsafe_code)]

mod account;
mod batch;
mod event;
mod exposure;
mod filing;
mod moments;
mod place;
mod survivors;
#[cfg(test)]
mod tests;

pub use account::{Identity, Ledger, NodeTime, SiteNames, StepAccount};
pub use event::{Event, Site, flag, kind};
pub use exposure::{Activity, Exposed, Interval, exposed};
pub use filing::Filing;
