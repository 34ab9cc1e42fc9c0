#include "frame.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <sstream>
#include <stdexcept>

namespace stepledger {

namespace {

std::vector<Input> save(const Tensors& tensors) {
  std::vector<Input> inputs;
  inputs.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const c10::VariableVersion& counter = torch::autograd::impl::version_counter(tensor);
    inputs.push_back({torch::autograd::SavedVariable(tensor, /*is_output=*/false), tensor.requires_grad(), counter,
                      counter.current_version(),
                      c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr())});
  }
  return inputs;
}

Description describe(const at::Tensor& tensor) {
  std::optional<uint32_t> version;
  if (tensor.requires_grad()) version = uint32_t(tensor._version());
  return {tensor.sizes().vec(), tensor.scalar_type(), tensor.device(), version};
}

bool same_kind(const Description& a, const Description& b) {
  return a.sizes == b.sizes && a.dtype == b.dtype && a.device == b.device;
}

// What leaves a recomputation that has given all that is wanted; by way of the segment, as an error.
struct Enough final : std::exception {
  const char* what() const noexcept override { return "all that backward needs has been recomputed"; }
};

std::string text(const Description& description) {
  std::ostringstream text;
  text << at::IntArrayRef(description.sizes) << ' ' << description.dtype << " on " << description.device;
  return text.str();
}

std::string difference(size_t place, const Description& first, const Description& again) {
  std::ostringstream difference;
  difference << "tensor " << place << " that its operators save for backward ";
  if (!same_kind(first, again)) {
    difference << "was " << text(first) << " in forward and is " << text(again) << " in recomputation";
  } else if (first.version && again.version && first.version != again.version) {
    difference << "(" << text(first) << ") has been modified in place since forward: it is a parameter, or something "
               << "else that the segment has from outside";
  } else {
    return "";
  }
  return difference.str();
}

}  // namespace

Frame::Frame(std::string name, const Calls& calls, void* segment, const Tensors& inputs, bool stop_early)
    : name_(std::move(name)),
      calls_(calls),
      segment_(segment),
      inputs_(save(inputs)),
      devices_(cuda_devices(inputs)),
      surroundings_(Surroundings::now(devices_)),
      stop_early_(stop_early) {}

Frame::~Frame() { calls_.drop(segment_); }

void Frame::fail(const std::string& what) const {
  // Not TORCH_CHECK, which would append a stack of C++ frames.
  throw std::runtime_error("checkpointed segment \"" + name_ + "\": " + what);
}

void Frame::finish(const Tensors& outputs) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (input.counter.current_version() != input.version) {
      fail("it modifies its input " + std::to_string(i) + " in place, and recomputation would begin with that");
    }
    for (const at::Tensor& output : outputs) {
      if (output.unsafeGetTensorImpl() != input.identity._unsafe_get_target()) continue;
      fail("it returns its input " + std::to_string(i) + " itself; clone it, or leave it out and use what you passed");
    }
  }
  std::lock_guard<std::recursive_mutex> guard(lock_);
  state_ = State::kReady;
}

void Frame::abandon() {
  // An input modified in place has a history that holds this frame: a circle.
  inputs_.clear();
}

size_t Frame::promise(const at::Tensor& saved) {
  Description description = describe(saved);
  std::lock_guard<std::recursive_mutex> guard(lock_);
  slots_.push_back({std::move(description), true, std::nullopt});
  return slots_.size() - 1;
}

void Frame::keep(const at::Tensor& saved) {
  const size_t place = recomputed_++;
  if (place >= slots_.size()) return;
  Slot& slot = slots_[place];
  const Description again = describe(saved);
  if (mismatch_.empty()) mismatch_ = difference(place, slot.description, again);
  if (slot.wanted) {
    const c10::VariableVersion& counter = torch::autograd::impl::version_counter(saved);
    // Without its history, which holds what comes before it.
    slot.kept = Kept{saved.variable_data(), counter, counter.current_version()};
  }
  if (!stop_early_ || recomputed_ < slots_.size()) return;
  stopped_ = true;
  throw Enough();
}

at::Tensor Frame::take(size_t place) {
  std::lock_guard<std::recursive_mutex> guard(lock_);
  if (state_ == State::kFirstRun) fail("backward runs through it before it has ended");
  if (state_ == State::kRecomputing) fail("its recomputation asks for its own results");
  if (!slots_[place].kept) recompute();
  Kept kept = std::move(*slots_[place].kept);
  slots_[place].kept.reset();
  if (kept.counter.current_version() != kept.version) {
    fail("a tensor that backward needs (" + text(slots_[place].description) +
         ") is modified in place after the operator that saves it");
  }
  return std::move(kept.tensor);
}

void Frame::release(size_t place) {
  std::lock_guard<std::recursive_mutex> guard(lock_);
  slots_[place].wanted = false;
  slots_[place].kept.reset();
}

// New leaves, so that nothing that happens in the recomputation reaches the graph.
Tensors Frame::inputs_again() {
  Tensors again;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    try {
      again.push_back(input.saved.unpack().variable_data());
    } catch (const c10::Error& error) {
      fail("its input " + std::to_string(i) + ": " + error.what_without_backtrace());
    }
    again.back().set_requires_grad(input.requires_grad);
    torch::autograd::impl::set_version_counter(again.back(), c10::VariableVersion(input.version));
  }
  return again;
}

void Frame::recompute() {
  // This may recompute an enclosing segment first.
  Tensors inputs = inputs_again();
  state_ = State::kRecomputing;
  recomputed_ = 0;
  stopped_ = false;
  mismatch_.clear();
  try {
    run_again(std::move(inputs));
    check_recomputed();
  } catch (...) {
    for (Slot& slot : slots_) slot.kept.reset();
    state_ = State::kReady;
    throw;
  }
  state_ = State::kReady;
}

void Frame::run_again(Tensors inputs) {
  std::vector<at::Tensor*> raw;
  for (at::Tensor& input : inputs) raw.push_back(&input);
  std::string error;
  int failed;
  const Surroundings now = Surroundings::now(devices_);
  try {
    at::AutoGradMode with_gradients(true);
    Hooking hooking(this, Run::kAgain);
    AutocastRegion region;
    surroundings_.restore();
    failed = calls_.recompute(segment_, raw.data(), raw.size(), &error);
  } catch (...) {
    now.restore();
    throw;
  }
  now.restore();
  if (failed && !stopped_) fail(error);
}

void Frame::check_recomputed() const {
  if (!mismatch_.empty()) fail(mismatch_);
  if (recomputed_ == slots_.size()) return;
  fail("its operators save " + std::to_string(recomputed_) + " tensors for backward in recomputation and saved " +
       std::to_string(slots_.size()) + " in forward");
}

}  // namespace stepledger
