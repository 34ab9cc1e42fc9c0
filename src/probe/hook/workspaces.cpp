// What libtorch lends to libraries of CUDA's for good, out of the caching allocator: needs no header and no symbol of
// theirs when this is built.

#include "cuda.h"

#include <c10/core/Allocator.h>
#include <dlfcn.h>

#include <map>
#include <shared_mutex>
#include <tuple>
#include <vector>

#include "events.h"
#include "guarded.h"

using namespace stepledger;

namespace {

// What libtorch lends to cuBLAS, by handle and stream. ATen/cuda/CUDAContextLight.h declares it so in 2.11; including that
// would take the headers of every library of CUDA's.
struct Workspaces {
  std::map<std::tuple<void*, void*>, at::DataPtr> map;
  std::shared_mutex mutex;
};

Workspaces* find_workspaces(const char* mangled) {
  void* symbol = dlsym(RTLD_DEFAULT, mangled);
  return symbol ? &reinterpret_cast<Workspaces& (*)()>(symbol)() : nullptr;
}

// Those of cuBLAS, or of cuBLASLt; null where this libtorch keeps none. Looked for once, when libtorch_cuda is loaded.
Workspaces* workspaces(bool lt) {
  static Workspaces* const plain = find_workspaces("_ZN2at4cuda33cublas_handle_stream_to_workspaceEv");
  static Workspaces* const light = find_workspaces("_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv");
  return lt ? light : plain;
}

std::vector<const void*> workspace_addresses(Workspaces& all) {
  std::vector<const void*> addresses;
  std::shared_lock<std::shared_mutex> guard(all.mutex);
  for (const auto& entry : all.map) addresses.push_back(entry.second.get());
  return addresses;
}

}  // namespace

extern "C" {

// The blocks that libtorch lends to cuBLAS (or, with `lt`, to cuBLASLt): `count` of them, of which `room` are written at
// most. Each thread that computes has a handle of its own, and its workspace for good.
int sl_cuda_workspaces(bool lt, uint64_t* found, size_t room, size_t* count) {
  return guarded([&] {
    *count = 0;
    Workspaces* all = is_watching_cuda() ? workspaces(lt) : nullptr;
    if (!all) return;
    for (const void* address : workspace_addresses(*all)) {
      const uint64_t block = cuda_block_at(address);
      if (!block) continue;
      if (*count < room) found[*count] = block;
      ++*count;
    }
  });
}

}  // extern "C"
