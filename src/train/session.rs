//! A toy model's training from its first weight to its last step, under a probe.

use std::sync::atomic::{AtomicBool, Ordering};

use tch::nn::VarStore;
use tch::{Device, Tensor};

use super::adamw::AdamW;
use super::config::{Config, Files};
use super::data::{Loader, read_text};
use super::error::TrainError;
use super::model::{Model, build};
use super::weights;
use crate::probe::{Options, Probe, Step, StepSummary, scope};
use crate::record::{RunRow, RunStatus, Sink};

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
    tch::manual_seed(config.seed);
    // The probe comes first, so that the model's own memory is seen.
    let mut probe = Probe::start(options, sink)?;
    let outcome = Trainer::new(config, text, &mut probe)
        .and_then(|mut trainer| Ok((trainer.run(config, &mut probe, progress, stop)?, trainer)));
    // The trainer lives on: what it holds is alive when the account closes.
    match outcome {
        Ok((true, _trainer)) => Ok(probe.finish()?),
        Ok((false, _trainer)) => Ok(probe
            .finish_as(RunStatus::Interrupted, Some("stopped by a signal (Ctrl-C or SIGTERM)".to_owned()))?),
        Err(error) => Err(end_badly(probe, error)),
    }
}

/// Ends the run with the error as its reason, and gives the error back.
fn end_badly(probe: Probe, error: TrainError) -> TrainError {
    let status = match error {
        TrainError::OutOfMemory(_) => RunStatus::OutOfMemory,
        _ => RunStatus::Failed,
    };
    // If this fails too, the first error is still the one to tell.
    let _ = probe.finish_as(status, Some(error.to_string()));
    error
}

/// Everything that one run trains with.
struct Trainer {
    store: VarStore,
    model: Box<dyn Model>,
    optimizer: AdamW,
    loader: Loader,
    /// The windows trained on, if they are to be saved.
    windows: Option<Vec<i64>>,
}

impl Trainer {
    fn new(config: &Config, text: Vec<u8>, probe: &mut Probe) -> Result<Self, TrainError> {
        let store = VarStore::new(config.device);
        let model = build(&store.root(), config)?;
        if let Some(path) = &config.files.init {
            weights::load(path, &store, &*model)?;
        }
        if let Some(path) = &config.files.save_init {
            weights::save(path, "--save-init", &store, &*model)?;
        }
        probe.watch(&store);
        probe.watch_buffers(&model.buffers());
        probe.open()?;
        let optimizer = AdamW::new(config.adamw, store.trainable_variables());
        let loader = Loader::start(text, config);
        Ok(Trainer {
            store,
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
            let summary = self.step(probe.step(), config.tokens_per_step())?;
            progress(&summary);
            if stop.load(Ordering::Relaxed) {
                completed = summary.step + 1 == config.total_steps();
                break;
            }
        }
        self.save(config)?;
        Ok(completed)
    }

    fn step(&mut self, mut step: Step, tokens: i64) -> Result<StepSummary, TrainError> {
        {
            let _scope = scope("zero_grad");
            self.optimizer.zero_grad()?;
        }
        let batch = step.dataloader(|| self.loader.next())?;
        let loss = step.forward(|| self.model.loss(&batch.tokens, &batch.targets))?;
        step.backward(|| loss.f_backward())?;
        step.optimizer(|| self.optimizer.step())?;
        let loss = read(loss)?;
        if let Some(windows) = &mut self.windows {
            windows.extend(&batch.windows);
        }
        Ok(step.finish(loss, tokens)?)
    }

    fn save(&self, config: &Config) -> Result<(), TrainError> {
        if let Some(path) = &config.files.save {
            weights::save(path, "--save", &self.store, &*self.model)?;
        }
        if let (Some(path), Some(windows)) = (&config.files.save_batches, &self.windows) {
            weights::save_batches(path, windows, config.batch, config.seq)?;
        }
        Ok(())
    }
}

/// The loss as a number; on a GPU this waits for it.
fn read(loss: Tensor) -> Result<f64, TrainError> {
    let _scope = scope("read_loss");
    Ok(loss.f_double_value(&[])?)
}

/// Reads `cpu`, `cuda` or `cuda:N`, and checks that libtorch can work there.
pub fn device(name: &str) -> Result<Device, TrainError> {
    let bad = |reason: &str| TrainError::Device { device: name.to_owned(), reason: reason.to_owned() };
    let ordinal = match name.split_once(':') {
        _ if name == "cpu" => return Ok(Device::Cpu),
        _ if name == "cuda" => 0,
        Some(("cuda", number)) => number.parse().map_err(|_| bad("allowed: cpu, cuda, cuda:0, cuda:1, …"))?,
        _ => return Err(bad("allowed: cpu, cuda, cuda:0, cuda:1, …")),
    };
    crate::probe::load_cuda().map_err(|reason| bad(&reason))?;
    match tch::Cuda::device_count() {
        0 => Err(bad("libtorch sees no GPU (is NVIDIA's driver installed, and CUDA_VISIBLE_DEVICES right?)")),
        count if ordinal as i64 >= count => {
            Err(bad(&format!("this machine has {count}: cuda:0 to cuda:{}", count - 1)))
        }
        _ => Ok(Device::Cuda(ordinal)),
    }
}
