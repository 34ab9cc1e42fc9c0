// How operators on a thread inside a segment save their tensors, and the C face of it all.

#include "../../probe/hook/guarded.h"
#include "frame.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <utility>

namespace stepledger {

namespace {

using torch::autograd::Engine;
using torch::autograd::SavedVariableHooks;

// The segments that this thread runs, innermost last.
thread_local std::vector<std::pair<Frame*, Run>> running;

// In the graph in place of a tensor: a place in its frame.
class Promise final : public SavedVariableHooks {
 public:
  explicit Promise(std::shared_ptr<Frame> frame) : frame_(std::move(frame)) {}
  ~Promise() override {
    if (place_) frame_->release(*place_);
  }
  void call_pack_hook(const at::Tensor& tensor) override { place_ = frame_->promise(tensor); }
  at::Tensor call_unpack_hook() override { return frame_->take(*place_); }

 private:
  std::shared_ptr<Frame> frame_;
  std::optional<size_t> place_;
};

// In the graph that a recomputation makes, which nothing goes back through.
class Handover final : public SavedVariableHooks {
 public:
  explicit Handover(Frame* frame) : frame_(frame) {}
  void call_pack_hook(const at::Tensor& tensor) override { std::exchange(frame_, nullptr)->keep(tensor); }
  at::Tensor call_unpack_hook() override {
    throw std::runtime_error("backward runs through a checkpointed segment's recomputation, which keeps nothing");
  }

 private:
  // Until it has been told of the tensor; a segment may let its results outlive the frame.
  Frame* frame_;
};

// libtorch's engine, which answers the question that Python's engine answers in PyTorch.
class HookedEngine final : public Engine {
 public:
  std::unique_ptr<SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (running.empty()) return nullptr;
    const auto [frame, run] = running.back();
    if (run == Run::kFirst) return std::make_unique<Promise>(frame->shared_from_this());
    return std::make_unique<Handover>(frame);
  }
};

Engine& hooked_engine() {
  // Never destroyed: the threads it has for GPUs may outlive everything that static destructors leave.
  static HookedEngine* engine = new HookedEngine;
  return *engine;
}

Tensors list(at::Tensor* const* tensors, size_t count) {
  Tensors copies;
  for (size_t i = 0; i < count; ++i) copies.push_back(*tensors[i]);
  return copies;
}

}  // namespace

Hooking::Hooking(Frame* frame, Run run) { running.emplace_back(frame, run); }

Hooking::~Hooking() { running.pop_back(); }

void install_engine() {
  static std::once_flag once;
  std::call_once(once, [] {
    TORCH_CHECK(&Engine::get_default_engine() == &Engine::get_base_engine(),
                "checkpointing: this process has another autograd engine already (that of a Python interpreter?)");
    torch::autograd::set_default_engine_stub(&hooked_engine);
  });
}

// A first run that is under way, for the Rust side.
struct FirstRun {
  std::shared_ptr<Frame> frame;
  std::optional<Hooking> hooking;
  bool finished = false;
};

}  // namespace stepledger

using namespace stepledger;

extern "C" {

// Whether operators on this thread save tensors for backward.
bool sl_grad_enabled() { return at::GradMode::is_enabled(); }

// Begins the first run of `segment`, which it takes over in any case. Ended by sl_checkpoint_leave().
int sl_checkpoint_enter(const char* name, size_t length, const Calls* calls, void* segment,
                        at::Tensor* const* inputs, size_t count, bool stop_early, FirstRun** first_run) {
  std::unique_ptr<void, void (*)(void*)> owned(segment, calls->drop);
  return guarded([&] {
    install_engine();
    auto run = std::make_unique<FirstRun>();
    run->frame =
        std::make_shared<Frame>(std::string(name, length), *calls, segment, list(inputs, count), stop_early);
    owned.release();
    run->hooking.emplace(run->frame.get(), Run::kFirst);
    *first_run = run.release();
  });
}

// Says what the first run gave.
int sl_checkpoint_finish(FirstRun* run, at::Tensor* const* outputs, size_t count) {
  return guarded([&] {
    run->frame->finish(list(outputs, count));
    run->finished = true;
  });
}

void sl_checkpoint_leave(FirstRun* run) {
  if (!run->finished) run->frame->abandon();
  delete run;
}

void sl_set_text(std::string* text, const char* bytes, size_t length) {
  guarded([&] { text->assign(bytes, length); });
}

}  // extern "C"
