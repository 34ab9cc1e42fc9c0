"""What was alive at each moment of a training step, by PyTorch's own profiler.

`torch.profiler` with `profile_memory=True` reports every allocation and free of the CPU allocator; put in
order of time, with marks between them, they can be played back. The limits of that measurement:

- The reporter is thread-local and is not handed to OpenMP's workers, so what these allocate is not
  seen. The measurement therefore runs on one thread; kernels that allocate per thread allocate less then.
- Blocks made before the profiler started are unknown to it. The model, the optimizer and the batches
  must therefore be made inside.
- It counts what goes through the CPU allocator, in bytes asked for: neither oneDNN's and MKL's own
  buffers, nor files mapped into memory, nor zero-size tensors.
"""

import gc

import torch

PHASES = ("dataloader", "forward", "backward", "optimizer")
STEP_START = "step_start"


def mark(name):
    """Puts a name into the stream of events: `step_start`, or a phase's `<phase>_begin` and `<phase>_end`."""
    with torch.profiler.record_function(f"moment:{name}"):
        pass


def measure(train):
    """Plays back the last step that `train(mark)` runs, on one thread."""
    gc.collect()  # nothing made earlier may be freed in here: its blocks are unknown to the profiler
    torch.set_num_threads(1)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True, acc_events=True) as profiler:
        train(mark)
    return Playback(sorted(timeline(profiler), key=lambda item: item[0])).account()


def timeline(profiler):
    """Yields (time, (address, bytes, allocator's total)) for allocations and frees, and (time, name) for marks."""
    pending = list(profiler.profiler.kineto_results.experimental_event_tree())
    while pending:
        event = pending.pop()
        pending.extend(event.children)
        if event.name == "[memory]":
            fields = event.extra_fields
            yield event.start_time_ns, (fields.ptr, fields.alloc_size, fields.total_allocated)
        elif event.name.startswith("moment:"):
            yield event.start_time_ns, event.name.removeprefix("moment:")


class Playback:
    """Follows the blocks through the events, and starts its notes afresh with each step.

    The profiler's own running total is not needed, so it serves as a check: it must move with the sum
    of the sizes, or an event is missing or out of order.
    """

    def __init__(self, events):
        self.live, self.offset, self.consistent = 0, None, True
        self.place, self.turn, self.blocks = None, 0, {}
        self.start_step()
        for _, event in events:
            if isinstance(event, str):
                self.pass_mark(event)
            else:
                self.follow(*event)
            self.observe()

    def start_step(self):
        self.peak, self.peaks, self.ends, self.forward_ends, self.kept = 0, {}, {}, [], {}

    def pass_mark(self, name):
        if name == STEP_START:
            self.start_step()
            self.ends[name] = self.live
            return
        phase, _, edge = name.rpartition("_")
        if edge == "begin":
            self.place, self.turn = phase, self.turn + 1
            return
        self.place, self.ends[name] = None, self.live
        if phase == "forward":
            self.forward_ends.append(self.live)

    def follow(self, address, size, total):
        self.live += size
        self.offset = total - self.live if self.offset is None else self.offset
        self.consistent = self.consistent and total - self.live == self.offset
        if size > 0:
            self.blocks[address] = (size, self.place, self.turn)
            return
        born_size, born_place, born_turn = self.blocks.pop(address, (0, None, 0))
        if born_place == "forward" and self.place == "backward":
            self.kept[born_turn] = self.kept.get(born_turn, 0) + born_size

    def observe(self):
        self.peak = max(self.peak, self.live)
        if self.place:
            self.peaks[self.place] = max(self.peaks.get(self.place, 0), self.live)

    def account(self):
        """Bytes of the last step; where a step has several micro-batches, its ends are the last one's."""
        moments = (STEP_START, "forward_end", "backward_end", "optimizer_end")
        return {
            "live_bytes": {moment: self.ends[moment] for moment in moments},
            "live_bytes_each_forward_end": self.forward_ends,
            # Made in a forward, released in a backward: what autograd kept, one number a micro-batch.
            "activation_bytes": [self.kept[turn] for turn in sorted(self.kept)],
            "peak_bytes": self.peak,
            "peaks": {phase: self.peaks[phase] for phase in PHASES if phase in self.peaks},
            "consistent": self.consistent,
        }
