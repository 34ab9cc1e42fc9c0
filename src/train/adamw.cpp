// What the optimizer needs of libtorch and tch does not offer: the fused update, and gradients set to none.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/ones.h>

#include "../probe/hook/guarded.h"

#include <vector>

using stepledger::guarded;

namespace {

std::vector<at::Tensor> list(at::Tensor* const* tensors, size_t count) {
  std::vector<at::Tensor> copies;
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) copies.push_back(*tensors[i]);
  return copies;
}

}  // namespace

extern "C" {

// One AdamW update of `count` parameters from their gradients. The op itself does not advance the step
// counters, and would divide by zero at step 0: that is done first.
int sl_fused_adamw(at::Tensor* const* parameters, at::Tensor* const* exp_avgs, at::Tensor* const* exp_avg_sqs,
                   at::Tensor* const* steps, size_t count, double lr, double beta1, double beta2, double eps,
                   double weight_decay) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    if (count == 0) return;
    const std::vector<at::Tensor> counters = list(steps, count);
    // A tensor and not a number, which would be wrapped in a new tensor for each counter.
    at::_foreach_add_(counters, at::ones({}, counters.front().options()));
    const std::vector<at::Tensor> params = list(parameters, count);
    std::vector<at::Tensor> grads;
    grads.reserve(count);
    for (const at::Tensor& param : params) grads.push_back(param.grad());
    at::_fused_adamw_(params, grads, list(exp_avgs, count), list(exp_avg_sqs, count), /*max_exp_avg_sqs=*/{},
                      counters, lr, beta1, beta2, weight_decay, eps, /*amsgrad=*/false, /*maximize=*/false);
  });
}

// Drops the gradients of `count` tensors.
int sl_clear_gradients(at::Tensor* const* tensors, size_t count) {
  return guarded([&] {
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < count; ++i) tensors[i]->mutable_grad().reset();
  });
}

}  // extern "C"
