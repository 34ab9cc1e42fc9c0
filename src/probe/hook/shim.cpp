// The allocator hook: libtorch's CPU allocator, wrapped, so that every allocation and free on any thread
// is written down. The callback stamps and stores plain data; everything else happens in Rust, later.
//
// No exception leaves this file except out of the allocator itself, where libtorch expects them: each
// entry point returns 0, or 1 with the message in sl_last_error().

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/headeronly/version.h>

#include "guarded.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <new>
#include <thread>

using stepledger::guarded;

namespace {

// Shared with `ledger::Event`; a test there pins its size.
struct Event {
  int64_t at_ns;
  uint64_t id;
  int64_t bytes;
  int64_t total_bytes;
  uint32_t scope;
  uint16_t thread;
  uint8_t kind;
  uint8_t origin;
};
static_assert(sizeof(Event) == 40, "must match ledger::Event");

constexpr uint8_t kAlloc = 0;
constexpr uint8_t kFree = 1;

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// ---- The stream: a bounded ring of chunks, written by any thread, read by one -----------------------
//
// One atomic word holds the number of the next event (upper 22 bits) and the allocator's total (lower 42
// bits, 4 TiB). One exchange therefore claims a slot and moves the total: each event carries a total that
// is exact in the order of the stream, without a lock. When there is no room the total moves alone, so a
// number that was given out is always an event to come.

constexpr int kTotalBits = 42;
constexpr uint64_t kTotalMask = (uint64_t(1) << kTotalBits) - 1;
constexpr uint64_t kOneEvent = uint64_t(1) << kTotalBits;
constexpr uint32_t kNumberMask = (uint32_t(1) << (64 - kTotalBits)) - 1;
constexpr uint32_t kChunkBits = 13;
constexpr uint32_t kChunkEvents = 1u << kChunkBits;
constexpr uint32_t kChunks = 256;
constexpr uint32_t kPlaces = kChunkEvents * kChunks;
static_assert(kPlaces <= (kNumberMask + 1) / 2, "a number must tell a full ring from an empty one");
// One chunk stays out of use: the reader gives back a chunk it has read to the end, and no event may have
// come round into that one.
constexpr uint32_t kCapacity = kPlaces - kChunkEvents;
// The last places are for markers: a step whose allocations did not fit is still known as a step.
constexpr uint32_t kForMarkers = 4096;

struct Slot {
  Event event;
  // The event's number + 1 once the event is whole; 0 before, as calloc leaves it.
  std::atomic<uint32_t> ready;
};

static_assert(sizeof(Slot) == 48, "probe::BYTES_PER_EVENT says so");

struct Chunk {
  Slot slots[kChunkEvents];
};

std::atomic<uint64_t> word{0};
std::atomic<uint32_t> tail{0};
std::atomic<uint64_t> dropped{0};
std::atomic<uint64_t> next_block{1};
std::atomic<uint32_t> current_scope{0};
std::atomic<bool> recording{false};
std::atomic<Chunk*> chunks[kChunks];
// Marks a chunk that could not be had: its events are dropped, and the reader knows not to wait for them.
Chunk* const kNoMemory = reinterpret_cast<Chunk*>(alignof(Chunk));

std::atomic<uint16_t> next_thread{0};
thread_local uint16_t thread_number = UINT16_MAX;
thread_local uint8_t thread_origin = 0;

uint16_t this_thread() {
  if (thread_number == UINT16_MAX) thread_number = next_thread.fetch_add(1, std::memory_order_relaxed);
  return thread_number;
}

// The chunk that event `number` belongs in, made on first use: straight from malloc, so that the observer
// stays out of its own account.
Chunk* chunk_for(uint32_t number) {
  std::atomic<Chunk*>& place = chunks[(number & (kPlaces - 1)) >> kChunkBits];
  Chunk* chunk = place.load(std::memory_order_acquire);
  if (chunk) return chunk;
  Chunk* fresh = static_cast<Chunk*>(std::calloc(1, sizeof(Chunk)));
  if (!fresh) fresh = kNoMemory;
  if (place.compare_exchange_strong(chunk, fresh, std::memory_order_acq_rel)) return fresh;
  if (fresh != kNoMemory) std::free(fresh);
  return chunk;
}

// Moves the total by `delta` and claims the next event's number. Returns whether there was room for one;
// `before` is the word as it was.
bool claim(uint8_t kind, int64_t delta, uint64_t& before) {
  const uint32_t room = kind == kAlloc || kind == kFree ? kCapacity - kForMarkers : kCapacity;
  before = word.load(std::memory_order_relaxed);
  for (;;) {
    const uint32_t unread = (uint32_t(before >> kTotalBits) - tail.load(std::memory_order_acquire)) & kNumberMask;
    const bool fits = unread < room;
    const uint64_t after = before + (fits ? kOneEvent : 0) + uint64_t(delta);
    if (word.compare_exchange_weak(before, after, std::memory_order_acq_rel, std::memory_order_relaxed)) return fits;
  }
}

// Moves the total by `delta` and, while recording, writes the event. Returns its instant.
int64_t push(uint8_t kind, uint64_t id, int64_t bytes, int64_t delta) {
  if (!recording.load(std::memory_order_relaxed)) {
    word.fetch_add(uint64_t(delta), std::memory_order_relaxed);
    return 0;
  }
  const int64_t at_ns = now_ns();
  uint64_t before;
  if (!claim(kind, delta, before)) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return at_ns;
  }
  const uint32_t number = uint32_t(before >> kTotalBits);
  Chunk* chunk = chunk_for(number);
  if (chunk == kNoMemory) {
    dropped.fetch_add(1, std::memory_order_relaxed);
    return at_ns;
  }
  Slot& slot = chunk->slots[number & (kChunkEvents - 1)];
  slot.event = Event{at_ns, id, bytes, int64_t(before & kTotalMask) + delta,
                     current_scope.load(std::memory_order_relaxed), this_thread(), kind, thread_origin};
  slot.ready.store(number + 1, std::memory_order_release);
  return at_ns;
}

