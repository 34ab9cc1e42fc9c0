//! Tensors in the host's memory, placed as a test wants them, and the kernel run on them.

use std::ffi::{CString, c_char};
use std::num::NonZeroU64;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use stepledger::device::{Batch, Hyper, Numbers, Operands, Source, Storage, Tiling, batches};

use crate::bf16::{nearest, widened};
use crate::host::Host;

/// Bytes before and behind each array, which must stay as they are. As numbers of either type they are no small ones.
const GUARD: usize = 32;
const UNTOUCHED: u8 = 0x7e;

/// An array of f32 or bf16, somewhere among bytes that nobody may touch.
pub struct Array {
    room: Vec<u8>,
    begin: usize,
    len: usize,
    half: bool,
}

impl Array {
    /// It begins `skew` elements after a multiple of 16 bytes.
    pub fn new(values: &[f32], half: bool, skew: usize) -> Array {
        let width = if half { 2 } else { 4 };
        let room = vec![UNTOUCHED; values.len() * width + 3 * GUARD];
        let begin = GUARD + room.as_ptr().align_offset(16) + skew * width;
        let mut array = Array { room, begin, len: values.len() * width, half };
        array.set(values);
        array
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.begin..self.begin + self.len]
    }

    pub fn set(&mut self, values: &[f32]) {
        let bytes: Vec<u8> = match self.half {
            true => values.iter().flat_map(|&value| rounded(value).to_ne_bytes()).collect(),
            false => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
        };
        self.room[self.begin..self.begin + self.len].copy_from_slice(&bytes);
    }

    /// Whether it is of bf16.
    pub fn is_half(&self) -> bool {
        self.half
    }

    /// Of an array of bf16.
    pub fn bits(&self) -> Vec<u16> {
        assert!(self.half);
        self.bytes().chunks_exact(2).map(|bytes| u16::from_ne_bytes(bytes.try_into().unwrap())).collect()
    }

    /// Its values, whatever they are kept in.
    pub fn floats(&self) -> Vec<f32> {
        match self.half {
            true => self.bits().into_iter().map(widened).collect(),
            false => {
                self.bytes().chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect()
            }
        }
    }

    pub fn address(&mut self) -> u64 {
        self.room[self.begin..].as_mut_ptr() as u64
    }

    fn check_guards(&self) {
        let around = self.room[..self.begin].iter().chain(&self.room[self.begin + self.len..]);
        assert!(around.copied().all(|byte| byte == UNTOUCHED), "written outside of an array");
    }
}

fn rounded(value: f32) -> u16 {
    if value.is_finite() { nearest(f64::from(value)) } else { (value.to_bits() >> 16) as u16 }
}

/// A parameter with all that its update touches.
pub struct Tensor {
    pub params: Array,
    pub grads: Array,
    pub exp_avgs: Array,
    pub exp_avg_sqs: Array,
    pub masters: Option<Array>,
    pub step: Array,
    /// Of its gradients.
    scale: f32,
}

impl Tensor {
    /// A parameter of some size, its states zero, and so is its gradient, which has a skew of its own.
    pub fn new(
        storage: Storage,
        numel: usize,
        skew: usize,
        grad_skew: usize,
        random: &mut ChaCha8Rng,
    ) -> Tensor {
        let scale = 10f32.powi(random.gen_range(-3..2));
        let values: Vec<f32> = (0..numel).map(|_| random.gen_range(-scale..scale)).collect();
        Tensor { scale: 10f32.powi(random.gen_range(-4..3)), ..Tensor::of(storage, &values, skew, grad_skew) }
    }

    /// A parameter of these values.
    pub fn of(storage: Storage, values: &[f32], skew: usize, grad_skew: usize) -> Tensor {
        let zeros = vec![0.0; values.len()];
        let half = storage != Storage::F32;
        let state = || Array::new(&zeros, storage == Storage::Bf16, skew);
        Tensor {
            params: Array::new(values, half, skew),
            grads: Array::new(&zeros, half, grad_skew),
            exp_avgs: state(),
            exp_avg_sqs: state(),
            masters: (storage == Storage::Bf16Masters).then(|| Array::new(values, false, skew)),
            step: Array::new(&[0.0], false, skew),
            scale: 1.0,
        }
    }

    pub fn operands(&mut self) -> Operands {
        Operands {
            numel: self.grads.floats().len() as u64,
            param: self.params.address(),
            grad: self.grads.address(),
            exp_avg: self.exp_avgs.address(),
            exp_avg_sq: self.exp_avg_sqs.address(),
            master: self.masters.as_mut().map_or(0, Array::address),
            step: self.step.address(),
        }
    }

    /// New gradients of its scale; returns them as they are kept.
    pub fn new_grads(&mut self, random: &mut ChaCha8Rng) -> Vec<f32> {
        let numel = self.grads.floats().len();
        let grads: Vec<f32> = (0..numel).map(|_| random.gen_range(-self.scale..self.scale)).collect();
        self.grads.set(&grads);
        self.grads.floats()
    }

    /// What is updated: the masters, or else the parameters.
    pub fn updated(&self) -> Vec<f32> {
        self.masters.as_ref().unwrap_or(&self.params).floats()
    }

    pub fn check_guards(&self) {
        let arrays = [&self.params, &self.grads, &self.exp_avgs, &self.exp_avg_sqs, &self.step];
        arrays.into_iter().chain(&self.masters).for_each(Array::check_guards);
    }
}

/// The kernel, on the host.
pub struct Kernel {
    host: Host,
    tiling: Tiling,
}

type Run = extern "C" fn(*const c_char, u32, *const Batch, *const Numbers, bool) -> bool;

impl Kernel {
    pub fn new(block_size: u32, tile_size: u32) -> Kernel {
        let tiling = Tiling::new(block_size, tile_size).unwrap();
        let host = Host::build("adamw.cpp", &Source::adamw(tiling).defines());
        // SAFETY: the file declares them so.
        let sizes = ["host_batch_bytes", "host_numbers_bytes"]
            .map(|name| unsafe { host.function::<extern "C" fn() -> usize>(name) }());
        assert_eq!(sizes, [size_of::<Batch>(), size_of::<Numbers>()]);
        Kernel { host, tiling }
    }

    /// One step, by the launches that a card would get; in every other step the threads run in descending order.
    pub fn step(&self, storage: Storage, operands: &[Operands], hyper: Hyper, count: u64) {
        let name = CString::new(storage.kernel()).unwrap();
        // SAFETY: the file declares it so.
        let run: Run = unsafe { self.host.function("host_adamw") };
        let numbers = Numbers::new(hyper, NonZeroU64::new(count).unwrap());
        for batch in batches(operands, self.tiling).unwrap() {
            assert!(
                run(name.as_ptr(), batch.blocks(), &batch, &numbers, count.is_multiple_of(2)),
                "{storage:?}"
            );
        }
    }
}
