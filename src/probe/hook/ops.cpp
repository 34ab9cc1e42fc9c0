// The observer of operators: which one makes an allocation, what backward spends on which scope, and which
// allocations are autocast's copies of weights.

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

// Autograd counts the nodes of a thread up, and gives both sides the count. A later node replaces one that
// is this many older: its backward is long over, or its scope is lost, never wrong.
constexpr uint64_t kSequences = uint64_t(1) << 20;
std::atomic<std::atomic<uint64_t>*> scope_of_node{nullptr};

void note_scope(int64_t sequence, uint32_t scope) {
  std::atomic<uint64_t>* table = scope_of_node.load(std::memory_order_acquire);
  if (!table || sequence < 0) return;
  const uint64_t entry = uint64_t(sequence + 1) << kScopeBits | scope;
  table[uint64_t(sequence) % kSequences].store(entry, std::memory_order_relaxed);
}

uint32_t scope_of(int64_t sequence) {
  std::atomic<uint64_t>* table = scope_of_node.load(std::memory_order_acquire);
  if (!table || sequence < 0) return 0;
  const uint64_t entry = table[uint64_t(sequence) % kSequences].load(std::memory_order_relaxed);
  return entry >> kScopeBits == uint64_t(sequence + 1) ? uint32_t(entry & kScopeMask) : 0;
}

// ---- The observer -------------------------------------------------------------------------------------

// An operator or a node in progress: what was there before it, and what it takes.
struct Frame {
  uint32_t site;
  uint64_t call;
  // The engine's work on one node, timed; `inner_ns` is that of nodes inside it.
  bool node;
  int64_t begin_ns;
  int64_t inner_ns;
};
thread_local std::vector<Frame> frames;
// Nodes in progress on this thread.
thread_local uint32_t nodes = 0;

std::atomic<uint64_t> calls{0};

constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";

uint32_t site(uint32_t scope, uint32_t op) { return op << kScopeBits | (scope & kScopeMask); }

// Threads that work for this one are where it is.
void share_here() {
  if (here.helping || here.flags & kLoader) return;
  if (here.depth) {
    share(here.site, here.call);
  } else {
    share(current_scope(), 0);
  }
}

void enter(const Frame& frame, uint32_t at, uint64_t call) {
  frames.push_back(frame);
  ++here.depth;
  here.site = at;
  here.call = call;
  share_here();
}

// A thread that begins an operator while another is in the middle of one works for that: nothing else runs
// then in a training loop but loaders.
bool begins_to_help() { return here.depth == 0 && !(here.flags & kLoader) && call_here() != 0; }

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  Frame frame{here.site, here.call, false, 0, 0};
  if (here.helping || begins_to_help()) {
    const uint32_t at = site_here();
    const uint64_t call = call_here();
    here.helping = true;
    enter(frame, at, call);
  } else if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    // Known only now for the engine's frame around it, which keeps it: it adds up gradients afterwards.
    frame.site = site(scope_of(function.seqNr()), op_number(name));
    enter(frame, frame.site, 0);
  } else if (name.substr(0, kEngine.size()) == kEngine) {
    frame.node = true;
    frame.begin_ns = now_ns();
    ++nodes;
    enter(frame, site(0, op_number(name.substr(kEngine.size()))), 0);
  } else {
    const uint32_t scope = current_scope();
    if (!nodes) note_scope(function.seqNr(), scope);
    const bool outermost = here.depth == 0 || here.call == 0;
    const uint64_t call = outermost ? calls.fetch_add(1, std::memory_order_relaxed) + 1 : here.call;
    const bool named = !outermost || nodes;
    enter(frame, named ? here.site : site(scope, op_number(name)), call);
  }
  return nullptr;
}

// The time of an inner node is not that of the node around it.
void charge(int64_t took_ns) {
  for (auto frame = frames.rbegin() + 1; frame != frames.rend(); ++frame) {
    if (!frame->node) continue;
    frame->inner_ns += took_ns;
    return;
  }
}

void end(const at::RecordFunction&, at::ObserverContext*) {
  // It began before the observer was there.
  if (frames.empty()) return;
  const Frame frame = frames.back();
  if (frame.node) {
    const int64_t took_ns = now_ns() - frame.begin_ns;
    push(kNode, 0, took_ns - frame.inner_ns, 0);
    charge(took_ns);
    --nodes;
  }
  frames.pop_back();
  --here.depth;
  here.site = frame.site;
  here.call = frame.call;
  share_here();
  if (here.depth == 0) here.helping = false;
}

at::CallbackHandle observer = at::INVALID_CALLBACK_HANDLE;

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

// Observes operators on all threads from now on.
int sl_observe_ops() {
  return guarded([] {
    if (!scope_of_node.load()) {
      void* table = std::calloc(kSequences, sizeof(std::atomic<uint64_t>));
      TORCH_CHECK(table, "not enough memory for the table of the backward graph's nodes");
      scope_of_node.store(static_cast<std::atomic<uint64_t>*>(table), std::memory_order_release);
    }
    observer = at::addGlobalCallback(
        at::RecordFunctionCallback(&begin, &end)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  });
}

int sl_ignore_ops() {
  return guarded([] {
    if (observer != at::INVALID_CALLBACK_HANDLE) at::removeCallback(observer);
    observer = at::INVALID_CALLBACK_HANDLE;
  });
}

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
