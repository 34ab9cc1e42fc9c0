// Operators with numbers among their arguments. tch has them, but panics where they fail: it frees the number
// before it reads libtorch's error, and takes the error for that of the freeing. And pinning, for which tch has a device
// to name.

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>

#include "../probe/hook/guarded.h"

using stepledger::guarded;

extern "C" {

int sl_multiply(const at::Tensor* tensor, double factor, at::Tensor** made) {
  return guarded([&] { *made = new at::Tensor(tensor->mul(factor)); });
}

int sl_divide(const at::Tensor* tensor, double divisor, at::Tensor** made) {
  return guarded([&] { *made = new at::Tensor(tensor->div(divisor)); });
}

int sl_masked_fill(const at::Tensor* tensor, const at::Tensor* mask, double value, at::Tensor** made) {
  return guarded([&] { *made = new at::Tensor(tensor->masked_fill(*mask, value)); });
}

// 0 to `end` - 1, int64, on the device of `like`.
int sl_arange(int64_t end, const at::Tensor* like, at::Tensor** made) {
  return guarded([&] { *made = new at::Tensor(at::arange(end, like->options().dtype(at::kLong))); });
}

// In memory that the system does not page, of the accelerator there is. Naming a device is deprecated: libtorch 2.11 warns
// of it twice at each call.
int sl_pin_memory(const at::Tensor* tensor, at::Tensor** made) {
  return guarded([&] { *made = new at::Tensor(tensor->pin_memory()); });
}

}  // extern "C"
