"""The reference models, in PyTorch: what `stepledger run` trains, written a second time.

They exist to be compared with, so they favour plainness: the parameter names, shapes and the order of
the arithmetic are those of the Rust models, and nothing else is here. Weights of the GPT interchange
with nanoGPT's and GPT-2's by name (linear layers are stored [out, in], the head is tied to `wte`).
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY = 256
LAYER_NORM_EPSILON = 1e-5
# In place of a number of blocks to recompute together.
SELECTIVE = "selective"


class Attention(nn.Module):
    """Causal self-attention, either by the fused kernel or spelt out so that every product is visible.

    With `recomputed` its core, from q, k and v to what each head gives, is computed once more in backward.
    """

    def __init__(self, width, heads, kind, recomputed=False):
        super().__init__()
        self.heads, self.kind, self.recomputed = heads, kind, recomputed
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x, future):
        batch, seq, width = x.shape
        by_head = (batch, seq, self.heads, width // self.heads)
        q, k, v = (part.view(by_head).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
        core = attention_fused if self.kind == "sdpa" else attention_spelt_out
        if self.recomputed:
            mixed = checkpoint(core, q, k, v, future, use_reentrant=False, preserve_rng_state=False)
        else:
            mixed = core(q, k, v, future)
        return self.c_proj(mixed.transpose(1, 2).reshape(batch, seq, width))


def attention_fused(q, k, v, _future):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def attention_spelt_out(q, k, v, future):
    """Scaled with `mul.Scalar`, as from Rust: Python's `*` would keep the factor as a tensor for backward."""
    scores = torch.ops.aten.mul.Scalar(q @ k.transpose(-2, -1), q.shape[-1] ** -0.5)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ v


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads, kind, core_recomputed=False):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)
        self.attn = Attention(width, heads, kind, core_recomputed)
        self.ln_2 = nn.LayerNorm(width, eps=LAYER_NORM_EPSILON)
        self.mlp = Mlp(width)

    def forward(self, x, future):
        x = x + self.attn(self.ln_1(x), future)
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """GPT-2's layout; `group` is the number of blocks recomputed together (0: keep all activations).

    With `SELECTIVE` for it, only each attention's core is recomputed.
    """

    def __init__(self, layers, width, heads, seq, attention="sdpa", group=0):
        super().__init__()
        selective = group == SELECTIVE
        self.group = 0 if selective else group
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(VOCABULARY, width),
            "wpe": nn.Embedding(seq, width),
            "h": nn.ModuleList(Block(width, heads, attention, selective) for _ in range(layers)),
            "ln_f": nn.LayerNorm(width, eps=LAYER_NORM_EPSILON),
        })
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        # True where attention must not look. A constant of the model, so not among its weights, and
        # the fused kernel needs none.
        mask = torch.ones(seq, seq, dtype=torch.bool).triu(1) if attention == "math" else None
        self.register_buffer("future", mask, persistent=False)

    def forward(self, tokens, targets):
        seq = tokens.shape[1]
        positions = torch.arange(seq)
        future = None if self.future is None else self.future[:seq, :seq]
        # Positions are looked up first, as from Rust: backward goes through the two in the opposite order.
        position = self.transformer.wpe(positions)
        x = self.transformer.wte(tokens) + position
        del position
        x = run_blocks(self.transformer.h, x, self.group, future)
        return mean_loss(self.lm_head(self.transformer.ln_f(x)), targets)


class GeluLinear(nn.Linear):
    """A linear layer and its activation, as one module so that the weights are `h.<i>.weight`, `.bias`."""

    def forward(self, x):
        return F.gelu(super().forward(x))


class ByteMlp(nn.Module):
    """A plain stack of Linear+GELU applied to every position: proves that nothing needs attention."""

    def __init__(self, layers, width, group=0):
        super().__init__()
        self.group = group
        self.wte = nn.Embedding(VOCABULARY, width)
        self.h = nn.ModuleList(GeluLinear(width, width) for _ in range(layers))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens, targets):
        return mean_loss(self.head(run_blocks(self.h, self.wte(tokens), self.group)), targets)


def run_blocks(blocks, x, group, *rest):
    """Applies the blocks in turn; with a group size, each group keeps only its input for backward.

    Nothing in a block is random, so the generator's state (5,056 bytes a group) is not kept either.
    """
    if not group:
        for block in blocks:
            x = block(x, *rest)
        return x
    for start in range(0, len(blocks), group):
        x = checkpoint(run_blocks, blocks[start:start + group], x, 0, *rest,
                       use_reentrant=False, preserve_rng_state=False)
    return x


def mean_loss(logits, targets):
    """Mean cross-entropy over all positions. Only the loss leaves, so the logits die with forward."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
