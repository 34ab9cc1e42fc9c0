// libtorch's autocast, which tch offers for CUDA only.

#include <ATen/autocast_mode.h>

#include "../probe/hook/guarded.h"

#include <cstdint>

using stepledger::guarded;

extern "C" {

// What autocast was like before.
struct SavedAutocast {
  bool enabled;
  int8_t dtype;
};

// Turns autocast on, on this thread, for CUDA devices or else the CPU.
int sl_autocast_enter(bool cuda, int8_t dtype, SavedAutocast* saved) {
  return guarded([&] {
    const auto device = cuda ? at::kCUDA : at::kCPU;
    saved->enabled = at::autocast::is_autocast_enabled(device);
    saved->dtype = static_cast<int8_t>(at::autocast::get_autocast_dtype(device));
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(dtype));
    at::autocast::increment_nesting();
  });
}

// Puts it back. The copies of weights go with the outermost region, but for those that autograd keeps.
int sl_autocast_leave(bool cuda, const SavedAutocast* saved) {
  return guarded([&] {
    const auto device = cuda ? at::kCUDA : at::kCPU;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device, saved->enabled);
    at::autocast::set_autocast_dtype(device, static_cast<at::ScalarType>(saved->dtype));
  });
}

}  // extern "C"
