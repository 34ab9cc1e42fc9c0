//! Waiting for a device that may hang.

use std::thread;
use std::time::{Duration, Instant};

/// What has come of waiting so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// Not done, but further than before.
    Some,
    None,
}

/// Asks again and again, until it is done; false if for so long there was no progress.
pub fn until<E>(patience: Duration, mut ask: impl FnMut() -> Result<Progress, E>) -> Result<bool, E> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(1);
    let mut since = Instant::now();
    let mut pause = Duration::from_micros(10);
    loop {
        match ask()? {
            Progress::Done => return Ok(true),
            Progress::Some => since = Instant::now(),
            Progress::None if since.elapsed() >= patience => return Ok(false),
            Progress::None => {}
        }
        thread::sleep(pause);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}
