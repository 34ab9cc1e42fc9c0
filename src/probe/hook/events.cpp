// The stream: a bounded ring of chunks, written by any thread, read by one.
//
// One atomic word holds the number of the next event (upper 22 bits) and the allocator's total (lower 42
// bits, 4 TiB). One exchange therefore claims a slot and moves the total: each event carries a total that
// is exact in the order of the stream, without a lock. When there is no room the total moves alone, so a
// number that was given out is always an event to come.

#include "events.h"

#include "cuda.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <thread>

namespace stepledger {

thread_local Here here;

namespace {

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
std::atomic<uint64_t> blocks{1};
std::atomic<bool> recording{false};
std::atomic<bool> on_cuda{false};
std::atomic<Chunk*> chunks[kChunks];
// The chunk that was read last: the next one to be needed, whose pages are there already. What its slots say
// is older than the event they will hold, so it needs no clearing.
std::atomic<Chunk*> spare{nullptr};
// Marks a chunk that could not be had: its events are dropped, and the reader knows not to wait for them.
Chunk* const kNoMemory = reinterpret_cast<Chunk*>(alignof(Chunk));

std::atomic<uint32_t> next_thread{0};
std::atomic<uint32_t> scope{0};

// Keeps a chunk for the next need, and frees the one that was kept before.
void give_back(Chunk* chunk) {
  if (chunk != kNoMemory) std::free(spare.exchange(chunk, std::memory_order_acq_rel));
}

// The chunk that event `number` belongs in, made on first use: straight from malloc, so that the observer
// stays out of its own account.
Chunk* chunk_for(uint32_t number) {
  std::atomic<Chunk*>& place = chunks[(number & (kPlaces - 1)) >> kChunkBits];
  Chunk* chunk = place.load(std::memory_order_acquire);
  if (chunk) return chunk;
  Chunk* fresh = spare.exchange(nullptr, std::memory_order_acq_rel);
  if (!fresh) fresh = static_cast<Chunk*>(std::calloc(1, sizeof(Chunk)));
  if (!fresh) fresh = kNoMemory;
  if (place.compare_exchange_strong(chunk, fresh, std::memory_order_acq_rel)) return fresh;
  give_back(fresh);
  return chunk;
}

// Not a marker: there may be many of them.
bool is_memory(uint8_t kind) { return kind == kAlloc || kind == kFree || kind == kNode; }

enum class Claim { kPlace, kNoPlace, kBeyondLimit };

// Moves the total by `delta` and claims the next event's number, if there is room for one; `before` is the word as it
// was. Does neither where the total would pass `limit` (0: none): whoever is second then finds no room, on any thread.
Claim claim(uint8_t kind, int64_t delta, int64_t limit, uint64_t& before) {
  const uint32_t room = is_memory(kind) ? kCapacity - kForMarkers : kCapacity;
  before = word.load(std::memory_order_relaxed);
  for (;;) {
    if (limit && int64_t(before & kTotalMask) + delta > limit) return Claim::kBeyondLimit;
    const uint32_t unread = (uint32_t(before >> kTotalBits) - tail.load(std::memory_order_acquire)) & kNumberMask;
    const bool fits = unread < room;
    const uint64_t after = before + (fits ? kOneEvent : 0) + uint64_t(delta);
    if (word.compare_exchange_weak(before, after, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return fits ? Claim::kPlace : Claim::kNoPlace;
    }
  }
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
    // A chunk read to its end goes back, so that only unread events hold memory, and one chunk.
    if ((number & (kChunkEvents - 1)) == kChunkEvents - 1) {
      place.store(nullptr, std::memory_order_release);
      give_back(chunk);
    }
  }
  tail.store((first + count) & kNumberMask, std::memory_order_release);
  return copied;
}

uint32_t unread_at(uint64_t at) {
  return (uint32_t(at >> kTotalBits) - tail.load(std::memory_order_relaxed)) & kNumberMask;
}

}  // namespace

int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

uint16_t this_thread() {
  // The last number is that of all threads that come after.
  constexpr uint32_t kLast = UINT16_MAX - 1;
  if (here.number == UINT16_MAX) {
    here.number = uint16_t(std::min(next_thread.fetch_add(1, std::memory_order_relaxed), kLast));
  }
  return here.number;
}

uint32_t current_scope() { return scope.load(std::memory_order_relaxed); }

namespace {

uint8_t flags_of(const Crew& crew) {
  if (crew.role.load(std::memory_order_relaxed) == Role::kLoading) return kLoader;
  return is_aside(crew) ? kAside : 0;
}

// What write() returns instead of an instant.
constexpr int64_t kRefused = -1;

// Writes an event. Its total is the CPU's, moved by `delta`, or else `*total`. Returns its instant, or that `limit`
// (0: none) refuses it.
int64_t write(uint8_t kind, uint64_t id, int64_t bytes, int64_t delta, const int64_t* total, uint8_t flags,
              int64_t limit = 0) {
  int64_t at_ns = now_ns();
  uint64_t before;
  const Claim claimed = claim(kind, delta, limit, before);
  if (claimed == Claim::kBeyondLimit) return kRefused;
  // A marker's instant is taken when it has its place: all events before it have theirs by then, so that putting instants
  // in order (Event::order_instants) moves what comes after a step's boundary, and not the boundary.
  if (!is_memory(kind)) at_ns = now_ns();
  if (claimed == Claim::kNoPlace) {
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
  const int64_t total_after = total ? *total : int64_t(before & kTotalMask) + delta;
  const Crew& crew = crew_here();
  slot.event = Event{at_ns,         id,   bytes, total_after, crew.site.load(std::memory_order_relaxed),
                     this_thread(), kind, uint8_t(flags | here.flags | flags_of(crew))};
  slot.ready.store(number + 1, std::memory_order_release);
  return at_ns;
}

}  // namespace

int64_t push(uint8_t kind, uint64_t id, int64_t bytes, int64_t delta, uint8_t flags) {
  const bool cuda = on_cuda.load(std::memory_order_relaxed);
  const bool memory = kind == kAlloc || kind == kFree || kind == kAllocFailed;
  if (!recording.load(std::memory_order_relaxed) || (cuda && memory)) {
    word.fetch_add(uint64_t(delta), std::memory_order_relaxed);
    return 0;
  }
  if (!cuda) return write(kind, id, bytes, delta, nullptr, flags);
  const int64_t total = cuda_total();
  return write(kind, id, bytes, 0, &total, flags);
}

bool push_within(int64_t limit, uint64_t id, int64_t bytes) {
  if (!recording.load(std::memory_order_relaxed) || on_cuda.load(std::memory_order_relaxed)) {
    push(kAlloc, id, bytes, bytes);
    return true;
  }
  return write(kAlloc, id, bytes, bytes, nullptr, 0, limit) != kRefused;
}

int64_t push_total(uint8_t kind, uint64_t id, int64_t bytes, int64_t total, uint8_t flags) {
  return write(kind, id, bytes, 0, &total, flags);
}

bool is_watching_cuda() { return on_cuda.load(std::memory_order_relaxed); }

void watch_cuda(bool on) { on_cuda.store(on, std::memory_order_seq_cst); }

int64_t total_bytes() { return int64_t(word.load(std::memory_order_relaxed) & kTotalMask); }
int64_t most_bytes() { return int64_t(kTotalMask); }
uint64_t next_block() { return blocks.fetch_add(1, std::memory_order_relaxed); }
bool is_recording() { return recording.load(std::memory_order_relaxed); }
void set_recording(bool on) { recording.store(on, std::memory_order_seq_cst); }

}  // namespace stepledger

using namespace stepledger;

extern "C" {

int64_t sl_now_ns() { return now_ns(); }

int64_t sl_mark(uint8_t kind, uint64_t payload) { return push(kind, payload, 0, 0); }

// The scope that this thread, the one that trains, is in from now on.
void sl_set_scope(uint32_t number) {
  scope.store(number & kScopeMask, std::memory_order_relaxed);
  // An operator or a node stays in the scope it began in.
  if (!here.depth) lead_crew().move_to(number & kScopeMask, 0);
}

// Puts a marker into the stream, unless this thread has nothing to do with training.
void sl_mark_training(uint8_t kind) {
  if (!is_aside(crew_here())) push(kind, 0, 0, 0);
}

uint64_t sl_dropped() { return dropped.load(std::memory_order_acquire); }

size_t sl_pending() { return unread_at(word.load(std::memory_order_acquire)); }

// Copies at most `room` events, oldest first. One reader at a time.
size_t sl_drain(Event* out, size_t room) {
  const uint32_t there = unread_at(word.load(std::memory_order_acquire));
  return read_events(out, room < there ? uint32_t(room) : there);
}

// Forgets what has been written so far, and tells the total and the next block's number at that very place
// in the stream.
void sl_begin_account(int64_t* total, uint64_t* next) {
  *next = blocks.load(std::memory_order_acquire);
  const uint64_t now = word.load(std::memory_order_acquire);
  *total = on_cuda.load() ? cuda_total() : int64_t(now & kTotalMask);
  read_events(nullptr, unread_at(now));
}

}  // extern "C"
