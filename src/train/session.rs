//! A toy model's training from its first weight to its last step, under a probe.

use std::sync::atomic::{AtomicBool, Ordering};

use tch::nn::VarStore;
use tch::{Kind, TchError, Tensor};

use super::adamw::AdamW;
use super::autocast::autocast;
use super::config::{Config, Files};
use super::data::{Batch, Loader, read_text};
use super::error::TrainError;
use super::model::{Model, build};
use super::ops::divide;
use super::weights;
use crate::probe::{Options, Probe, Step, StepSummary, scope, waiting};
use crate::record::{Detail, RunRow, RunStatus, Sink};
use crate::theory::{Precision, ZeroGrad};

/// Trains as `config` says and keeps the records in `sink`. `progress` hears of every step; when `stop`
/// becomes true the step in progress is finished and the run ends as interrupted.
///
/// # Errors
/// What is wrong with the input is told before anything is written. What fails later ends the run with
/// that reason in its records.
pub fn train(
    config: &Config,
    options: Options,
    sink: impl Sink + 'static,
    progress: &mut dyn FnMut(&StepSummary),
    stop: &AtomicBool,
) -> Result<RunRow, TrainError> {
    let text = read_text(config.data.as_deref(), config.seq)?;
    let Files { save_init, save, save_batches, .. } = &config.files;
    for (flag, path) in [("--save-init", save_init), ("--save", save), ("--save-batches", save_batches)] {
        path.as_deref().map_or(Ok(()), |path| weights::check_writable(path, flag))?;
    }
    tch::set_num_threads(config.threads);
    // The probe comes first, so that the model's own memory is seen, and that libtorch finds its CUDA half.
    let mut probe = Probe::start(options, sink)?;
    tch::manual_seed(config.seed);
    // They live until the account closes: what they hold is alive then, of a model that did not fit too.
    let store = VarStore::new(config.device);
    let mut trainer = None;
    let outcome = Trainer::new(config, &store, text, &mut probe)
        .and_then(|new| trainer.insert(new).run(config, &mut probe, progress, stop));
    match outcome {
        Ok(true) => Ok(probe.finish()?),
        Ok(false) => Ok(probe
            .finish_as(RunStatus::Interrupted, Some("stopped by a signal (Ctrl-C or SIGTERM)".to_owned()))?),
        // A result like any other.
        Err(TrainError::OutOfMemory(reason)) => Ok(probe.finish_as(RunStatus::OutOfMemory, Some(reason))?),
        Err(error) => {
            // If this fails too, the first error is still the one to tell.
            let _ = probe.finish_as(RunStatus::Failed, Some(error.to_string()));
            Err(error)
        }
    }
}

/// Everything that one run trains with.
struct Trainer<'store> {
    store: &'store VarStore,
    /// The trained variables' names, in the optimizer's order.
    names: Vec<String>,
    model: Box<dyn Model>,
    optimizer: AdamW,
    loader: Loader,
    /// The windows trained on, if they are to be saved.
    windows: Option<Vec<i64>>,
}

/// A model with its first weights, in the types that it is trained in.
struct Weighted {
    model: Box<dyn Model>,
    /// The trained variables, and their names, in the optimizer's order.
    names: Vec<String>,
    parameters: Vec<Tensor>,
    /// f32 copies of them, if the configuration wants them.
    masters: Option<Vec<Tensor>>,
}

impl Weighted {
    fn new(config: &Config, store: &VarStore, probe: &mut Probe) -> Result<Self, TrainError> {
        let model = build(&store.root(), config)?;
        if let Some(path) = &config.files.init {
            weights::load(path, store, &*model)?;
        }
        if let Some(path) = &config.files.save_init {
            weights::save(path, "--save-init", store, &*model)?;
        }
        let (names, parameters) = trained(store);
        let masters = match config.adamw.master_weights {
            true => Some(masters(&names, &parameters, probe)?),
            false => None,
        };
        if config.precision == Precision::Bf16 {
            to_bf16(store)?;
        }
        Ok(Weighted { model, names, parameters, masters })
    }
}

impl<'store> Trainer<'store> {
    fn new(
        config: &Config,
        store: &'store VarStore,
        text: Vec<u8>,
        probe: &mut Probe,
    ) -> Result<Self, TrainError> {
        let weighted = Weighted::new(config, store, probe);
        match &weighted {
            Ok(_) => probe.watch(store),
            Err(_) => probe.watch_part(store),
        }
        let Weighted { model, names, parameters, masters } = weighted?;
        probe.watch_buffers(&model.buffers());
        let optimizer = AdamW::new(config.adamw, parameters, masters)?;
        probe.open()?;
        let loader = Loader::start(text, config);
        Ok(Trainer {
            store,
            names,
            model,
            optimizer,
            loader,
            windows: config.files.save_batches.as_ref().map(|_| vec![]),
        })
    }

