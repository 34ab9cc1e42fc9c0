#!/usr/bin/env python3
"""Times the bare training step of PyTorch eager on the weights and batches of a stepledger run.

A step is: take the batch, zero the gradients (set to none), forward, backward, optimizer step, and the
loss as a number. One JSON object goes to stdout:

    {"threads": T, "step_ns": [...], "median_ns": M, "wall_ns": W, "per_step_ns": W / steps}

With `--profiler` the steps run inside `torch.profiler` with memory and shapes, and its start and stop
count: `wall_ns` spans the loop with them, and `per_step_ns` is that over the number of steps.

With `--serve` the process warms up, prints `{"ready": true, ...}` and then answers each line `run N` on
stdin with one such object for N more steps, until `quit` or the end of stdin. A driver can so alternate
with another program while this one stays warm.
"""

import argparse
import contextlib
import json
import statistics
import sys
import time
from itertools import cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "python"))

import torch

import replay


def timed_step(model, optimizer, batches):
    """One step, in nanoseconds of the wall clock."""
    start = time.perf_counter_ns()
    tokens, targets = replay.input_and_target(next(batches))
    optimizer.zero_grad(set_to_none=True)
    loss = model(tokens, targets)
    loss.backward()
    optimizer.step()
    loss.item()
    return time.perf_counter_ns() - start


def observer(arguments):
    if not arguments.profiler:
        return contextlib.nullcontext()
    activities = [torch.profiler.ProfilerActivity.CPU]
    return torch.profiler.profile(activities=activities, profile_memory=True, record_shapes=True, acc_events=True)


def measure(step, steps, arguments):
    """Times `steps` steps, and the whole with the observer's start and stop."""
    start = time.perf_counter_ns()
    with observer(arguments):
        times = [step() for _ in range(steps)]
    wall = time.perf_counter_ns() - start
    return {"threads": torch.get_num_threads(), "step_ns": times, "median_ns": statistics.median(times),
            "wall_ns": wall, "per_step_ns": wall / steps}


def serve(step, arguments):
    answer({"ready": True, "threads": torch.get_num_threads(), "torch": torch.__version__})
    for line in sys.stdin:
        words = line.split()
        if words == ["quit"]:
            return
        if len(words) != 2 or words[0] != "run" or not words[1].isdecimal() or int(words[1]) < 1:
            answer({"error": f"expected `run N` or `quit`, not `{line.strip()}`"})
            continue
        answer(measure(step, int(words[1]), arguments))


def answer(result):
    print(json.dumps(result), flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Time the bare training step of PyTorch eager.")
    replay.add_model_arguments(parser)
    parser.add_argument("--warmup", type=int, default=10, metavar="N", help="steps before any is timed (default: 10)")
    parser.add_argument("--steps", type=replay.positive, default=50, metavar="N", help="steps to time (default: 50)")
    parser.add_argument("--profiler", action="store_true", help="run under torch.profiler with memory and shapes")
    parser.add_argument("--serve", action="store_true", help="answer `run N` lines on stdin")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    try:
        model = replay.build_model(arguments, replay.load_tensors(arguments.init))
        tokens = replay.load_batches(arguments.batches)
        replay.check_batches(model, tokens, arguments)
    except replay.InputError as error:
        print(f"pytorch_step: {error}", file=sys.stderr)
        sys.exit(2)
    optimizer, batches = replay.make_optimizer(model, arguments), cycle(tokens.unbind())

    def step():
        return timed_step(model, optimizer, batches)

    for _ in range(arguments.warmup):
        step()
    if arguments.serve:
        serve(step, arguments)
    else:
        answer(measure(step, arguments.steps, arguments))


if __name__ == "__main__":
    main()
