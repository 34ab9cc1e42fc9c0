//! Activation checkpointing: the same numbers as without it, less memory, and errors that name the segment.
#![cfg(feature = "torch")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../examples/checkpoint.rs"]
#[allow(dead_code)] // its `main`
mod example;
#[path = "../common/program.rs"]
mod program;

mod early;
mod errors;
mod gradients;
mod memory;
mod states;

use stepledger::train::checkpoint_one;
use tch::{Device, Kind, TchError, Tensor, kind::FLOAT_CPU};

/// LayerNorm → Linear → GELU → Linear → dropout, and the residual around them.
#[derive(Debug)]
pub struct Block {
    parameters: [Tensor; 6],
    dropout: f64,
}

impl Clone for Block {
    /// The same parameters.
    fn clone(&self) -> Self {
        Block { parameters: self.parameters.each_ref().map(Tensor::shallow_clone), dropout: self.dropout }
    }
}

impl Block {
    pub fn new(width: i64, dropout: f64) -> Self {
        let weight = |out: i64, inputs: i64| Tensor::randn([out, inputs], FLOAT_CPU) * 0.2;
        let vector = |size: i64| Tensor::rand([size], FLOAT_CPU);
        let parameters = [
            vector(width),
            vector(width),
            weight(4 * width, width),
            vector(4 * width),
            weight(width, 4 * width),
            vector(width),
        ];
        Block { parameters: parameters.map(|parameter| parameter.set_requires_grad(true)), dropout }
    }

    pub fn forward(&self, x: Tensor) -> Result<Tensor, TchError> {
        let [gain, shift, fc, fc_bias, proj, proj_bias] = &self.parameters;
        let mut hidden = x.f_layer_norm([gain.size()[0]], Some(gain), Some(shift), 1e-5, true)?;
        hidden = hidden.f_linear(fc, Some(fc_bias))?;
        hidden = hidden.f_gelu("none")?;
        hidden = hidden.f_linear(proj, Some(proj_bias))?;
        hidden = hidden.f_dropout(self.dropout, true)?;
        x.f_add(&hidden)
    }
}

/// Blocks one after the other, each of them a segment or not.
#[derive(Debug)]
pub struct Stack {
    pub blocks: Vec<Block>,
    pub x: Tensor,
}

impl Stack {
    pub fn new(blocks: i64, rows: i64, width: i64, dropout: f64) -> Self {
        tch::manual_seed(7);
        let blocks = (0..blocks).map(|_| Block::new(width, dropout)).collect();
        let x = Tensor::randn([rows, width], (Kind::Float, Device::Cpu));
        Stack { blocks, x }
    }

    pub fn parameters(&self) -> impl Iterator<Item = &Tensor> {
        self.blocks.iter().flat_map(|block| &block.parameters)
    }

    pub fn output(&self, checkpointed: bool) -> Result<Tensor, TchError> {
        let mut hidden = self.x.shallow_clone();
        for (number, block) in self.blocks.iter().enumerate() {
            hidden = match checkpointed {
                false => block.forward(hidden)?,
                true => {
                    let block = block.clone();
                    checkpoint_one(&format!("h.{number}"), hidden, move |x| block.forward(x))?
                }
            };
        }
        Ok(hidden)
    }

    /// Backward from the output's sum of squares, as the last segment; returns that and all gradients.
    pub fn step(&self, checkpointed: bool) -> Vec<Tensor> {
        tch::manual_seed(1);
        let loss = loss(self.output(checkpointed).unwrap()).unwrap();
        loss.f_backward().unwrap();
        let leaves = self.parameters().chain(self.x.requires_grad().then_some(&self.x));
        let gradients = leaves.map(taken_gradient).collect::<Vec<_>>();
        std::iter::once(loss.detach()).chain(gradients).collect()
    }
}

pub fn loss(output: Tensor) -> Result<Tensor, TchError> {
    output.f_square()?.f_sum(Kind::Float)
}

/// A leaf's gradient, which it has no more.
pub fn taken_gradient(leaf: &Tensor) -> Tensor {
    let gradient = leaf.grad().copy();
    leaf.shallow_clone().zero_grad();
    gradient
}

pub fn assert_same(ours: &[Tensor], theirs: &[Tensor]) {
    assert_eq!(ours.len(), theirs.len());
    for (place, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours.kind(), theirs.kind());
        assert!(ours.equal(theirs), "tensor {place} differs by {}", (ours - theirs).abs().max());
    }
}

pub fn leaf(sizes: &[i64]) -> Tensor {
    Tensor::randn(sizes, FLOAT_CPU).set_requires_grad(true)
}
