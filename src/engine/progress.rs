//! How far a run has come: a bar on a terminal, plain lines in a pipe, nothing when quiet.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use stepledger_core::cli::note;

use crate::probe::StepSummary;

/// Plain lines come at every tenth of the way.
const PLAIN_LINES: u64 = 10;

pub struct Progress {
    shown: Shown,
    /// Since the loss was last read, on a GPU the last wait for it: only from one to the next a rate is the device's.
    wall_ns: i64,
    tokens: Option<i64>,
    facts: String,
}

enum Shown {
    Bar(ProgressBar),
    Lines { total: u64 },
    Quiet,
}

impl Progress {
    pub fn new(total: u64, quiet: bool) -> Self {
        Progress { shown: Shown::new(total, quiet), wall_ns: 0, tokens: Some(0), facts: String::new() }
    }

    pub fn step(&mut self, step: &StepSummary) {
        self.wall_ns += step.wall_ns;
        self.tokens = self.tokens.zip(step.tokens).map(|(sum, tokens)| sum + tokens);
        if let Some(loss) = step.loss {
            let seconds = std::mem::take(&mut self.wall_ns) as f64 / 1e9;
            let tokens = self.tokens.replace(0);
            let rate = tokens.map(|tokens| format!("  {:.0} tokens/s", tokens as f64 / seconds));
            self.facts = format!("loss {loss:.4}{}", rate.unwrap_or_default());
        }
        self.shown.step(step.step as u64 + 1, &self.facts);
    }

    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

impl Shown {
    fn new(total: u64, quiet: bool) -> Self {
        if quiet {
            return Shown::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Shown::Lines { total };
        }
        let bar = ProgressBar::new(total);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} steps  {msg}  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Shown::Bar(bar)
    }

    fn step(&self, done: u64, facts: &str) {
        match self {
            Shown::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(facts.to_owned());
            }
            Shown::Lines { total }
                if done == *total || done.is_multiple_of((*total / PLAIN_LINES).max(1)) =>
            {
                note(format_args!("step {done}/{total}  {facts}"));
            }
            Shown::Lines { .. } | Shown::Quiet => {}
        }
    }
}
