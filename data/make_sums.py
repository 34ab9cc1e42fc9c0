#!/usr/bin/env python3
"""Writes the default training text, `sums.txt`: lines such as `12+35=47`.

A small model learns the shape of a line within a few dozen steps (so that the loss visibly falls) and
the carrying of digits much later (so that there is something left to learn).

Only the standard library is used, and not its `random`: the numbers come from the generator below,
whose every step is integer arithmetic, so that any Python (3.10 or newer) writes the same bytes.

    python3 data/make_sums.py                          # writes sums.txt beside this script
    python3 data/make_sums.py --check data/sums.txt    # is the file what would be written?
"""

import argparse
import sys
from pathlib import Path

SEED = 2711
BYTES = 96 * 1024
LARGEST = 99

# Knuth's MMIX linear congruential generator: state <- state * MULTIPLIER + INCREMENT mod 2^64.
MULTIPLIER = 6364136223846793005
INCREMENT = 1442695040888963407


def numbers(seed, bound):
    """Yields integers in [0, bound) for ever.

    The upper 32 bits of the state are scaled to the range: the lower bits of such a generator repeat
    after short periods.
    """
    state = seed
    while True:
        state = (state * MULTIPLIER + INCREMENT) % 2**64
        yield (state >> 32) * bound >> 32


def make_sums(seed=SEED, size=BYTES):
    """The whole text: as many complete lines as fit into `size` bytes."""
    source = numbers(seed, LARGEST + 1)
    lines, used = [], 0
    while True:
        a, b = next(source), next(source)
        line = f"{a}+{b}={a + b}\n"
        if used + len(line) > size:
            return "".join(lines).encode("ascii")
        lines.append(line)
        used += len(line)


def first_difference(left, right):
    """The offset of the first byte in which the two differ (they must differ)."""
    for offset, (a, b) in enumerate(zip(left, right)):
        if a != b:
            return offset
    return min(len(left), len(right))


def check(path, expected):
    """Returns a complaint, or None when the file holds exactly `expected`."""
    try:
        found = path.read_bytes()
    except OSError as error:
        return f"cannot read {path}: {error.strerror}"
    if found == expected:
        return None
    offset = first_difference(found, expected)
    return f"{path} is not what this script writes: {len(found)} bytes, {len(expected)} expected, first difference at byte {offset}"


def main():
    parser = argparse.ArgumentParser(description="Write the default training text, or check a copy of it.")
    parser.add_argument("--out", type=Path, metavar="FILE", default=Path(__file__).with_name("sums.txt"),
                        help="where to write (default: sums.txt beside this script)")
    parser.add_argument("--check", type=Path, metavar="FILE",
                        help="write nothing; exit with 1 unless FILE is what would be written")
    arguments = parser.parse_args()
    text = make_sums()
    if arguments.check:
        complaint = check(arguments.check, text)
        if complaint:
            sys.exit(f"make_sums: {complaint}")
        return
    try:
        arguments.out.write_bytes(text)
    except OSError as error:
        print(f"make_sums: cannot write {arguments.out}: {error.strerror}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
