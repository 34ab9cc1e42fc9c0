// The stream of events that every part of the hook writes into, and what is known of the writing thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crews.h"

namespace stepledger {

// Shared with `ledger::Event`; a test there pins its size.
struct Event {
  int64_t at_ns;
  uint64_t id;
  int64_t bytes;
  int64_t total_bytes;
  uint32_t site;
  uint16_t thread;
  uint8_t kind;
  uint8_t flags;
};
static_assert(sizeof(Event) == 40, "must match ledger::Event");

// ledger::kind
constexpr uint8_t kAlloc = 0;
constexpr uint8_t kFree = 1;
constexpr uint8_t kAllocFailed = 6;
constexpr uint8_t kNode = 7;

// ledger::flag
constexpr uint8_t kLoader = 1;
constexpr uint8_t kInOp = 2;
constexpr uint8_t kAutocastCopy = 4;
constexpr uint8_t kRounding = 8;
constexpr uint8_t kAside = 16;

// ledger::Site: the scope's number in the lower bits, the operator's in the upper.
constexpr uint32_t kScopeBits = 20;
constexpr uint32_t kScopeMask = (1u << kScopeBits) - 1;

// What a thread is doing.
struct Here {
  uint16_t number = UINT16_MAX;
  uint8_t flags = 0;
  // The operators and nodes in progress on this thread.
  uint32_t depth = 0;
  // Led by this thread; null as long as nothing is known of it.
  Crew* crew = nullptr;
  // The walk through a graph of backward that nodes ran in here, until it is found to be over; negative for none.
  int walk = -1;
  // The last walk that nodes ran in here, and whether the training thread made any of them.
  int known_walk = -1;
  bool serves = false;
  // It trains beside the training thread for good.
  bool enlisted = false;
  // It is about to end, and leads no crew any more.
  bool ended = false;
};
extern thread_local Here here;

// The scope that the training thread is in.
uint32_t current_scope();
extern "C" void sl_set_scope(uint32_t number);

int64_t now_ns();
uint16_t this_thread();

// Moves the total by `delta` and, while recording, writes the event. Returns its instant.
int64_t push(uint8_t kind, uint64_t id, int64_t bytes, int64_t delta, uint8_t flags = 0);

// The same for an allocation on the CPU, unless the total would pass `limit` (0: none) with it. Returns whether it was
// written.
bool push_within(int64_t limit, uint64_t id, int64_t bytes);

// Writes an event of an allocator that keeps its total itself. The CPU's total stays as it is.
int64_t push_total(uint8_t kind, uint64_t id, int64_t bytes, int64_t total, uint8_t flags);

// Whether the account is that of a CUDA device. What happens on the CPU is not written then.
void watch_cuda(bool on);
bool is_watching_cuda();

// The bytes alive, as this hook counts them.
int64_t total_bytes();
// The largest total that fits the word it is kept in: 4 TiB.
int64_t most_bytes();
// A number for a new block.
uint64_t next_block();

bool is_recording();
void set_recording(bool on);

}  // namespace stepledger
