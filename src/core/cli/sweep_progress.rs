//! How far a sweep has come: a bar on a terminal, plain lines in a pipe, nothing when quiet.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::note::note;
use crate::sweep::Progress;

pub enum Teller {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

impl Teller {
    pub fn new(quiet: bool) -> Self {
        if quiet {
            return Teller::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Teller::Lines;
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Teller::Bar(bar)
    }

    pub fn tell(&mut self, progress: &Progress) {
        let Some((cell, turn)) = progress.next else { return };
        let left = progress.left.map_or_else(String::new, |left| format!(", about {} left", span(left)));
        let now = format!("{cell} (repeat {}){left}", turn.repeat + 1);
        match self {
            Teller::Bar(bar) => {
                bar.set_length(progress.total as u64);
                bar.set_position(progress.done as u64);
                bar.set_message(now);
            }
            Teller::Lines => note(format_args!("run {} of {}: {now}", progress.done + 1, progress.total)),
            Teller::Quiet => {}
        }
    }

    pub fn finish(&self) {
        if let Teller::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// As long as a person would say: seconds, minutes, or hours and minutes.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
