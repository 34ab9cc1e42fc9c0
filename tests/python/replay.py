#!/usr/bin/env python3
"""Repeats a run of `stepledger` in PyTorch, from its weights and its batches, and prints the losses.

The weights (`--init`) and the tokens (`--batches`) are files that `stepledger run` writes with
`--save-init` and `--save-batches`; every batch in the file is trained on, in order. One JSON object
goes to stdout:

    {"losses": [one a step, every digit], "torch": "2.11.0", "parameters": P,
     "live_bytes_forward_end": B or null, "peak_bytes": B or null, "memory": {...} or null}

**Memory** (`--memory`) is measured in an extra pass over the first steps, from the same weights, and tells
of the last of these (which has optimizer states, as every later step has): `live_bytes` at the moments of
the step, `live_bytes_each_forward_end` and `activation_bytes` one a micro-batch, `peak_bytes`, `peaks` by
phase over all micro-batches. What it can see and what not is said in memory.py.

**Types** (`--dtype`): with `bf16` the parameters are cast after loading and all computes in bf16; with
`amp-bf16` they stay f32 and the forward, loss included, runs under `torch.autocast`, backward outside it.

Wrong input ends with exit code 2 and a message that names the file and the tensors.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # its error about a machine without a GPU is no error here

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from adamw import make_optimizer
from memory import STEP_START, measure
from nanogpt import SELECTIVE, VOCABULARY, ByteMlp, Gpt

TIED_HEAD, TIED_TO = "lm_head.weight", "transformer.wte.weight"
MEMORY_STEPS = 3


class InputError(Exception):
    """Something the user gave is wrong; the message says what, and is all that is printed."""


# Command line.

def add_model_arguments(parser):
    """The flags that this and the benchmark share, under the names `stepledger run` gives them."""
    parser.add_argument("--model", choices=("gpt", "mlp"), default="gpt", help="default: gpt")
    parser.add_argument("--init", type=Path, required=True, metavar="FILE", help="weights, safetensors, by name")
    parser.add_argument("--batches", type=Path, required=True, metavar="FILE",
                        help="safetensors with `tokens`, int64 [steps * accumulate, batch, seq + 1]")
    parser.add_argument("--layers", type=positive, default=4, metavar="N", help="default: 4")
    parser.add_argument("--heads", type=positive, default=4, metavar="N", help="default: 4 (gpt only)")
    parser.add_argument("--attention", choices=("sdpa", "math"), default="sdpa", help="default: sdpa (gpt only)")
    parser.add_argument("--lr", type=float, default=1e-3, metavar="X", help="default: 1e-3")
    parser.add_argument("--betas", type=two_floats, default=(0.9, 0.95), metavar="X,Y", help="default: 0.9,0.95")
    parser.add_argument("--eps", type=float, default=1e-8, metavar="X", help="default: 1e-8")
    parser.add_argument("--weight-decay", type=float, default=0.1, metavar="X", help="default: 0.1, on all parameters")
    parser.add_argument("--adamw", choices=("fused", "foreach", "loop"), default="fused", help="default: fused")
    parser.add_argument("--dtype", choices=("f32", "bf16", "amp-bf16"), default="f32",
                        help="bf16: parameters and all arithmetic; amp-bf16: f32 parameters, forward under autocast "
                             "(default: f32)")
    parser.add_argument("--state-dtype", choices=("f32", "bf16"),
                        help="of AdamW's two states; another one than the parameters' makes --adamw plain "
                             "(default: the parameters', or f32 with --master-weights)")
    parser.add_argument("--master-weights", action="store_true",
                        help="keep and train an f32 copy of the parameters, which --dtype bf16 must make bf16")
    parser.add_argument("--checkpoint", type=group_size, default=0, dest="group",
                        metavar="none|full|every:K|selective",
                        help="recompute every block, groups of K blocks, or only attention's core (gpt only), "
                             "in backward (default: none)")
    parser.add_argument("--threads", type=positive, metavar="N", help="default: as many as PyTorch takes by itself")


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def two_floats(text):
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two numbers such as 0.9,0.95, not {text}") from None
    return first, second


def group_size(text):
    """How many blocks are recomputed together: 0 for `none`, 1 for `full`, K for `every:K`; or `selective`."""
    if text == SELECTIVE:
        return SELECTIVE
    if text in ("none", "full"):
        return ("none", "full").index(text)
    kind, _, count = text.partition(":")
    if kind != "every" or not count.isdecimal() or int(count) < 1:
        raise argparse.ArgumentTypeError(f"expected none, full, every:K with K of 1 or more, or selective, not {text}")
    return int(count)


# Files.

def load_tensors(path):
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot read {path} as safetensors: {error}") from None


def save_tensors(tensors, path):
    try:
        save_file(tensors, path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"cannot write {path}: {error}") from None


def load_batches(path):
    tokens = load_tensors(path).get("tokens")
    if tokens is None:
        raise InputError(f"{path}: no tensor `tokens`")
    if tokens.dtype != torch.int64 or tokens.dim() != 3 or min(tokens.shape) < 1 or tokens.shape[2] < 2:
        raise InputError(f"{path}: `tokens` must be int64 [steps * accumulate, batch, seq + 1], "
                         f"not {tokens.dtype} {list(tokens.shape)}")
    if tokens.min() < 0 or tokens.max() >= VOCABULARY:
        raise InputError(f"{path}: `tokens` must lie in 0..{VOCABULARY - 1}")
    return tokens


def input_and_target(batch):
    """Two blocks of their own, so that the file's (which no allocator gave) is not kept alive.

    `contiguous()` would not do: a batch of one sequence is contiguous already and would stay a view.
    """
    return tuple(part.clone(memory_format=torch.contiguous_format) for part in (batch[:, :-1], batch[:, 1:]))


# Model and optimizer.

def size_of(weights, name, dimension, path):
    tensor = weights.get(name)
    if tensor is None or tensor.dim() != 2:
        raise InputError(f"{path}: `{name}` is missing or has not two dimensions; is --model right?")
    return tensor.shape[dimension]


def build_model(arguments, weights):
    """The model with the file's width and longest sequence, holding the file's weights, in the type asked for."""
    path = arguments.init
    if arguments.group != SELECTIVE and arguments.group > arguments.layers:
        raise InputError(f"--checkpoint every:{arguments.group}: there are only {arguments.layers} layers")
    if arguments.master_weights and arguments.dtype != "bf16":
        raise InputError(f"--master-weights: with --dtype {arguments.dtype} the parameters are f32 already")
    model = build_in_f32(arguments, weights)
    copy_weights(model, weights, path, arguments.dtype)
    if arguments.dtype == "bf16":
        model.to(torch.bfloat16)
    elif arguments.dtype == "amp-bf16":
        # Autocast's cache of weights lives until the wrapped call returns, so backward is outside of it.
        model.forward = torch.autocast("cpu", dtype=torch.bfloat16)(model.forward)
    return model


def build_in_f32(arguments, weights):
    path = arguments.init
    if arguments.model == "mlp":
        return ByteMlp(arguments.layers, size_of(weights, "wte.weight", 1, path), arguments.group)
    width = size_of(weights, TIED_TO, 1, path)
    if width % arguments.heads:
        raise InputError(f"{path}: a width of {width} cannot be shared among {arguments.heads} heads")
    seq = size_of(weights, "transformer.wpe.weight", 0, path)
    return Gpt(arguments.layers, width, arguments.heads, seq, arguments.attention, arguments.group)


def copy_weights(model, weights, path, dtype):
    """Copies by name, after checking all names and shapes, so that one message names every fault.

    The tied head may be in the file or not (two names, one tensor); if it is, it must equal `wte`.
    A model that will be bf16 takes a bf16 file too: widening loses nothing.
    """
    wanted = dict(model.named_parameters())
    given = {name: tensor for name, tensor in weights.items() if name != TIED_HEAD or TIED_TO not in wanted}
    faults = [f"missing `{name}` {list(wanted[name].shape)}" for name in wanted if name not in given]
    faults += [f"extra `{name}` {list(given[name].shape)}" for name in given if name not in wanted]
    dtypes = (torch.float32, torch.bfloat16) if dtype == "bf16" else (torch.float32,)
    faults += [f"`{name}` is {given[name].dtype} {list(given[name].shape)}, wanted {p.dtype} {list(p.shape)}"
               for name, p in wanted.items()
               if name in given and (given[name].shape != p.shape or given[name].dtype not in dtypes)]
    if TIED_HEAD in weights and TIED_TO in wanted and not torch.equal(weights[TIED_HEAD], weights[TIED_TO]):
        faults.append(f"`{TIED_HEAD}` differs from `{TIED_TO}`, to which it is tied")
    if faults:
        raise InputError(f"{path} does not fit the model: " + "; ".join(faults))
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(given[name])


def check_batches(model, tokens, arguments, accumulate=1):
    path = arguments.batches
    if len(tokens) % accumulate:
        raise InputError(f"{path}: {len(tokens)} batches cannot be shared among steps of {accumulate}")
    if arguments.model == "gpt":
        longest = model.transformer.wpe.num_embeddings
        if tokens.shape[2] - 1 > longest:
            raise InputError(f"{path}: sequences of {tokens.shape[2] - 1} are longer than the {longest} of {arguments.init}")


# Training.

def run_step(model, optimizer, batches, zero_grad="none", mark=lambda name: None):
    """One optimizer step over its micro-batches; returns the mean of their losses.

    `mark` is told as the step and each phase begin and end; with several micro-batches a phase runs several times.
    """
    def phase(name, work):
        mark(f"{name}_begin")
        result = work()
        mark(f"{name}_end")
        return result

    mark(STEP_START)
    optimizer.zero_grad(set_to_none=zero_grad == "none")
    total = 0.0
    for batch in batches:
        tokens, targets = phase("dataloader", lambda: input_and_target(batch))
        loss = phase("forward", lambda: model(tokens, targets))
        phase("backward", lambda: (loss / len(batches) if len(batches) > 1 else loss).backward())
        total += loss.item()
        del loss, tokens, targets
    phase("optimizer", optimizer.step)
    return total / len(batches)


def gradients(model):
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


def weights_to_save(model):
    """Every nanoGPT name: the tied head too, as a copy, because one file cannot share storage."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def train(arguments, weights, tokens):
    model = build_model(arguments, weights)
    check_batches(model, tokens, arguments, arguments.accumulate)
    optimizer = make_optimizer(model, arguments)
    losses = []
    for batches in tokens.split(arguments.accumulate):
        losses.append(run_step(model, optimizer, batches, arguments.zero_grad))
        if arguments.grads and len(losses) == 1:
            save_tensors(gradients(model), arguments.grads)
    if arguments.save:
        save_tensors(weights_to_save(model), arguments.save)
    return losses, sum(parameter.numel() for parameter in model.parameters())


