//! GPT-2's layout, name for name, at any size: weights interchange with nanoGPT's.
//!
//! Memory discipline: each intermediate is dropped by the statement that used it last, as Python's
//! rebinding would. A `let x = f(x)` that shadows would keep it to the end of the function.

use tch::nn::Path;
use tch::{Device, Kind, Reduction, TchError, Tensor};

use super::checkpoint::Checkpoint;
use super::config::Config;
use super::layers::{LayerNorm, Linear, normal};
use super::model::Model;
use super::ops::{arange, masked_fill, multiply};
use super::segments::{self, Part};
use crate::probe::scope;
use crate::theory::{Attention, Checkpoint as Policy, VOCABULARY};

/// A causal language model over bytes, its head tied to its embedding.
#[derive(Debug)]
pub struct Gpt {
    wte: Tensor,
    wpe: Tensor,
    blocks: Vec<Block>,
    ln_f: LayerNorm,
    seq: i64,
    dropout: f64,
    /// Blocks in a checkpointed segment; `None` where no block is one.
    group: Option<usize>,
}

#[derive(Debug)]
struct Block {
    name: String,
    ln_1: LayerNorm,
    attn: SelfAttention,
    ln_2: LayerNorm,
    mlp: Mlp,
    dropout: f64,
}

#[derive(Debug)]
struct SelfAttention {
    /// The block's.
    name: String,
    c_attn: Linear,
    c_proj: Linear,
    heads: i64,
    core: Core,
    /// Whether backward computes the core again.
    recomputed: bool,
}

/// What attention does between its two projections, head by head.
#[derive(Debug)]
struct Core {
    /// The causal mask, true where a position may not look; `None` where libtorch masks by itself.
    mask: Option<Tensor>,
    dropout: f64,
}

#[derive(Debug)]
struct Mlp {
    c_fc: Linear,
    c_proj: Linear,
}

/// GPT-2's spread of initial weights.
const STDEV: f64 = 0.02;

impl Gpt {
    /// Builds the model in `root`, initialised as GPT-2: normal weights with spread 0.02, the projections
    /// back into the residual stream scaled by 1/√(2·layers), zero biases.
    pub fn new(root: &Path, config: &Config) -> Result<Self, TchError> {
        let transformer = root / "transformer";
        let wte = normal(&(&transformer / "wte"), "weight", &[VOCABULARY, config.width], STDEV)?;
        let wpe = normal(&(&transformer / "wpe"), "weight", &[config.seq, config.width], STDEV)?;
        let mask = match config.attention {
            Attention::Sdpa => None,
            Attention::Math => Some(causal_mask(config.seq, root.device())?),
        };
        let h = &transformer / "h";
        let block = |i| Block::new(&(&h / i), i, config, mask.as_ref());
        let blocks = (0..config.layers).map(block).collect::<Result<_, _>>()?;
        let ln_f = LayerNorm::new(&(&transformer / "ln_f"), config.width)?;
        let group = config.checkpoint.group().map(|blocks| blocks as usize);
        Ok(Gpt { wte, wpe, blocks, ln_f, seq: config.seq, dropout: config.dropout, group })
    }

    fn embed(&self, tokens: &Tensor) -> Result<Tensor, TchError> {
        let _scope = scope("embed");
        let positions = arange(self.seq, tokens)?;
        let position = Tensor::f_embedding(&self.wpe, &positions, -1, false, false)?;
        let embedded = Tensor::f_embedding(&self.wte, tokens, -1, false, false)?.f_add(&position)?;
        dropped_out(embedded, self.dropout)
    }

    fn logits(&self, hidden: Tensor) -> Result<Tensor, TchError> {
        let hidden = {
            let _scope = scope("ln_f");
            self.ln_f.forward(&hidden)?
        };
        let _scope = scope("lm_head");
        hidden.f_linear(&self.wte, None::<&Tensor>)
    }
}

