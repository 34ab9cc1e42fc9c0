// STREAM's triad. tch has the operator, but without its factor.

#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>

#include "../probe/hook/guarded.h"

using stepledger::guarded;

// to = from + factor · scaled
extern "C" int sl_triad(at::Tensor* to, const at::Tensor* from, const at::Tensor* scaled, double factor) {
  return guarded([&] { at::add_out(*to, *from, *scaled, factor); });
}
