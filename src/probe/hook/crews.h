// Who works for whom: a thread, and those of OpenMP's that work in its parallel regions, are a crew.
#pragma once

#include <atomic>
#include <cstdint>

namespace stepledger {

// What a crew is there for.
enum class Role : uint8_t {
  // Nothing that the step knows of.
  kOther,
  // The training thread.
  kTraining,
  // Walks a graph that the training thread made: autograd's own threads do, and whoever else asks for a backward of it.
  kServing,
  // Fetches batches.
  kLoading,
};

// Where a crew is. Written by the thread that leads it.
struct Crew {
  std::atomic<Role> role{Role::kOther};
  // ledger::Site.
  std::atomic<uint32_t> site{0};
  // Which call of an outermost operator or node this is, of all of the process; 0 between them.
  std::atomic<uint64_t> call{0};

  bool trains() const {
    const Role now = role.load(std::memory_order_relaxed);
    return now == Role::kTraining || now == Role::kServing;
  }
  void move_to(uint32_t new_site, uint64_t new_call) {
    site.store(new_site, std::memory_order_relaxed);
    call.store(new_call, std::memory_order_relaxed);
  }
};

// The crew that this thread leads, from now on if it did not.
Crew& lead_crew();
// The crew that this thread belongs to, which may be one of nobody.
const Crew& crew_here();
// The call in progress there.
inline uint64_t call_here() { return crew_here().call.load(std::memory_order_relaxed); }
// Whether what happens in a crew has nothing to do with training.
bool is_aside(const Crew& crew);

// A node of the backward graph begins on this thread, outside all others. `is_ours` says whether the training thread made
// it; it is null for a node that may end or begin anybody's graph.
void begin_graph_node(const bool* is_ours);
// Whether backward's nodes are observed, so that it is known who serves.
void know_graphs(bool on);

}  // namespace stepledger