# Memory.

def measure_memory(arguments, weights, tokens):
    """Trains the first few steps anew under the profiler, and tells of the last of them."""
    steps = tokens.split(arguments.accumulate)[:MEMORY_STEPS]

    def train_under(mark):
        model = build_model(arguments, weights)
        optimizer = make_optimizer(model, arguments)
        for batches in steps:
            run_step(model, optimizer, batches, arguments.zero_grad, mark)

    return measure(train_under) | {"step": len(steps) - 1, "threads": 1}


def parse_arguments():
    parser = argparse.ArgumentParser(description="Repeat a run of stepledger in PyTorch and print its losses as JSON.")
    add_model_arguments(parser)
    parser.add_argument("--accumulate", type=positive, default=1, metavar="N", help="micro-batches a step (default: 1)")
    parser.add_argument("--zero-grad", choices=("none", "zero"), default="none",
                        help="before each step: drop the gradients, or keep and fill them (default: none)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the weights after the last step")
    parser.add_argument("--grads", type=Path, metavar="FILE",
                        help="write the gradients of the first step, as its optimizer saw them")
    parser.add_argument("--memory", action="store_true",
                        help=f"measure memory in an extra pass of up to {MEMORY_STEPS} steps on one thread")
    arguments = parser.parse_args()
    if arguments.model == "mlp" and arguments.group == SELECTIVE:
        parser.error("--checkpoint selective: an mlp has no attention")
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        weights, tokens = load_tensors(arguments.init), load_batches(arguments.batches)
        losses, parameters = train(arguments, weights, tokens)
        memory = measure_memory(arguments, weights, tokens) if arguments.memory else None
    except InputError as error:
        print(f"replay: {error}", file=sys.stderr)
        sys.exit(2)
    print(json.dumps({
        "losses": losses, "torch": torch.__version__.split("+")[0], "parameters": parameters,
        "live_bytes_forward_end": memory and memory["live_bytes"]["forward_end"],
        "peak_bytes": memory and memory["peak_bytes"], "memory": memory}))


if __name__ == "__main__":
    main()
