//! The dataset as the place where a probe's records go.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::{DatasetWriter, StoreError};
use crate::record::{AllocationRow, BetweenRecords, MANY_LIFETIMES, RunRow, Sink, SinkError, StepRecords};

/// Keeps a run in a folder of its own, `<out>/<run_id>/`.
///
/// Parts are encoded, written and synced on a thread of their own, so that the training does not wait for
/// the disk. One flush at a time: the next one waits for the last, and brings its error if it had one.
#[derive(Debug)]
pub struct RunFolder {
    out: PathBuf,
    pending: Batch,
    writer: Option<Writer>,
}

/// What has been pushed since the last flush.
#[derive(Debug, Default)]
struct Batch {
    steps: Vec<StepRecords>,
    between: Vec<BetweenRecords>,
}

/// What the writing thread is asked to do.
enum Order {
    Flush(Batch, Vec<AllocationRow>),
    Finish(Batch, Vec<AllocationRow>, Box<RunRow>),
}

#[derive(Debug)]
struct Writer {
    orders: Sender<Order>,
    outcomes: Receiver<Result<(), StoreError>>,
    /// Lifetimes that the dataset has taken over.
    spent: Receiver<Vec<AllocationRow>>,
    thread: JoinHandle<()>,
    /// Whether an order's outcome has not been heard yet.
    busy: bool,
}

impl RunFolder {
    /// Runs go into `out`, which is made if it does not exist.
    pub fn new(out: impl AsRef<Path>) -> Self {
        RunFolder { out: out.as_ref().to_owned(), pending: Batch::default(), writer: None }
    }
}

impl Sink for RunFolder {
    fn begin(&mut self, run: &RunRow) -> Result<(), SinkError> {
        self.writer = Some(Writer::start(DatasetWriter::create(&self.out, run)?));
        Ok(())
    }

    fn push(&mut self, records: StepRecords) {
        self.pending.steps.push(records);
    }

    fn push_between(&mut self, records: BetweenRecords) {
        self.pending.between.push(records);
    }

    /// The roomiest of those that have come back.
    fn spent(&mut self) -> Option<Vec<AllocationRow>> {
        self.writer.as_ref()?.spent.try_iter().max_by_key(Vec::capacity)
    }

    fn flush(&mut self, open: &[AllocationRow]) -> Result<(), SinkError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.wait()?;
        writer.order(Order::Flush(std::mem::take(&mut self.pending), open.to_vec()));
        Ok(())
    }

    /// Waits until everything is on disk. An error of the last flush is not one if the rows, which stay
    /// with the writer, can be written now.
    fn end(&mut self, run: &RunRow, open: &[AllocationRow]) -> Result<(), SinkError> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        // Its rows are still buffered, and the same trouble shows again if it lasts.
        let _ = writer.wait();
        writer.order(Order::Finish(std::mem::take(&mut self.pending), open.to_vec(), Box::new(run.clone())));
        let outcome = writer.wait();
        // The thread ends with its last order; a panic there has been told as a lost outcome.
        let _ = writer.thread.join();
        Ok(outcome?)
    }
}

impl Writer {
    fn start(dataset: DatasetWriter) -> Self {
        let (orders, received) = channel();
        let (answers, outcomes) = channel();
        let (back, spent) = channel();
        let thread = thread::spawn(move || work(dataset, &received, &answers, &back));
        Writer { orders, outcomes, spent, thread, busy: false }
    }

    fn order(&mut self, order: Order) {
        // If the thread is gone, `wait` says so.
        let _ = self.orders.send(order);
        self.busy = true;
    }

    /// Waits for the order in progress, if any.
    fn wait(&mut self) -> Result<(), StoreError> {
        if !std::mem::take(&mut self.busy) {
            return Ok(());
        }
        self.outcomes.recv().unwrap_or(Err(StoreError::WriterGone))
    }
}

/// Above the 0 that everything else has: the kernel then lets the threads that compute go first, wherever they wake
/// up. It still leaves a tenth of a busy core, several times what encoding takes.
const WRITER_NICENESS: i32 = 10;

fn work(
    mut dataset: DatasetWriter,
    orders: &Receiver<Order>,
    outcomes: &Sender<Result<(), StoreError>>,
    back: &Sender<Vec<AllocationRow>>,
) {
    // Of this thread alone, as Linux has it. Where it may not be changed, all is well but for some jitter.
    let _ = rustix::process::setpriority_process(None, WRITER_NICENESS);
    for order in orders {
        let outcome = match order {
            Order::Flush(batch, open) => {
                push(&mut dataset, batch, back);
                dataset.flush(&open)
            }
            Order::Finish(batch, open, run) => {
                push(&mut dataset, batch, back);
                // Nobody listens any more if this fails to be sent.
                let _ = outcomes.send(dataset.finish(&run, &open).map(|_| ()));
                return;
            }
        };
        let _ = outcomes.send(outcome);
    }
}

fn push(dataset: &mut DatasetWriter, batch: Batch, back: &Sender<Vec<AllocationRow>>) {
    for StepRecords { step, phases, moments, mut ended } in batch.steps {
        dataset.push_leaving_room(step, phases, moments, &mut ended);
        if ended.capacity() >= MANY_LIFETIMES {
            // At the run's end nobody wants it.
            let _ = back.send(ended);
        }
    }
    batch.between.into_iter().for_each(|records| dataset.push_between(records));
}
