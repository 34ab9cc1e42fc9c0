// One call of a checkpointed segment: what its recomputation starts from, and what that has given.
#pragma once

#include "surroundings.h"

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace stepledger {

using Tensors = std::vector<at::Tensor>;

// A tensor that the segment was given.
struct Input {
  // Saved as an operator would save it, in an enclosing segment too: with the check of its version.
  torch::autograd::SavedVariable saved;
  bool requires_grad;
  c10::VariableVersion counter;
  uint32_t version;
  // Keeps its address from being given to another tensor, and not its memory.
  c10::weak_intrusive_ptr<c10::TensorImpl> identity;
};

// What is known of a tensor that an operator of the segment saved for backward.
struct Description {
  std::vector<int64_t> sizes;
  at::ScalarType dtype;
  at::Device device;
  // Counted only where gradients flow: buffers may change with every run, as batch norm's do.
  std::optional<uint32_t> version;
};

// A tensor recomputed, until backward takes it.
struct Kept {
  at::Tensor tensor;
  c10::VariableVersion counter;
  uint32_t version;
};

struct Slot {
  Description description;
  // Whether the graph still has a use for it.
  bool wanted;
  std::optional<Kept> kept;
};

// The Rust side: what can be done with a segment. Neither unwinds.
struct Calls {
  // Runs it once more on `inputs` and drops what it gives; 0, or 1 with the reason in `error`.
  int (*recompute)(const void* segment, at::Tensor* const* inputs, size_t count, std::string* error);
  void (*drop)(void* segment);
};

class Frame : public std::enable_shared_from_this<Frame> {
 public:
  // Takes `segment` over, once it is made. With `stop_early` the recomputation is left by an exception, out of the
  // operator that saves the last tensor.
  Frame(std::string name, const Calls& calls, void* segment, const Tensors& inputs, bool stop_early);
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Ends the first run: from here on backward may come. Throws where no recomputation could be right.
  void finish(const Tensors& outputs);
  // Ends a first run that failed.
  void abandon();

  // The first run: a place for what an operator saves.
  size_t promise(const at::Tensor& saved);
  // The recomputation: what the same operator saves now.
  void keep(const at::Tensor& saved);
  // Backward: the tensor for this place, recomputed along with all others if it is not there.
  at::Tensor take(size_t place);
  // No one will ask for this place again.
  void release(size_t place);

  [[noreturn]] void fail(const std::string& what) const;

 private:
  enum class State { kFirstRun, kReady, kRecomputing };

  Tensors inputs_again();
  void recompute();
  void run_again(Tensors inputs);
  void check_recomputed() const;

  const std::string name_;
  const Calls calls_;
  void* const segment_;
  std::vector<Input> inputs_;
  const std::vector<at::Device> devices_;
  const Surroundings surroundings_;
  const bool stop_early_;
  // Guards all below. Recursive, so that a segment that runs into itself is told so.
  std::recursive_mutex lock_;
  State state_ = State::kFirstRun;
  std::vector<Slot> slots_;
  size_t recomputed_ = 0;
  bool stopped_ = false;
  std::string mismatch_;
};

enum class Run { kFirst, kAgain };

// While it lives, what operators on this thread save for backward goes to `frame`.
struct Hooking {
  Hooking(Frame* frame, Run run);
  ~Hooking();
};

// Makes libtorch ask us how to save tensors; does nothing the second time.
void install_engine();

}  // namespace stepledger
