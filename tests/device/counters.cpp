// What CUDA's caching allocator counts by itself, for the checks alone: the hook does not look at these counters.
//
// libtorch_cuda is opened at run time, so nothing here may need one of its symbols when this is linked: the allocator is
// found by its name, and the rest are its virtual functions.

#include <cstdint>

#ifdef STEPLEDGER_CUDA

#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <atomic>

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

// The bytes that were asked for and not given back, and those of the blocks that they are in. False without an allocator.
extern "C" bool device_counters(int device, int64_t* requested, int64_t* allocated) {
  // The mangled name of c10::cuda::CUDACachingAllocator::allocator.
  void* symbol = dlsym(RTLD_DEFAULT, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  CUDAAllocator* allocator = symbol ? static_cast<std::atomic<CUDAAllocator*>*>(symbol)->load() : nullptr;
  if (!allocator || !allocator->initialized()) return false;
  const auto stats = allocator->getDeviceStats(static_cast<c10::DeviceIndex>(device));
  const auto all = size_t(c10::CachingAllocator::StatType::AGGREGATE);
  *requested = stats.requested_bytes[all].current;
  *allocated = stats.allocated_bytes[all].current;
  return true;
}

#else

extern "C" bool device_counters(int, int64_t*, int64_t*) { return false; }

#endif
