//! Text as bytes, and the thread that makes batches of it.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tch::{Device, Kind, TchError, Tensor};

use super::config::{Config, CopyConfig};
use super::error::TrainError;
use super::ops::pin_memory;
use crate::probe::transfer;

/// The text that comes with the program: sums such as `12+35=47`; see `data/README.md`.
const SUMS: &[u8] = include_bytes!("../../data/sums.txt");

/// Reads the text to train on, and checks that it holds at least one window of `seq` + 1 bytes.
pub fn read_text(path: Option<&Path>, seq: i64) -> Result<Vec<u8>, TrainError> {
    let shown = path.unwrap_or(Path::new("(built-in sums)"));
    let bad = |reason: String| TrainError::Data { path: shown.to_owned(), reason };
    let text = match path {
        None => SUMS.to_vec(),
        Some(path) => fs::read(path).map_err(|error| bad(error.to_string()))?,
    };
    let window = seq as usize + 1;
    match text.len() {
        0 => Err(bad("the file is empty; give one with some text".to_owned())),
        len if len < window => {
            Err(bad(format!("{len} bytes are too few for --seq {seq}; it takes at least {window}")))
        }
        _ => Ok(text),
    }
}

/// A batch: `tokens` and `targets` of shape [batch, seq], int64, targets one byte further on.
#[derive(Debug)]
pub struct Batch {
    pub tokens: Tensor,
    pub targets: Tensor,
    /// The bytes both were made of, [batch, seq + 1].
    pub windows: Vec<i64>,
}

/// How many batches the loader keeps ready.
const PREFETCH: usize = 2;

/// Reads windows of text on a thread of its own, a bounded number ahead.
///
/// What it hands over is plain bytes; the tensors are made by [`Loader::next`], on the training thread.
/// So the account holds exactly the batch in use, however far ahead the thread happens to be.
#[derive(Debug)]
pub struct Loader {
    windows: Option<Receiver<Vec<i64>>>,
    thread: Option<JoinHandle<()>>,
    batch: i64,
    seq: i64,
    device: Device,
    copy: CopyConfig,
}

impl Loader {
    /// Starts the thread. The same seed gives the same batches.
    pub fn start(text: Vec<u8>, config: &Config) -> Self {
        let (sender, receiver) = sync_channel(PREFETCH);
        let (count, width) = (config.batch as usize, config.seq as usize + 1);
        let mut random = ChaCha8Rng::seed_from_u64(config.seed as u64);
        let delay = Duration::from_millis(config.loader_delay_ms);
        let work = move || {
            loop {
                thread::sleep(delay);
                // The receiver is gone when the training is over.
                if sender.send(sample(&text, count, width, &mut random)).is_err() {
                    return;
                }
            }
        };
        let Config { batch, seq, device, copy, .. } = *config;
        Loader { windows: Some(receiver), thread: Some(thread::spawn(work)), batch, seq, device, copy }
    }

    /// Waits for the next batch.
    pub fn next(&self) -> Result<Batch, TrainError> {
        let windows = self.windows.as_ref().and_then(|windows| windows.recv().ok());
        let batch = Batch::new(windows.ok_or(TrainError::LoaderGone)?, self.batch, self.seq)?;
        Ok(batch.to(self.device, self.copy)?)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.windows = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the loader has already been told as `LoaderGone`.
            let _ = thread.join();
        }
    }
}

impl Batch {
    /// On the CPU.
    fn new(windows: Vec<i64>, batch: i64, seq: i64) -> Result<Self, TchError> {
        let width = seq as usize;
        let part = |from: usize| -> Result<Tensor, TchError> {
            let bytes: Vec<i64> = windows
                .chunks_exact(width + 1)
                .flat_map(|window| &window[from..from + width])
                .copied()
                .collect();
            Tensor::f_from_slice(&bytes)?.f_view([batch, seq])
        };
        Ok(Batch { tokens: part(0)?, targets: part(1)?, windows })
    }

    /// The same batch there. Of pinned memory libtorch itself sees to it that it outlives the copy.
    fn to(self, device: Device, copy: CopyConfig) -> Result<Self, TchError> {
        if device == Device::Cpu {
            return Ok(self);
        }
        let pinned = |tensor: Tensor| if copy.pin_memory { pin_memory(&tensor) } else { Ok(tensor) };
        let (tokens, targets) = (pinned(self.tokens)?, pinned(self.targets)?);
        let _transfer = transfer();
        let copied = |tensor: &Tensor| tensor.f_internal_to_copy((Kind::Int64, device), copy.async_copy);
        Ok(Batch { tokens: copied(&tokens)?, targets: copied(&targets)?, windows: self.windows })
    }
}

/// `count` windows of `width` bytes each, from random places of the text, one after the other.
fn sample(text: &[u8], count: usize, width: usize, random: &mut ChaCha8Rng) -> Vec<i64> {
    let mut windows = Vec::with_capacity(count * width);
    for _ in 0..count {
        let start = random.gen_range(0..=text.len() - width);
        windows.extend(text[start..start + width].iter().map(|&byte| i64::from(byte)));
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_windows() {
        let sample_with = |seed| sample(SUMS, 4, 9, &mut ChaCha8Rng::seed_from_u64(seed));
        assert_eq!(sample_with(1), sample_with(1));
        assert_ne!(sample_with(1), sample_with(2));
    }

    #[test]
    fn a_text_of_exactly_one_window_serves() {
        assert_eq!(sample(b"abc", 2, 3, &mut ChaCha8Rng::seed_from_u64(0)), [97, 98, 99, 97, 98, 99]);
    }

    #[test]
    fn targets_are_one_byte_further_on() {
        let batch = Batch::new(vec![1, 2, 3, 4, 5, 6], 2, 2).unwrap();
        assert_eq!(batch.tokens, Tensor::from_slice(&[1i64, 2, 4, 5]).view([2, 2]));
        assert_eq!(batch.targets, Tensor::from_slice(&[2i64, 3, 5, 6]).view([2, 2]));
    }

    #[test]
    fn bad_texts_are_named() {
        let missing = read_text(Some(Path::new("/no/such/file")), 4).unwrap_err().to_string();
        assert!(missing.contains("--data /no/such/file"), "{missing}");
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(read_text(Some(file.path()), 4).unwrap_err().to_string().contains("empty"));
        fs::write(file.path(), "abc").unwrap();
        let short = read_text(Some(file.path()), 4).unwrap_err().to_string();
        assert!(short.contains("3 bytes") && short.contains("at least 5"), "{short}");
    }
}