// Reads the next `count` events, which must have been claimed, and makes their places free. Copies them to
// `out` unless that is null. Returns how many there were: those without memory are left out.
size_t read_events(Event* out, uint32_t count) {
  const uint32_t first = tail.load(std::memory_order_relaxed);
  size_t copied = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = (first + i) & kNumberMask;
    std::atomic<Chunk*>& place = chunks[(number & (kPlaces - 1)) >> kChunkBits];
    Chunk* chunk;
    while (!(chunk = place.load(std::memory_order_acquire))) std::this_thread::yield();
    if (chunk != kNoMemory) {
      Slot& slot = chunk->slots[number & (kChunkEvents - 1)];
      while (slot.ready.load(std::memory_order_acquire) != number + 1) std::this_thread::yield();
      if (out) out[copied] = slot.event;
      ++copied;
    }
    // A chunk read to its end goes back, so that only unread events hold memory.
    if ((number & (kChunkEvents - 1)) == kChunkEvents - 1) {
      place.store(nullptr, std::memory_order_release);
      if (chunk != kNoMemory) std::free(chunk);
    }
  }
  tail.store((first + count) & kNumberMask, std::memory_order_release);
  return copied;
}

uint32_t unread_at(uint64_t at) {
  return (uint32_t(at >> kTotalBits) - tail.load(std::memory_order_relaxed)) & kNumberMask;
}

// ---- The allocator ----------------------------------------------------------------------------------

// Stands before each block of ours, so that a free finds number and size without a look-up. As wide as
// libtorch's alignment, which the block behind it must keep.
struct alignas(64) Header {
  uint64_t id;
  int64_t bytes;
};
static_assert(sizeof(Header) == c10::gAlignment, "the block behind a header must stay aligned");

c10::Allocator* wrapped = nullptr;

