//! How far a run has come: a bar on a terminal, plain lines in a pipe, nothing when quiet.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use stepledger_core::cli::note;

use crate::probe::StepSummary;

/// Plain lines come at every tenth of the way.
const PLAIN_LINES: u64 = 10;

pub enum Progress {
    Bar(ProgressBar),
    Lines { total: u64 },
    Quiet,
}

impl Progress {
    pub fn new(total: u64, quiet: bool) -> Self {
        if quiet {
            return Progress::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Progress::Lines { total };
        }
        let bar = ProgressBar::new(total);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} steps  {msg}  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress::Bar(bar)
    }

    pub fn step(&mut self, step: &StepSummary) {
        let done = step.step as u64 + 1;
        match self {
            Progress::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(facts(step));
            }
            Progress::Lines { total }
                if done == *total || done.is_multiple_of((*total / PLAIN_LINES).max(1)) =>
            {
                note(format_args!("step {done}/{total}  {}", facts(step)));
            }
            Progress::Lines { .. } | Progress::Quiet => {}
        }
    }

    pub fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn facts(step: &StepSummary) -> String {
    let loss = step.loss.map(|loss| format!("loss {loss:.4}"));
    let seconds = step.wall_ns as f64 / 1e9;
    let rate = step.tokens.map(|tokens| format!("{:.0} tokens/s", tokens as f64 / seconds));
    [loss, rate].into_iter().flatten().collect::<Vec<_>>().join("  ")
}
