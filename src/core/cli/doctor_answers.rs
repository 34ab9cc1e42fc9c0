//! How the engine tells `doctor` what it finds: a line for each thing as soon as it is known, through a file that is
//! nobody else's. Libraries and tools that are looked at may print, crash or hang: what was told before that is kept, and
//! what they were looked at for is known.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};

use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use crate::report::Check;

/// A line of the engine's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// What is looked at next.
    Looking(Looking),
    /// What was found of it.
    Found(Check),
    /// All has been looked at.
    Done,
}

/// Something that the engine is about to look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looking {
    pub name: String,
    /// Whether `stepledger run` cannot do without it.
    pub needed: bool,
    /// What to do where looking at it is the end.
    pub way_out: String,
}

/// The engine's end.
#[derive(Debug)]
pub struct Teller(File);

impl Teller {
    /// Tells through the open file with this number.
    pub fn to(file: RawFd) -> io::Result<Teller> {
        File::options().append(true).open(format!("/proc/self/fd/{file}")).map(Teller)
    }

    /// Whatever becomes of this process afterwards, the line is told.
    pub fn tell(&mut self, line: &Line) -> io::Result<()> {
        let text = serde_json::to_string(line)? + "\n";
        self.0.write_all(text.as_bytes())
    }
}

/// The program's end: a file in memory, open in the processes that it starts.
#[derive(Debug)]
pub struct Listener(File);

impl Listener {
    pub fn new() -> io::Result<Listener> {
        Ok(Listener(memfd_create("stepledger-doctor", MemfdFlags::empty())?.into()))
    }

    /// What to give [`Teller::to`].
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// How much was told up to now.
    pub fn bytes(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }

    /// Whole lines; one that was cut off is none.
    pub fn lines(&self) -> io::Result<Vec<Line>> {
        let (mut file, mut bytes) = (&self.0, Vec::new());
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// What a process has told until it ended.
#[derive(Debug, Default, PartialEq)]
pub struct Heard {
    pub checks: Vec<Check>,
    /// What it was looking at when it ended; none where it had not begun, or was done.
    pub looking: Option<Looking>,
    pub done: bool,
}

impl Heard {
    pub fn of(lines: Vec<Line>) -> Heard {
        lines.into_iter().fold(Heard::default(), |mut heard, line| {
            match line {
                Line::Looking(next) => heard.looking = Some(next),
                Line::Found(check) => heard.checks.push(check),
                Line::Done => (heard.looking, heard.done) = (None, true),
            }
            heard
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looking(name: &str) -> Looking {
        Looking { name: name.to_owned(), needed: false, way_out: "do without".to_owned() }
    }

    #[test]
    fn lines_are_heard_as_far_as_they_were_told() {
        let listener = Listener::new().unwrap();
        let mut teller = Teller::to(listener.number()).unwrap();
        let check = Check::works("libtorch", "2.11.0");
        for line in
            [Line::Looking(looking("libtorch")), Line::Found(check.clone()), Line::Looking(looking("CUPTI"))]
        {
            teller.tell(&line).unwrap();
        }
        teller.0.write_all(br#"{"found":{"na"#).unwrap();
        assert!(listener.bytes() > 0);
        let heard = Heard::of(listener.lines().unwrap());
        assert_eq!(heard, Heard { checks: vec![check], looking: Some(looking("CUPTI")), done: false });
    }

    #[test]
    fn whoever_is_done_looks_at_nothing() {
        let heard = Heard::of(vec![Line::Looking(looking("CUPTI")), Line::Done]);
        assert_eq!(heard, Heard { done: true, ..Heard::default() });
    }
}