void release(void* data) {
  // Some kernels give back through raw_deallocate() what they asked for with size 0.
  if (!data) return;
  Header* header = static_cast<Header*>(data) - 1;
  push(kFree, header->id, header->bytes, -header->bytes);
  wrapped->raw_deallocate(header);
}

struct Recorder final : c10::Allocator {
  // data == context, and raw_deleter() gives the deleter: some kernels insist on both.
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, at::Device(at::DeviceType::CPU)};
    // More than the total can hold (2 TiB); also keeps the sum below from wrapping round.
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= kTotalMask / 2, "not enough memory: you tried to allocate ",
                     bytes, " bytes");
    Header* header = static_cast<Header*>(wrapped->raw_allocate(bytes + sizeof(Header)));
    header->id = next_block.fetch_add(1, std::memory_order_relaxed);
    header->bytes = int64_t(bytes);
    push(kAlloc, header->id, header->bytes, header->bytes);
    void* data = header + 1;
    return {data, data, &release, at::Device(at::DeviceType::CPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

Recorder recorder;

uint64_t block_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  const at::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() != &release || !data.get_context()) return 0;
  return (static_cast<const Header*>(data.get_context()) - 1)->id;
}

}  // namespace

extern "C" {

const char* sl_last_error() { return stepledger::last_error.c_str(); }

// Puts the recorder in front of libtorch's CPU allocator and begins to write events.
int sl_start() {
  return guarded([] {
    if (!wrapped) wrapped = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&recorder, /*priority=*/1);
    recording.store(true, std::memory_order_seq_cst);
  });
}

// Takes the recorder out again. Blocks it made keep their way back through it.
int sl_stop() {
  return guarded([] {
    recording.store(false, std::memory_order_seq_cst);
    if (wrapped) c10::SetCPUAllocator(wrapped, /*priority=*/1);
  });
}

int64_t sl_now_ns() { return now_ns(); }

int64_t sl_mark(uint8_t kind, uint64_t payload) { return push(kind, payload, 0, 0); }

void sl_set_scope(uint32_t scope) { current_scope.store(scope, std::memory_order_relaxed); }

// Gives this thread's events an origin (ledger::origin); lasts as long as the thread.
void sl_set_thread_origin(uint8_t origin) { thread_origin = origin; }

// Makes the calling thread number 0, if no thread has a number yet.
void sl_number_this_thread() { this_thread(); }

uint64_t sl_dropped() { return dropped.load(std::memory_order_acquire); }

size_t sl_pending() { return unread_at(word.load(std::memory_order_acquire)); }

// Copies at most `room` events, oldest first. One reader at a time.
size_t sl_drain(Event* out, size_t room) {
  const uint32_t there = unread_at(word.load(std::memory_order_acquire));
  return read_events(out, room < there ? uint32_t(room) : there);
}

// Forgets what has been written so far, and tells the total and the next block's number at that very place
// in the stream.
void sl_begin_account(int64_t* total_bytes, uint64_t* next) {
  *next = next_block.load(std::memory_order_acquire);
  const uint64_t now = word.load(std::memory_order_acquire);
  *total_bytes = int64_t(now & kTotalMask);
  read_events(nullptr, unread_at(now));
}

// The blocks behind `count` tensors and behind their gradients; 0 where there is none of ours.
int sl_blocks(const at::Tensor* const* tensors, size_t count, uint64_t* blocks, uint64_t* gradients) {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i) {
      blocks[i] = block_of(*tensors[i]);
      gradients[i] = block_of(tensors[i]->grad());
    }
  });
}

// The stream that libtorch works on now, on CUDA device `device`, by way of libtorch's own device guard:
// needs no CUDA header.
int sl_current_stream(int device, void** stream) {
  return guarded([&] {
    const c10::Device cuda(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
    *stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(cuda).native_handle();
  });
}

const char* sl_torch_version() { return TORCH_VERSION; }

}  // extern "C"
