// A test double of CUDA's caching allocator: gives out numbers for addresses, rounds up to 512 bytes, and tells its
// trackers what the real one tells them, in its order: of a request before its own total grows, of a free after it
// has fallen. No result from it is a measurement.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <map>
#include <shared_mutex>
#include <tuple>
#include <vector>

using namespace c10::cuda::CUDACachingAllocator;
using c10::CachingDeviceAllocator::DeviceStats;

namespace {

constexpr size_t kTotal = size_t(1) << 30;
constexpr size_t kElsewhere = size_t(100) << 20;

struct Double final : CUDAAllocator {
  std::vector<AllocatorTraceTracker> trackers;
  std::map<size_t, std::pair<size_t, size_t>> blocks;  // address → asked, size
  size_t next = 512, allocated = 0, reserved = 0, asked_for_free = 0;
  double fraction = 1;
  bool lost = false;

  void tell(TraceEntry::Action action, size_t address, size_t size) {
    const TraceEntry entry(action, 0, address, size, nullptr, {0, 0}, c10::getApproximateTime());
    for (const auto& tracker : trackers) tracker(entry);
  }
  size_t give(size_t asked) {
    const size_t size = (asked + 511) / 512 * 512;
    if (double(allocated + size) > fraction * double(kTotal)) {
      tell(TraceEntry::OOM, 0, asked);
      return 0;
    }
    const size_t address = next;
    next += size;
    tell(TraceEntry::ALLOC, address, asked);
    blocks[address] = {asked, size};
    allocated += size;
    reserved = std::max(reserved, allocated);
    return address;
  }
  void take(size_t address) {
    const auto [asked, size] = blocks.at(address);
    blocks.erase(address);
    allocated -= size;
    tell(TraceEntry::FREE_REQUESTED, address, asked);
    tell(TraceEntry::FREE_COMPLETED, address, asked);
  }

  DeviceStats getDeviceStats(c10::DeviceIndex) override {
    DeviceStats stats;
    stats.allocated_bytes[0].current = int64_t(allocated);
    stats.reserved_bytes[0].current = int64_t(reserved);
    return stats;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override {
    ++asked_for_free;
    TORCH_CHECK(!lost, "CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`");
    return {kTotal - kElsewhere - reserved, kTotal};
  }
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override { trackers.push_back(std::move(tracker)); }
  double getMemoryFraction(c10::DeviceIndex) override { return fraction; }
  void setMemoryFraction(double share, c10::DeviceIndex) override { fraction = share; }

  // What nobody calls here.
  c10::DataPtr allocate(size_t) override { return {}; }
  void copy_data(void*, const void*, size_t) const override {}
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
  void* raw_alloc(size_t) override { return nullptr; }
  void* raw_alloc_with_stream(size_t, cudaStream_t) override { return nullptr; }
  void raw_delete(void*) override {}
  void init(int) override {}
  std::vector<StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex) override { return {}; }
  void enable(bool) override {}
  bool isEnabled() const override { return true; }
  void cacheInfo(c10::DeviceIndex, size_t*) override {}
  void* getBaseAllocation(void*, size_t*) override { return nullptr; }
  void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) override {}
  SnapshotInfo snapshot(c10::MempoolId_t, bool) override { return {}; }
  void beginAllocateToPool(c10::DeviceIndex, c10::MempoolId_t, std::function<bool(cudaStream_t)>) override {}
  void endAllocateToPool(c10::DeviceIndex, c10::MempoolId_t) override {}
  void releasePool(c10::DeviceIndex, c10::MempoolId_t) override {}
  ShareableHandle shareIpcHandle(void*) override { return {}; }
  std::shared_ptr<void> getIpcDevPtr(std::string) override { return nullptr; }
  void recordHistory(bool, CreateContextFn, size_t, RecordContext, bool, const std::vector<std::string>&) override {}
  void attachOutOfMemoryObserver(OutOfMemoryObserver) override {}
  void enablePeerAccess(c10::DeviceIndex, c10::DeviceIndex) override {}
  cudaError_t memcpyAsync(void*, int, const void*, int, size_t, cudaStream_t, bool) override { return cudaSuccess; }
  std::shared_ptr<AllocatorState> getCheckpointState(c10::DeviceIndex, c10::MempoolId_t) override { return nullptr; }
  CheckpointDelta setCheckpointPoolState(c10::DeviceIndex, std::shared_ptr<AllocatorState>) override { return {}; }
  std::string name() override { return "double"; }
};

Double* installed = nullptr;

// In the place of libtorch's guard of CUDA devices: one device, on one stream of the driver's double.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  void* stream = nullptr;

  c10::Device here() const { return {c10::kCUDA, 0}; }
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return here(); }
  c10::Device getDevice() const override { return here(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return c10::Stream(c10::Stream::UNSAFE, here(), 0); }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(here()); }
  void* getStreamNativeHandle(const c10::Stream) const override { return stream; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
};

Guard guard;

}  // namespace

extern "C" {

// Takes the place of libtorch's own, which must be loaded. Returns whether it could.
bool double_install() {
  void* symbol = dlsym(RTLD_DEFAULT, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  if (!symbol) return false;
  installed = new Double;
  static_cast<std::atomic<CUDAAllocator*>*>(symbol)->store(installed);
  return true;
}
void double_stand_in(void* stream) {
  guard.stream = stream;
  c10::impl::device_guard_impl_registry[size_t(c10::kCUDA)].store(&guard);
}
// The device answers no more.
void double_lose() { installed->lost = true; }
size_t double_asked_for_free() { return installed->asked_for_free; }
size_t double_give(size_t bytes) { return installed->give(bytes); }
void double_take(size_t address) { installed->take(address); }
size_t double_allocated() { return installed->allocated; }
// Notes a block as lent to cuBLAS, where libtorch does; with 0 none is any more.
bool double_lend(size_t address) {
  struct Workspaces {
    std::map<std::tuple<void*, void*>, at::DataPtr> map;
    std::shared_mutex mutex;
  };
  void* symbol = dlsym(RTLD_DEFAULT, "_ZN2at4cuda33cublas_handle_stream_to_workspaceEv");
  if (!symbol) return false;
  auto& all = reinterpret_cast<Workspaces& (*)()>(symbol)();
  if (!address) all.map.clear();
  void* data = reinterpret_cast<void*>(address);
  if (address) all.map[{data, nullptr}] = at::DataPtr(data, at::Device(at::kCUDA, 0));
  return true;
}
double double_fraction() { return installed->fraction; }
void double_set_fraction(double fraction) { installed->fraction = fraction; }

}  // extern "C"
