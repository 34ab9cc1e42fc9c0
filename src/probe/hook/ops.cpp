// The observers of operators: which one makes an allocation, what backward spends on which scope, and which
// allocations are autocast's copies of weights.
//
// In backward only the nodes of its graph are observed, on all threads. Operators are observed on the training
// thread alone, and not in backward: there libtorch would make a string for every node besides (of its demangled
// name), which costs several times what everything here does.

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include "events.h"
#include "guarded.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

using namespace stepledger;

namespace {

// ---- Names ------------------------------------------------------------------------------------------

constexpr uint32_t kMostOps = 1u << (32 - kScopeBits);

std::mutex names_lock;
// Number 0 is "no operator"; a deque, so that the strings stay where they are.
std::deque<std::string> names{""};
std::unordered_map<std::string_view, uint32_t> numbers;

uint32_t new_number(std::string_view name) {
  std::lock_guard<std::mutex> guard(names_lock);
  const auto found = numbers.find(name);
  if (found != numbers.end()) return found->second;
  if (names.size() == kMostOps) return 0;
  const uint32_t number = uint32_t(names.size());
  names.emplace_back(name);
  numbers.emplace(names.back(), number);
  return number;
}

uint32_t op_number(std::string_view name) {
  thread_local std::unordered_map<std::string_view, uint32_t> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const uint32_t number = new_number(name);
  if (number) {
    std::lock_guard<std::mutex> guard(names_lock);
    known.emplace(names[number], number);
  }
  return number;
}

// ---- From a node of the backward graph to the scope of the forward operator that made it --------------

// Autograd counts the nodes of a thread up, and gives both sides the count and the thread (on CUDA, recomputation runs
// forward on autograd's own). A later node replaces one that is this many older: its backward is long over, or its
// scope is lost, never wrong.
constexpr uint64_t kSequences = uint64_t(1) << 20;
std::atomic<std::atomic<uint64_t>*> scope_of_node{nullptr};

// A node of the graph, as forward and backward know it.
struct Node {
  uint64_t thread;
  int64_t sequence;

  bool is_known() const { return sequence >= 0; }
  // Threads count alike: what sets their places apart keeps them from replacing each other's nodes.
  uint64_t place() const { return (uint64_t(sequence) + thread * 0x9E3779B1) % kSequences; }
  // In the bits above a scope's; never 0, which is an empty place.
  uint64_t key() const { return uint64_t(sequence + 1) << kThreadBits | (thread & kThreadMask); }

 private:
  static constexpr uint32_t kThreadBits = 8;
  static constexpr uint64_t kThreadMask = (uint64_t(1) << kThreadBits) - 1;
};

void note_scope(const Node& node, uint32_t scope) {
  std::atomic<uint64_t>* table = scope_of_node.load(std::memory_order_acquire);
  if (!table || !node.is_known()) return;
  table[node.place()].store(node.key() << kScopeBits | scope, std::memory_order_relaxed);
}

uint32_t scope_of(const Node& node) {
  std::atomic<uint64_t>* table = scope_of_node.load(std::memory_order_acquire);
  if (!table || !node.is_known()) return 0;
  const uint64_t entry = table[node.place()].load(std::memory_order_relaxed);
  return entry >> kScopeBits == node.key() ? uint32_t(entry & kScopeMask) : 0;
}

// ---- The observer -------------------------------------------------------------------------------------

// An outermost operator or a node in progress: what was there before it.
struct Frame {
  uint32_t site;
  uint64_t call;
  // Operators in progress within it that are part of the same call.
  uint32_t nested = 0;
  // A node is timed; `inner_ns` is the time of nodes inside it.
  bool node = false;
  int64_t begin_ns = 0;
  int64_t inner_ns = 0;
};
thread_local std::vector<Frame> frames;

std::atomic<uint64_t> calls{0};

uint32_t site(uint32_t scope, uint32_t op) { return op << kScopeBits | (scope & kScopeMask); }

uint64_t new_call() { return calls.fetch_add(1, std::memory_order_relaxed) + 1; }

void enter(const Frame& frame, uint32_t at) {
  frames.push_back(frame);
  Here& now = here;
  ++now.depth;
  now.site = at;
  now.call = new_call();
  // Threads that work for this one (OpenMP's) are where it is.
  if (now.role == Role::kTraining) share(now.site, now.call);
}

// Puts back what was there before; `after` is where threads without operators are then.
void leave(uint32_t after) {
  Here& now = here;
  const Frame frame = frames.back();
  frames.pop_back();
  --now.depth;
  now.site = frame.site;
  now.call = frame.call;
  if (now.role != Role::kTraining) return;
  if (now.depth) {
    share(now.site, now.call);
  } else {
    share(after, 0);
  }
}

std::unique_ptr<at::ObserverContext> begin_op(const at::RecordFunction& function) {
  note_scope({at::RecordFunction::currentThreadId(), function.seqNr()}, current_scope());
  if (here.depth && !frames.back().node) {
    // Most operators: part of a call that is in progress.
    ++frames.back().nested;
  } else {
    enter(Frame{here.site, here.call}, site(current_scope(), op_number(function.name())));
  }
  return nullptr;
}

void end_op(const at::RecordFunction&, at::ObserverContext*) {
  // It began before the observer was there.
  if (frames.empty() || frames.back().node) return;
  if (frames.back().nested) {
    --frames.back().nested;
  } else {
    leave(current_scope());
  }
}

// What takes that long within a node is not the node's own work.
void take_from_node(int64_t ns) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!frame->node) continue;
    frame->inner_ns += ns;
    return;
  }
}

