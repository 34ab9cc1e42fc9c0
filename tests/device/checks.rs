//! The checks that need a GPU: `device_checks list`, `device_checks NAME [--device cpu]`.
//!
//! A program of its own, since it runs where there is no Rust (`tests/device.sh`, `make device-bundle`). A check prints
//! rows of `check TAB expected TAB got TAB pass|FAIL|not run`. Exit code 0: all passed; 1: one failed; 77: something did
//! not run, without a GPU all of it (one that is there and refuses is a failure); 2: no such check. With `--device cpu` those checks that are not about a GPU as such run
//! on the CPU, on small models: a rehearsal of the checks themselves, which says nothing of any card.

#[path = "../common/mod.rs"]
mod common;

mod account;
mod adamw;
mod clock;
mod counters;
mod overhead;
mod peaks;
mod policies;
mod presence;
mod row;
mod work;

use std::error::Error;
use std::process::ExitCode;

use presence::absent;
use row::{Row, verdict};
use stepledger::device::{cards, cards_on_bus};
use tch::Device;

type Outcome<T> = Result<T, Box<dyn Error>>;
type Check = fn(Device) -> Outcome<Vec<Row>>;

const CHECKS: [(&str, Check); 7] = [
    ("clock", clock::times),
    ("stream", clock::stream),
    ("account", account::account),
    ("peaks", peaks::peaks),
    ("adamw", adamw::adamw),
    ("overhead", overhead::overhead),
    ("checkpoint", policies::policies),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => {
            CHECKS.iter().for_each(|(name, _)| println!("{name}"));
            ExitCode::SUCCESS
        }
        [name] => run(name, "cuda"),
        [name, "--device", device] => run(name, device),
        _ => {
            eprintln!("device_checks list | device_checks NAME [--device cpu|cuda:N]");
            ExitCode::from(2)
        }
    }
}

fn run(name: &str, device: &str) -> ExitCode {
    let Some((_, check)) = CHECKS.iter().find(|(known, _)| *known == name) else {
        eprintln!("no check is called {name}; `device_checks list` names them");
        return ExitCode::from(2);
    };
    let rows = match stepledger::train::device(device) {
        Err(error) => {
            let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
            vec![absent(name, cards(), &cards_on_bus(), visible.as_deref(), &error.to_string())]
        }
        Ok(device) => {
            check(device).unwrap_or_else(|error| vec![Row::new(name, "no error", error.to_string(), false)])
        }
    };
    rows.iter().for_each(|row| println!("{row}"));
    ExitCode::from(verdict(&rows).code())
}