    /// Runs all steps; false if it was stopped before the last.
    fn run(
        &mut self,
        config: &Config,
        probe: &mut Probe,
        progress: &mut dyn FnMut(&StepSummary),
        stop: &AtomicBool,
    ) -> Result<bool, TrainError> {
        let mut completed = true;
        for _ in 0..config.total_steps() {
            let summary = self.step(probe.step(), config)?;
            if summary.step == 0 {
                probe.watch_states(named(&self.names, self.optimizer.states()), None)?;
            }
            progress(&summary);
            if stop.load(Ordering::Relaxed) {
                completed = summary.step + 1 == config.total_steps();
                break;
            }
        }
        self.save(config)?;
        Ok(completed)
    }

    fn step(&mut self, mut step: Step, config: &Config) -> Result<StepSummary, TrainError> {
        {
            let _scope = scope("zero_grad");
            match config.zero_grad {
                ZeroGrad::None => self.optimizer.clear_gradients()?,
                ZeroGrad::Zero => self.optimizer.zero_gradients()?,
            }
        }
        let reads_loss = config.reads_loss(step.number());
        let mut sum = 0.0;
        for _ in 0..config.accumulate {
            let loss = self.micro_batch(&mut step, config)?;
            if reads_loss {
                sum += read(loss)?;
            }
        }
        step.optimizer(|| self.optimizer.step())?;
        let mean = reads_loss.then_some(sum / config.accumulate as f64);
        Ok(step.finish(mean, config.tokens_per_step())?)
    }

    /// Adds one batch's part to the gradients; returns its loss.
    fn micro_batch(&mut self, step: &mut Step, config: &Config) -> Result<Tensor, TrainError> {
        let batch = step.dataloader(|| self.loader.next())?;
        let loss = step.forward(|| self.loss(&batch, config))?;
        step.backward(|| match config.accumulate {
            1 => loss.f_backward(),
            count => divide(&loss, count as f64)?.f_backward(),
        })?;
        if let Some(windows) = &mut self.windows {
            windows.extend(&batch.windows);
        }
        Ok(loss)
    }

    fn loss(&self, batch: &Batch, config: &Config) -> Result<Tensor, TrainError> {
        let loss = || self.model.loss(&batch.tokens, &batch.targets);
        Ok(match config.precision {
            Precision::AmpBf16 => autocast(config.device, Kind::BFloat16, loss)??,
            Precision::F32 | Precision::Bf16 => loss()?,
        })
    }

    fn save(&self, config: &Config) -> Result<(), TrainError> {
        if let Some(path) = &config.files.save {
            weights::save(path, "--save", self.store, &*self.model)?;
        }
        if let (Some(path), Some(windows)) = (&config.files.save_batches, &self.windows) {
            weights::save_batches(path, windows, config.batch, config.seq)?;
        }
        Ok(())
    }
}

/// The trained variables with their names, sorted by them, tied ones once.
fn trained(store: &VarStore) -> (Vec<String>, Vec<Tensor>) {
    let mut variables: Vec<_> = store.variables().into_iter().filter(|(_, v)| v.requires_grad()).collect();
    variables.sort_by(|(a, _), (b, _)| a.cmp(b));
    variables.into_iter().unzip()
}

/// f32 copies of the parameters. Each is made known at once: the next one may not fit any more.
fn masters(names: &[String], parameters: &[Tensor], probe: &mut Probe) -> Result<Vec<Tensor>, TrainError> {
    let mut masters = Vec::with_capacity(parameters.len());
    for (name, parameter) in names.iter().zip(parameters) {
        let master = tch::no_grad(|| parameter.f_detach_copy())?;
        probe.watch_states([(name.as_str(), &master)], Some(Detail::MasterWeight))?;
        masters.push(master);
    }
    Ok(masters)
}

/// Keeps every variable in bfloat16 from now on, in the place it has in model and store.
fn to_bf16(store: &VarStore) -> Result<(), TchError> {
    tch::no_grad(|| {
        for mut variable in store.variables().into_values().filter(|variable| variable.kind() == Kind::Float)
        {
            let half = variable.f_to_kind(Kind::BFloat16)?;
            variable.f_set_data(&half)?;
        }
        Ok(())
    })
}

/// Tensors that go with the variables at these places, with the variables' names.
fn named<'a>(
    names: &'a [String],
    tensors: impl Iterator<Item = (usize, &'a Tensor)>,
) -> impl Iterator<Item = (&'a str, &'a Tensor)> {
    tensors.map(|(place, tensor)| (names[place].as_str(), tensor))
}

/// The loss as a number; on a GPU this waits for it.
fn read(loss: Tensor) -> Result<f64, TrainError> {
    let _scope = scope("read_loss");
    let _waiting = waiting();
    Ok(loss.f_double_value(&[])?)
}
