#!/usr/bin/env python3
"""What one step of a checkpointed stack takes in PyTorch (`use_reentrant=False`), beside the library's own.

    checkpoint.py KIND BLOCKS ROWS WIDTH

KIND is `block` (LayerNorm, Linear, GELU, Linear, dropout and the residual), `nested` (segments of two such blocks, each
of which is a segment again) or `widening` (a Linear to four times the width, whose result is summed over the four
quarters: a segment that ends in its largest tensor's making). The loss is the sum of squares, a segment of its own. Prints the bytes at the end of forward and at the peak as one JSON object; how
they are measured is said in memory.py.
"""

import json
import os
import sys

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # its error about a machine without a GPU is no error here

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from memory import STEP_START, measure

DROPOUT = 0.1


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, 4 * width)
        self.proj = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = self.proj(F.gelu(self.fc(self.norm(x))))
        return x + F.dropout(hidden, DROPOUT)


class Pair(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


class Widening(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 4 * width)

    def forward(self, x):
        return self.fc(x).view(len(x), 4, -1).sum(1)


def loss_of(x):
    return x.square().sum()


def train(kind, blocks, rows, width, mark):
    segments = [kind(width) for _ in range(blocks // 2 if kind is Pair else blocks)]
    hidden = torch.randn(rows, width)
    x = hidden  # alive to the end, as a batch is
    mark(STEP_START)
    mark("forward_begin")
    for segment in [*segments, loss_of]:
        hidden = checkpoint(segment, hidden, use_reentrant=False)
    mark("forward_end")
    mark("backward_begin")
    hidden.backward()
    mark("backward_end")
    mark("optimizer_end")
    return x


def main():
    kind = {"block": Block, "nested": Pair, "widening": Widening}[sys.argv[1]]
    blocks, rows, width = (int(number) for number in sys.argv[2:])
    account = measure(lambda mark: train(kind, blocks, rows, width, mark))
    assert account["consistent"]
    print(json.dumps({"forward_end": account["live_bytes"]["forward_end"], "peak": account["peak_bytes"]}))


if __name__ == "__main__":
    main()
