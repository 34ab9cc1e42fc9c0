#!/usr/bin/env python3
"""Is our step as fast as PyTorch eager's? Same model, weights, batches, threads and fused AdamW.

A first run of stepledger writes the weights and batches. Then, for each round, stepledger trains N
steps and a PyTorch worker, warm since the beginning, trains N steps on those batches; the order changes
from round to round, so that a machine that gets slower favours neither. The ratio is ours over
PyTorch's: below 1 we are faster.

    .venv/bin/python benches/compare_pytorch.py                        # a table
    .venv/bin/python benches/compare_pytorch.py --json --layers 2 --width 64

Run it with the Python of `.venv`, which has PyTorch, on a machine that does nothing else.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class BenchError(Exception):
    """A program could not be run, or did not answer as it should."""


class Stepledger:
    """Our side: each measurement is a run of its own, with its own warm-up."""

    def __init__(self, arguments, folder):
        self.binary, self.folder = arguments.bin.resolve(), folder
        self.weights, self.batches = folder / "weights.safetensors", folder / "batches.safetensors"
        self.flags = [
            "--model", "gpt", "--layers", arguments.layers, "--width", arguments.width, "--heads", arguments.heads,
            "--seq", arguments.seq, "--batch", arguments.batch, "--attention", arguments.attention,
            "--steps", arguments.steps, "--warmup", arguments.warmup, "--threads", arguments.threads,
            "--data", arguments.data, "--trace", "phases", "--quiet"]
        self.runs = 0

    def prepare(self):
        """Writes the weights and batches that both sides start from."""
        self._train("--save-init", self.weights, "--save-batches", self.batches)

    def measure(self):
        """The median step of a fresh run, in milliseconds."""
        out = self._train("--init", self.weights)
        run_id = only_folder(out)
        shown = self._call("show", run_id, "--json", "--out", out)
        try:
            return float(json.loads(shown)["step"]["median_ms"])
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"`stepledger show {run_id} --json` gave no step.median_ms ({error!r})") from None

    def _train(self, *flags):
        self.runs += 1
        out = self.folder / f"runs-{self.runs}"
        self._call("run", *self.flags, *flags, "--out", out)
        return out

    def _call(self, *words):
        command = [str(self.binary), *map(str, words)]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            raise BenchError(f"cannot start {self.binary}: {error.strerror} (build it, or name it with --bin)") from None
        if done.returncode:
            raise BenchError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stderr.strip()}")
        return done.stdout


class PyTorch:
    """Their side: one process that stays warm and answers on its stdout."""

    def __init__(self, arguments, weights, batches):
        self.steps = arguments.steps
        command = [
            sys.executable, ROOT / "benches" / "pytorch_step.py", "--serve", "--init", weights, "--batches", batches,
            "--layers", arguments.layers, "--heads", arguments.heads, "--attention", arguments.attention,
            "--threads", arguments.threads, "--warmup", arguments.warmup]
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """The end of its input is the worker's sign to leave."""
        self.process.stdin.close()
        self.process.wait()

    def measure(self):
        """The median of the next steps, in milliseconds."""
        try:
            print("run", self.steps, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # the missing answer says it
        return self._answer()["median_ns"] / 1e6

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise BenchError(f"the PyTorch worker ended with {self.process.wait()}")
        return json.loads(line)


def only_folder(out):
    folders = [entry.name for entry in out.iterdir() if entry.is_dir()] if out.is_dir() else []
    if len(folders) != 1:
        raise BenchError(f"expected one run in {out}, found {folders}")
    return folders[0]


def measure_rounds(ours, theirs, count):
    """Yields (ours, theirs) in milliseconds; every other round starts with the other side."""
    for number in range(count):
        if number % 2:
            b, a = theirs.measure(), ours.measure()
        else:
            a, b = ours.measure(), theirs.measure()
        yield a, b


def summary(rounds):
    ours, theirs = (statistics.median(side) for side in zip(*rounds))
    ratios = [a / b for a, b in rounds]
    return {"rounds": [{"ours_ms": a, "pytorch_ms": b, "ratio": a / b} for a, b in rounds],
            "ours_ms": ours, "pytorch_ms": theirs, "ratio": ours / theirs,
            "ratio_min": min(ratios), "ratio_max": max(ratios)}


def print_table(result):
    print("round   ours ms   PyTorch ms   ratio")
    for number, row in enumerate(result["rounds"], 1):
        print(f"{number:5}   {row['ours_ms']:7.3f}   {row['pytorch_ms']:10.3f}   {row['ratio']:5.3f}")
    print(f"ratio of medians, ours / PyTorch: {result['ratio']:.3f} "
          f"(rounds {result['ratio_min']:.3f} to {result['ratio_max']:.3f})")


def run(arguments):
    with tempfile.TemporaryDirectory(prefix="stepledger-bench-") as folder:
        ours = Stepledger(arguments, Path(folder))
        ours.prepare()
        with PyTorch(arguments, ours.weights, ours.batches) as theirs:
            return summary(list(measure_rounds(ours, theirs, arguments.rounds)))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare stepledger's step time with PyTorch eager's, in rounds.")
    parser.add_argument("--bin", type=Path, default=ROOT / "target" / "release" / "stepledger", metavar="FILE",
                        help="the program to measure (default: target/release/stepledger)")
    parser.add_argument("--data", type=Path, default=ROOT / "data" / "sums.txt", metavar="FILE",
                        help="text to train on (default: data/sums.txt)")
    parser.add_argument("--rounds", type=int, default=7, metavar="R", help="default: 7")
    parser.add_argument("--steps", type=int, default=50, metavar="N", help="measured steps a round and side (default: 50)")
    parser.add_argument("--attention", choices=("sdpa", "math"), default="sdpa", help="default: sdpa")
    for flag, default in (("warmup", 10), ("threads", 2), ("layers", 4), ("width", 128), ("heads", 4), ("seq", 64), ("batch", 8)):
        parser.add_argument(f"--{flag}", type=int, default=default, metavar="N", help=f"default: {default}")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    arguments = parser.parse_args()
    if min(arguments.rounds, arguments.steps) < 1:
        parser.error("--rounds and --steps must be 1 or more")
    return arguments


def main():
    arguments = parse_arguments()
    try:
        result = run(arguments)
    except BenchError as error:
        print(f"compare_pytorch: {error}", file=sys.stderr)
        sys.exit(2)
    if arguments.json:
        print(json.dumps(result))
    else:
        print_table(result)


if __name__ == "__main__":
    main()