impl Model for Gpt {
    fn loss(&self, tokens: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
        let hidden = segments::run(&self.blocks, self.group, self.embed(tokens)?)?;
        let logits = self.logits(hidden)?;
        let _scope = scope("loss");
        mean_cross_entropy(&logits, targets)
    }

    fn tied(&self) -> &'static [(&'static str, &'static str)] {
        &[("lm_head.weight", "transformer.wte.weight")]
    }

    fn buffers(&self) -> Vec<(String, Tensor)> {
        let mask = self.blocks.first().and_then(|block| block.attn.core.mask.as_ref());
        mask.map(|mask| ("transformer.mask".to_owned(), mask.shallow_clone())).into_iter().collect()
    }
}

impl Block {
    fn new(path: &Path, number: i64, config: &Config, mask: Option<&Tensor>) -> Result<Self, TchError> {
        let width = config.width;
        let residual = STDEV / (2.0 * config.layers as f64).sqrt();
        let (attn, mlp) = (path / "attn", path / "mlp");
        Ok(Block {
            name: format!("h.{number}"),
            ln_1: LayerNorm::new(&(path / "ln_1"), width)?,
            attn: SelfAttention {
                name: format!("h.{number}"),
                c_attn: Linear::new(&(&attn / "c_attn"), width, 3 * width, STDEV)?,
                c_proj: Linear::new(&(&attn / "c_proj"), width, width, residual)?,
                heads: config.heads,
                core: Core { mask: mask.map(Tensor::shallow_clone), dropout: config.dropout },
                recomputed: config.checkpoint == Policy::Selective,
            },
            ln_2: LayerNorm::new(&(path / "ln_2"), width)?,
            mlp: Mlp {
                c_fc: Linear::new(&(&mlp / "c_fc"), width, 4 * width, STDEV)?,
                c_proj: Linear::new(&(&mlp / "c_proj"), 4 * width, width, residual)?,
            },
            dropout: config.dropout,
        })
    }

    fn normalized(&self, norm: &LayerNorm, name: &str, x: &Tensor) -> Result<Tensor, TchError> {
        let _scope = scope(name);
        norm.forward(x)
    }
}

impl Part for Block {
    fn name(&self) -> &str {
        &self.name
    }

    fn forward(&self, x: Tensor) -> Result<Tensor, TchError> {
        let _scope = scope(&self.name);
        let change = self.attn.forward(self.normalized(&self.ln_1, "ln_1", &x)?)?;
        let x = add(x, dropped_out(change, self.dropout)?)?;
        let change = self.mlp.forward(self.normalized(&self.ln_2, "ln_2", &x)?)?;
        add(x, dropped_out(change, self.dropout)?)
    }

    fn shallow_clone(&self) -> Self {
        Block {
            name: self.name.clone(),
            ln_1: self.ln_1.shallow_clone(),
            attn: self.attn.shallow_clone(),
            ln_2: self.ln_2.shallow_clone(),
            mlp: self.mlp.shallow_clone(),
            dropout: self.dropout,
        }
    }
}

impl SelfAttention {
    fn forward(&self, x: Tensor) -> Result<Tensor, TchError> {
        let _scope = scope("attn");
        let (batch, seq, width) = x.size3()?;
        let mixed = {
            let qkv = self.c_attn.forward(&x)?.f_split(width, 2)?;
            drop(x);
            let by_head = |i: usize| -> Result<Tensor, TchError> {
                qkv[i].f_view([batch, seq, self.heads, width / self.heads])?.f_transpose(1, 2)
            };
            self.attend(by_head(0)?, by_head(1)?, by_head(2)?)?
        };
        let joined = mixed.f_transpose(1, 2)?.f_reshape([batch, seq, width])?;
        drop(mixed);
        self.c_proj.forward(&joined)
    }

