// What the optimizer needs of libtorch and tch does not offer: AdamW's update in the three ways PyTorch has it,
// for states and parameters of any two types; where tensors lie, for a way of our own; gradients set to none or to zero.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_addcdiv.h>
#include <ATen/ops/_foreach_addcmul.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_zero.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/ones.h>

#include "../probe/hook/guarded.h"

#include <cmath>
#include <cstdint>
#include <vector>

using stepledger::guarded;
using Tensors = std::vector<at::Tensor>;

extern "C" {

// AdamW's numbers; the same in adamw.rs.
struct AdamWNumbers {
  double lr;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
};

// What such a kernel was loaded for; `Layout` in kernel.rs.
struct AdamWLayout {
  int32_t half_params;  // bf16, and f32 where not; gradients are as their parameters
  int32_t half_states;
  int32_t masters;
  int32_t ordinal;  // of the GPU; -1 is the CPU, for tests
};

// Where the tensors of one parameter lie, for a kernel of our own; `Operands` in src/device/adamw/batch.rs.
struct AdamWOperands {
  uint64_t param;
  uint64_t grad;
  uint64_t exp_avg;
  uint64_t exp_avg_sq;
  uint64_t master;
  uint64_t step;
  uint64_t numel;
};

}  // extern "C"

namespace {

// What is updated, and what it is updated from: tensors of one type, that of the states.
struct Group {
  Tensors params;
  Tensors grads;
  Tensors exp_avgs;
  Tensors exp_avg_sqs;
  Tensors steps;
};

Tensors list(at::Tensor* const* tensors, size_t count) {
  Tensors copies;
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) copies.push_back(*tensors[i]);
  return copies;
}

void count_steps(const Tensors& steps) {
  // A tensor and not a number, which would be wrapped in a new tensor for each counter.
  at::_foreach_add_(steps, at::ones({}, steps.front().options()));
}

// The op itself does not advance the step counters, and would divide by zero at step 0: that is done first.
void fused(const Group& group, const AdamWNumbers& numbers) {
  count_steps(group.steps);
  at::_fused_adamw_(group.params, group.grads, group.exp_avgs, group.exp_avg_sqs, /*max_exp_avg_sqs=*/{},
                    group.steps, numbers.lr, numbers.beta1, numbers.beta2, numbers.weight_decay, numbers.eps,
                    /*amsgrad=*/false, /*maximize=*/false);
}

// The two corrections for states that begin at zero, after this many steps.
struct Correction {
  double step_size;
  double second_root;
};

Correction correction(const at::Tensor& step, const AdamWNumbers& numbers) {
  const double count = step.item<double>();
  return {numbers.lr / (1 - std::pow(numbers.beta1, count)), std::sqrt(1 - std::pow(numbers.beta2, count))};
}

// All tensors at once, one operation after the other: needs a further copy of all parameters.
void foreach(Group& group, const AdamWNumbers& numbers) {
  count_steps(group.steps);
  if (numbers.weight_decay != 0) at::_foreach_mul_(group.params, 1 - numbers.lr * numbers.weight_decay);
  at::_foreach_lerp_(group.exp_avgs, group.grads, 1 - numbers.beta1);
  at::_foreach_mul_(group.exp_avg_sqs, numbers.beta2);
  at::_foreach_addcmul_(group.exp_avg_sqs, group.grads, group.grads, 1 - numbers.beta2);
  // Copies in the states' type, if they are, make room for the denominators.
  group.grads.clear();
  std::vector<at::Scalar> step_sizes, roots;
  for (const at::Tensor& step : group.steps) {
    const Correction corrected = correction(step, numbers);
    step_sizes.emplace_back(-corrected.step_size);
    roots.emplace_back(corrected.second_root);
  }
  const Tensors denominators = at::_foreach_sqrt(group.exp_avg_sqs);
  at::_foreach_div_(denominators, roots);
  at::_foreach_add_(denominators, numbers.eps);
  at::_foreach_addcdiv_(group.params, group.exp_avgs, denominators, step_sizes);
}

// One tensor, one operation after the other: needs two further copies of it.
void single(Group& group, const AdamWNumbers& numbers) {
  at::Tensor param = group.params[0], step = group.steps[0];
  at::Tensor exp_avg = group.exp_avgs[0], exp_avg_sq = group.exp_avg_sqs[0];
  step.add_(1);
  if (numbers.weight_decay != 0) param.mul_(1 - numbers.lr * numbers.weight_decay);
  exp_avg.lerp_(group.grads[0], 1 - numbers.beta1);
  exp_avg_sq.mul_(numbers.beta2).addcmul_(group.grads[0], group.grads[0], 1 - numbers.beta2);
  group.grads.clear();
  const Correction corrected = correction(step, numbers);
  const at::Tensor denominator = exp_avg_sq.sqrt().div(corrected.second_root).add_(numbers.eps);
  param.addcdiv_(exp_avg, denominator, -corrected.step_size);
}

// Which of the three; the same in adamw.rs.
enum Way { kFused = 0, kForeach = 1, kLoop = 2 };

void update(Way way, Group& group, const AdamWNumbers& numbers) {
  switch (way) {
    case kFused:
      return fused(group, numbers);
    case kForeach:
      return foreach(group, numbers);
    case kLoop:
      return single(group, numbers);
  }
}

// The tensors themselves where they are of this type, copies of it where not.
Tensors as_type(const Tensors& tensors, const Tensors& like) {
  Tensors same;
  same.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) same.push_back(tensors[i].to(like[i].scalar_type()));
  return same;
}

