//! What is alive at the end of forward and at the peak, by the probe's own account and beside PyTorch's.

use stepledger::probe::{Options, Probe};
use stepledger::record::{Category, Moment};
use stepledger::train::checkpoint_one;
use tch::{Kind, TchError, Tensor, kind::FLOAT_CPU, nn};

use crate::common::{MemorySink, turn};
use crate::program::python;
use crate::{leaf, loss};

const BLOCKS: i64 = 4;
const ROWS: i64 = 512;
const WIDTH: i64 = 32;
/// Bytes of one activation of `WIDTH`.
const WHOLE: i64 = 4 * ROWS * WIDTH;

#[test]
fn it_compiles() {
    let _ = (BLOCKS, WHOLE, leaf as fn(&[i64]) -> Tensor, loss as fn(Tensor) -> Result<Tensor, TchError>);
}