// The thread that trains, as at::RecordFunction numbers them.
std::atomic<uint64_t> training_thread{0};

// Autograd's threads train while they walk a graph of the training thread's; those that loaders or others have begun
// are none of the step's.
void take_role_at(const at::RecordFunction& node) {
  const uint64_t training = training_thread.load(std::memory_order_relaxed);
  if (here.depth || here.role == Role::kLoading || at::RecordFunction::currentThreadId() == training) return;
  take_role(node.forwardThreadId() == training ? Role::kTraining : Role::kOther);
}

std::unique_ptr<at::ObserverContext> begin_node(const at::RecordFunction& function) {
  take_role_at(function);
  Frame frame{here.site, here.call};
  frame.node = true;
  frame.begin_ns = now_ns();
  enter(frame, site(scope_of({function.forwardThreadId(), function.seqNr()}), op_number(function.name())));
  return nullptr;
}

void end_node(const at::RecordFunction&, at::ObserverContext*) {
  if (frames.empty() || !frames.back().node) return;
  const int64_t took_ns = now_ns() - frames.back().begin_ns;
  if (here.role == Role::kTraining) push(kNode, 0, took_ns - frames.back().inner_ns, 0);
  // What follows until the next node is the engine's, which adds up the gradients that this one has made.
  leave(here.site);
  // The time of an inner node is not that of the node around it.
  take_from_node(took_ns);
}

at::CallbackHandle node_observer = at::INVALID_CALLBACK_HANDLE;
thread_local at::CallbackHandle op_observer = at::INVALID_CALLBACK_HANDLE;

void remove(at::CallbackHandle& handle) {
  if (handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(handle);
  handle = at::INVALID_CALLBACK_HANDLE;
}

// ---- Autocast's copies --------------------------------------------------------------------------------

// Tells end_copy() that this operator is one.
struct Copying final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> begin_copy(const at::RecordFunction& function) {
  if (std::strcmp(function.name(), "aten::_to_copy") != 0 || function.inputs().empty()) return nullptr;
  const c10::IValue& input = function.inputs()[0];
  if (!input.isTensor()) return nullptr;
  const at::Tensor& tensor = input.toTensor();
  if (!tensor.defined() || !tensor.is_leaf() || !tensor.requires_grad()) return nullptr;
  here.flags |= kAutocastCopy;
  return std::make_unique<Copying>();
}

void end_copy(const at::RecordFunction&, at::ObserverContext* context) {
  if (context) here.flags &= uint8_t(~kAutocastCopy);
}

}  // namespace

extern "C" {

// Whether backward's nodes are observed, on all threads. The calling thread is the one that trains.
int sl_observe_nodes(bool on) {
  return guarded([&] {
    remove(node_observer);
    if (!on) return;
    training_thread.store(at::RecordFunction::currentThreadId(), std::memory_order_relaxed);
    if (!scope_of_node.load()) {
      void* table = std::calloc(kSequences, sizeof(std::atomic<uint64_t>));
      TORCH_CHECK(table, "not enough memory for the table of the backward graph's nodes");
      scope_of_node.store(static_cast<std::atomic<uint64_t>*>(table), std::memory_order_release);
    }
    node_observer = at::addGlobalCallback(at::RecordFunctionCallback(&begin_node, &end_node)
                                              .scopes({at::RecordScope::BACKWARD_FUNCTION}));
  });
}

// Whether operators are observed on this thread.
int sl_observe_ops(bool on) {
  return guarded([&] {
    remove(op_observer);
    if (!on) return;
    op_observer = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&begin_op, &end_op).scopes({at::RecordScope::FUNCTION}));
  });
}

void sl_take_from_node(int64_t ns) { take_from_node(ns); }

// The name of operator `number`; it lives as long as the program. Null for a number never given.
const char* sl_op_name(uint32_t number) {
  std::lock_guard<std::mutex> guard(names_lock);
  return number < names.size() ? names[number].c_str() : nullptr;
}

// Marks, on this thread, the allocations that copy a leaf; `handle` is for sl_ignore_copies().
int sl_observe_copies(uint64_t* handle) {
  return guarded([&] {
    *handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&begin_copy, &end_copy).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  });
}

int sl_ignore_copies(uint64_t handle) {
  return guarded([&] { at::removeCallback(handle); });
}

}  // extern "C"