// Updates `group.params` (of any type) in the states' type, and `stored` (the parameters that the model has)
// from them.
void step(Way way, Group group, const Tensors& stored, const AdamWNumbers& numbers) {
  group.params = as_type(group.params, group.exp_avgs);
  group.grads = as_type(group.grads, group.exp_avgs);
  update(way, group, numbers);
  if (!group.params[0].is_same(stored[0])) at::_foreach_copy_(stored, group.params);
}

at::ScalarType type(bool half) { return half ? at::kBFloat16 : at::kFloat; }

// Where a tensor lies, if the kernel can read it as it reads everything: on its GPU, element after element, each of the
// type that it was loaded for, and as many as it will read.
uint64_t address(const char* name, const at::Tensor& tensor, at::ScalarType type, int64_t elements, at::Device device) {
  TORCH_CHECK(tensor.defined(), "AdamW's kernel: a parameter of ", elements, " elements has no ", name);
  TORCH_CHECK(tensor.device() == device, "AdamW's kernel: ", name, " is on ", tensor.device(),
              ", and the kernel was loaded for ", device, "; keep all parameters there, or use --adamw foreach");
  TORCH_CHECK(tensor.scalar_type() == type, "AdamW's kernel: ", name, " is of ", tensor.scalar_type(),
              ", and the kernel was loaded for ", type, "; keep all parameters in one type, or use --adamw foreach");
  TORCH_CHECK(tensor.is_contiguous(), "AdamW's kernel: ", name, " is not contiguous (sizes ", tensor.sizes(),
              ", strides ", tensor.strides(), "); use --adamw foreach");
  TORCH_CHECK(tensor.numel() == elements, "AdamW's kernel: ", name, " has ", tensor.numel(), " elements, and ", elements,
              " are read");
  return reinterpret_cast<uint64_t>(tensor.data_ptr());
}

AdamWOperands operands(const at::Tensor& param, const at::Tensor* master, const at::Tensor& exp_avg,
                       const at::Tensor& exp_avg_sq, const at::Tensor& step, const AdamWLayout& layout) {
  const at::Device device = layout.ordinal < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, layout.ordinal);
  const at::ScalarType of_params = type(layout.half_params), of_states = type(layout.half_states);
  const int64_t numel = param.numel();
  return {address("parameter", param, of_params, numel, device),
          address("gradient", param.grad(), of_params, numel, device),
          address("exp_avg", exp_avg, of_states, numel, device),
          address("exp_avg_sq", exp_avg_sq, of_states, numel, device),
          master ? address("master", *master, at::kFloat, numel, device) : 0,
          address("step", step, at::kFloat, 1, device),
          static_cast<uint64_t>(numel)};
}

Group part(const Group& all, size_t i) {
  return {{all.params[i]}, {all.grads[i]}, {all.exp_avgs[i]}, {all.exp_avg_sqs[i]}, {all.steps[i]}};
}

}  // namespace

extern "C" {

// One AdamW update of `count` parameters from their gradients. Where there are `masters`, they are updated, and
// the parameters are made from them.
int sl_adamw(int way, at::Tensor* const* parameters, at::Tensor* const* masters, at::Tensor* const* exp_avgs,
             at::Tensor* const* exp_avg_sqs, at::Tensor* const* steps, size_t count, const AdamWNumbers* numbers) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    if (count == 0) return;
    const Tensors stored = list(parameters, count);
    Group group{masters ? list(masters, count) : stored, {}, list(exp_avgs, count), list(exp_avg_sqs, count),
                list(steps, count)};
    for (const at::Tensor& param : stored) group.grads.push_back(param.grad());
    // Copies in another type are made of one tensor at a time, but where all are needed at once.
    const bool mixed = stored[0].scalar_type() != group.exp_avgs[0].scalar_type();
    if (way == kForeach || (way == kFused && !mixed)) return step(Way(way), group, stored, *numbers);
    for (size_t i = 0; i < count; ++i) step(Way(way), part(group, i), {stored[i]}, *numbers);
  });
}

// Where the tensors of `count` updates lie, all of which must be as the kernel was loaded for; takes them for changed from
// now on.
int sl_adamw_operands(at::Tensor* const* parameters, at::Tensor* const* masters, at::Tensor* const* exp_avgs,
                      at::Tensor* const* exp_avg_sqs, at::Tensor* const* steps, size_t count, const AdamWLayout* layout,
                      AdamWOperands* out) {
  return guarded([&] {
    TORCH_CHECK((masters != nullptr) == (layout->masters != 0), "AdamW's kernel was loaded for parameters ",
                layout->masters ? "with" : "without", " master weights");
    for (size_t i = 0; i < count; ++i) {
      const at::Tensor* master = masters ? masters[i] : nullptr;
      out[i] = operands(*parameters[i], master, *exp_avgs[i], *exp_avg_sqs[i], *steps[i], *layout);
    }
    // What is written is not written by libtorch, which must not take an older value that it saved for the new one.
    for (at::Tensor* const* changed : {parameters, exp_avgs, exp_avg_sqs, masters}) {
      for (size_t i = 0; changed && i < count; ++i) changed[i]->unsafeGetTensorImpl()->bump_version();
    }
  });
}

// Drops the gradients of `count` tensors.
int sl_clear_gradients(at::Tensor* const* tensors, size_t count) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < count; ++i) tensors[i]->mutable_grad().reset();
  });
}

// Sets those of the gradients that exist to zero, in place.
int sl_zero_gradients(at::Tensor* const* tensors, size_t count) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    Tensors gradients;
    for (size_t i = 0; i < count; ++i) {
      if (tensors[i]->grad().defined()) gradients.push_back(tensors[i]->grad());
    }
    if (!gradients.empty()) at::_foreach_zero_(gradients);
  });
}

}  // extern "C"
