//! The half of stepledger that knows no libtorch: records, ledger, store, rules, reports, command line.
//!
//! A crate of its own so that the `stepledger` program can be linked to this half alone. Use the
//! `stepledger` crate, which offers all of it under the same names.

pub mod cli;
pub mod compare;
pub mod ledger;
pub mod plan;
pub mod record;
pub mod report;
pub mod rules;
pub mod stats;
pub mod store;
pub mod sweep;
pub mod theory;
