//! Puts a training step under instruments: every phase timed, every byte of libtorch's allocator filed,
//! everything kept in Parquet.
//!
//! The library's face is the same thing that the `stepledger` program uses:
//!
//! ```no_run
//! # #[cfg(feature = "torch")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use stepledger::probe::{Options, Probe};
//! use stepledger::store::RunFolder;
//! use tch::nn::{self, OptimizerConfig};
//!
//! // The probe comes first, so that the model's own memory is seen.
//! let mut probe = Probe::start(Options::new("my_loop"), RunFolder::new("runs"))?;
//! let store = nn::VarStore::new(tch::Device::Cpu);
//! let layer = nn::linear(store.root(), 8, 1, Default::default());
//! let mut adam = nn::Adam::default().build(&store, 1e-3)?;
//! probe.watch(&store);
//! for _ in 0..10 {
//!     let mut step = probe.step();
//!     let batch = step.dataloader(|| tch::Tensor::randn([4, 8], tch::kind::FLOAT_CPU));
//!     adam.zero_grad();
//!     let loss = step.forward(|| batch.apply(&layer).square().mean(tch::Kind::Float));
//!     step.backward(|| loss.backward());
//!     step.optimizer(|| adam.step());
//!     step.finish(loss.double_value(&[]), None)?;
//! }
//! probe.finish()?;
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "torch"))]
//! # fn main() {}
//! ```
//!
//! The map of the modules is in `src/ARCHITECTURE.md`.

#[cfg(feature = "torch")]
pub mod device;
#[cfg(feature = "torch")]
mod engine;
#[cfg(feature = "torch")]
pub mod probe;
#[cfg(feature = "torch")]
pub mod rates;
#[cfg(feature = "torch")]
pub mod train;

pub use stepledger_core::{compare, ledger, plan, record, report, rules, stats, store, sweep, theory};
