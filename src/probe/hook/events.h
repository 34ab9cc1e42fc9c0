// The stream of events that every part of the hook writes into, and what is known of the writing thread.
#pragma once

#include <cstddef>
#include <cstdint>

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

// ledger::Site: the scope's number in the lower bits, the operator's in the upper.
constexpr uint32_t kScopeBits = 20;
constexpr uint32_t kScopeMask = (1u << kScopeBits) - 1;

// What a thread is there for.
enum class Role : uint8_t {
  // Nothing that the step knows of.
  kOther,
  // The training thread, and autograd's while they walk a graph that it made.
  kTraining,
  // Fetches batches.
  kLoading,
};

// What a thread is doing. One that trains without an operator of its own (OpenMP's, say) is where the others are:
// for these there is what is shared (`share`).
struct Here {
  uint16_t number = UINT16_MAX;
  uint8_t flags = 0;
  Role role = Role::kOther;
  // The operators in progress on this thread; while 0 the two below mean nothing.
  uint32_t depth = 0;
  uint32_t site = 0;
  // Which call of an outermost operator this is, of all of the process; 0 between them.
  uint64_t call = 0;
};
extern thread_local Here here;

// Gives this thread a role, and to those of OpenMP's that work for it from now on.
void take_role(Role role);
// This thread's role, or that of the thread it works for.
Role role_here();

// The call in progress here.
uint64_t call_here();
// Where the threads are that train without operators of their own.
void share(uint32_t site, uint64_t call);
// The scope that the training thread is in.
uint32_t current_scope();

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