    fn attend(&self, q: Tensor, k: Tensor, v: Tensor) -> Result<Tensor, TchError> {
        if !self.recomputed {
            return self.core.forward(&q, &k, &v);
        }
        let core = self.core.shallow_clone();
        let segment = move |qkv: Vec<Tensor>| Ok(vec![core.forward(&qkv[0], &qkv[1], &qkv[2])?]);
        let mixed =
            Checkpoint::new(&format!("{}.attn.core", self.name)).stop_early().run(vec![q, k, v], segment)?;
        mixed.into_iter().next().ok_or_else(|| TchError::Torch("attention gave nothing".to_owned()))
    }

    fn shallow_clone(&self) -> Self {
        let SelfAttention { name, c_attn, c_proj, heads, core, recomputed } = self;
        SelfAttention {
            name: name.clone(),
            c_attn: c_attn.shallow_clone(),
            c_proj: c_proj.shallow_clone(),
            heads: *heads,
            core: core.shallow_clone(),
            recomputed: *recomputed,
        }
    }
}

impl Core {
    fn forward(&self, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Tensor, TchError> {
        let Some(mask) = &self.mask else {
            let no_mask = None::<&Tensor>;
            return Tensor::f_scaled_dot_product_attention(q, k, v, no_mask, self.dropout, true, None, false);
        };
        let (_, _, _, head_width) = q.size4()?;
        let scale = 1.0 / (head_width as f64).sqrt();
        let scores = q.f_matmul(&k.f_transpose(-2, -1)?)?;
        let scores = scaled(scores, scale)?;
        let scores = masked(scores, mask)?;
        let weights = softmax(scores)?;
        dropped_out(weights, self.dropout)?.f_matmul(v)
    }

    fn shallow_clone(&self) -> Self {
        Core { mask: self.mask.as_ref().map(Tensor::shallow_clone), dropout: self.dropout }
    }
}

impl Mlp {
    fn forward(&self, x: Tensor) -> Result<Tensor, TchError> {
        let _scope = scope("mlp");
        let wide = self.c_fc.forward(&x)?;
        drop(x);
        let wide = gelu(wide)?;
        self.c_proj.forward(&wide)
    }

    fn shallow_clone(&self) -> Self {
        Mlp { c_fc: self.c_fc.shallow_clone(), c_proj: self.c_proj.shallow_clone() }
    }
}

/// Mean over all positions of the cross-entropy between logits [B, T, V] and targets [B, T].
pub fn mean_cross_entropy(logits: &Tensor, targets: &Tensor) -> Result<Tensor, TchError> {
    let flat = logits.f_view([-1, VOCABULARY])?;
    flat.f_cross_entropy_loss(&targets.f_view([-1])?, None::<&Tensor>, Reduction::Mean, -100, 0.0)
}

/// Exact GELU (by erf); consumes its input so that nothing but autograd keeps it.
pub fn gelu(x: Tensor) -> Result<Tensor, TchError> {
    x.f_gelu("none")
}

fn add(a: Tensor, b: Tensor) -> Result<Tensor, TchError> {
    a.f_add(&b)
}

fn scaled(scores: Tensor, scale: f64) -> Result<Tensor, TchError> {
    multiply(&scores, scale)
}

fn softmax(scores: Tensor) -> Result<Tensor, TchError> {
    scores.f_softmax(-1, None)
}

/// Sets a share of the numbers to 0, and scales the rest; consumes its input.
pub fn dropped_out(x: Tensor, share: f64) -> Result<Tensor, TchError> {
    if share == 0.0 { Ok(x) } else { x.f_dropout(share, true) }
}

fn masked(scores: Tensor, mask: &Tensor) -> Result<Tensor, TchError> {
    masked_fill(&scores, mask, f64::NEG_INFINITY)
}

fn causal_mask(seq: i64, device: Device) -> Result<Tensor, TchError> {
    Tensor::f_ones([seq, seq], (Kind::Bool, device))?.f_triu(1)
}
