// CUDA's caching allocator, watched: it tells of each request and each free, on any thread, under its lock.
//
// What it tells of is what was asked for; its blocks are larger. The size of a block is what the allocator's
// own total grows by, which it does only after it has told of the block: so it is known at the next event or
// marker. The part that was not asked for is a block of the account in its own right, flagged as rounding.
//
// libtorch_cuda is opened at run time (probe::load_cuda), so nothing here may need one of its symbols when
// this is linked: the allocator is found by its name, and the rest are its virtual functions.

#include "cuda.h"

#include <ATen/Context.h>

#include "events.h"
#include "guarded.h"

using namespace stepledger;

#ifdef STEPLEDGER_CUDA

#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using c10::cuda::CUDACachingAllocator::TraceEntry;

namespace {

struct Block {
  uint64_t id = 0;
  int64_t asked_bytes = 0;
  uint64_t call = 0;
  uint64_t rounding_id = 0;
  int64_t rounding_bytes = 0;
};

// Guards all below. Taken inside the allocator's own lock, never the other way round.
std::mutex lock;
CUDAAllocator* watched = nullptr;
c10::DeviceIndex watched_device = 0;
bool attached = false;
// The share of the device's memory that the program itself lets the allocator have; negative while it is in force.
double fraction_before = -1;
std::unordered_map<size_t, Block> blocks;
// What they are larger than was asked for, together.
int64_t rounding_total = 0;
// The block whose size is not known yet; 0 for none.
size_t unsized = 0;
// The allocator's total when it was last looked at, and ours.
int64_t theirs = 0;
int64_t ours = 0;
// Counts what the allocator has told, so that a look at its total can be known to be fresh.
uint64_t told = 0;

// The allocator's granularity. Only for blocks that are freed before their size could be known.
int64_t rounded(int64_t bytes) { return (bytes + 511) / 512 * 512; }

int64_t allocated_now() {
  const auto stats = watched->getDeviceStats(watched_device);
  return stats.allocated_bytes[size_t(c10::CachingAllocator::StatType::AGGREGATE)].current;
}

void write(uint8_t kind, uint64_t id, int64_t bytes, uint8_t flags) {
  ours += kind == kAlloc ? bytes : -bytes;
  push_total(kind, id, bytes, ours, flags);
}

void size_up(int64_t size) {
  Block& block = blocks[unsized];
  unsized = 0;
  block.rounding_bytes = size - block.asked_bytes;
  if (block.rounding_bytes <= 0) return;
  block.rounding_id = next_block();
  rounding_total += block.rounding_bytes;
  write(kAlloc, block.rounding_id, block.rounding_bytes, kRounding);
}

// The allocator's total is `now`, and nothing is under way.
void settle(int64_t now) {
  if (unsized) size_up(now - theirs);
  theirs = now;
  // Where the two differ the account says so: as unattributed bytes.
  ours = now;
}

void on_alloc(const TraceEntry& entry, int64_t now) {
  settle(now);
  Block block;
  block.id = next_block();
  block.asked_bytes = int64_t(entry.size_);
  block.call = call_here();
  blocks[entry.addr_] = block;
  unsized = entry.addr_;
  write(kAlloc, block.id, block.asked_bytes, 0);
}

// The allocator's total is without this block already.
void on_free(const TraceEntry& entry, int64_t now) {
  const auto found = blocks.find(entry.addr_);
  if (found == blocks.end()) {
    // From before the watch: its size is what the total fell by, if no other size is open.
    const int64_t size = unsized ? rounded(int64_t(entry.size_)) : theirs - now;
    if (unsized) size_up(now + size - theirs);
    write(kFree, 0, size, 0);
  } else {
    if (unsized == entry.addr_) {
      size_up(rounded(found->second.asked_bytes));
    } else if (unsized) {
      size_up(now + found->second.asked_bytes + found->second.rounding_bytes - theirs);
    }
    const Block block = found->second;
    blocks.erase(found);
    const uint8_t in_op = block.call && block.call == call_here() ? kInOp : 0;
    write(kFree, block.id, block.asked_bytes, in_op);
    if (block.rounding_id) {
      rounding_total -= block.rounding_bytes;
      write(kFree, block.rounding_id, block.rounding_bytes, 0);
    }
  }
  theirs = now;
  ours = now;
}

void on_event(const TraceEntry& entry) {
  if (!watched || entry.device_ != watched_device || !is_recording()) return;
  switch (entry.action_) {
    case TraceEntry::ALLOC:
    case TraceEntry::FREE_REQUESTED: {
      const int64_t now = allocated_now();
      std::lock_guard<std::mutex> guard(lock);
      ++told;
      entry.action_ == TraceEntry::ALLOC ? on_alloc(entry, now) : on_free(entry, now);
      break;
    }
    case TraceEntry::OOM: {
      std::lock_guard<std::mutex> guard(lock);
      push_total(kAllocFailed, 0, int64_t(entry.size_), ours, 0);
      break;
    }
    default:
      break;
  }
}

CUDAAllocator* caching_allocator() {
  // The mangled name of c10::cuda::CUDACachingAllocator::allocator.
  void* symbol = dlsym(RTLD_DEFAULT, "_ZN3c104cuda20CUDACachingAllocator9allocatorE");
  return symbol ? static_cast<std::atomic<CUDAAllocator*>*>(symbol)->load() : nullptr;
}

bool allocator_is_ready() {
  CUDAAllocator* allocator = caching_allocator();
  return allocator && allocator->initialized();
}

}  // namespace

namespace stepledger {

uint64_t cuda_block_at(const void* address) {
  std::lock_guard<std::mutex> guard(lock);
  const auto found = blocks.find(reinterpret_cast<size_t>(address));
  return watched && found != blocks.end() ? found->second.id : 0;
}

int64_t cuda_total() {
  uint64_t before;
  {
    std::lock_guard<std::mutex> guard(lock);
    before = told;
  }
  // Takes the allocator's lock, so not under ours.
  const int64_t now = allocated_now();
  std::lock_guard<std::mutex> guard(lock);
  if (told == before) settle(now);
  return ours;
}

}  // namespace stepledger

extern "C" {

// Watches the caching allocator on CUDA device `device`, and lets it have `limit` bytes of the device's
// memory at most; 0 for no limit but the program's own. The blocks that are there already are told as `total` bytes.
int sl_cuda_start(int device, int64_t limit, int64_t* total) {
  return guarded([&] {
    CUDAAllocator* allocator = caching_allocator();
    TORCH_CHECK(allocator, "libtorch_cuda is not loaded, so there is no caching allocator to watch");
    const auto index = static_cast<c10::DeviceIndex>(device);
    if (limit) {
      const double total_bytes = double(allocator->getMemoryInfo(index).second);
      const double before = allocator->getMemoryFraction(index);
      allocator->setMemoryFraction(std::min(before, double(limit) / total_bytes), index);
      fraction_before = before;
    }
    if (!attached) allocator->attachAllocatorTraceTracker(&on_event);
    attached = true;
    watched = allocator;
    watched_device = index;
    theirs = ours = *total = allocated_now();
    blocks.clear();
    rounding_total = 0;
    unsized = 0;
    watch_cuda(true);
    set_recording(true);
  });
}

int sl_cuda_stop() {
  return guarded([] {
    set_recording(false);
    watch_cuda(false);
    const double fraction = std::exchange(fraction_before, -1);
    CUDAAllocator* allocator;
    {
      std::lock_guard<std::mutex> guard(lock);
      allocator = std::exchange(watched, nullptr);
      blocks.clear();
    }
    // Last: it asks the device how much memory that has, and one that is lost does not say.
    if (allocator && fraction >= 0) allocator->setMemoryFraction(fraction, watched_device);
  });
}

// What lies beside the account: the caching allocator's reserve that is in no block, and what of the device's
// memory it has not reserved and is not free either: the driver knows what is free, and takes its time, so a null
// `non_torch` leaves it out. And, in the account, the rounding.
int sl_cuda_beside(int64_t* rounding, int64_t* cached, int64_t* non_torch) {
  return guarded([&] {
    TORCH_CHECK(watched, "no CUDA device is watched");
    const auto stats = watched->getDeviceStats(watched_device);
    const auto all = size_t(c10::CachingAllocator::StatType::AGGREGATE);
    const int64_t reserved = stats.reserved_bytes[all].current;
    *cached = reserved - stats.allocated_bytes[all].current;
    if (non_torch) {
      const auto [free, total] = watched->getMemoryInfo(watched_device);
      *non_torch = int64_t(total - free) - reserved;
    }
    std::lock_guard<std::mutex> guard(lock);
    *rounding = rounding_total;
  });
}

}  // extern "C"

#else

namespace stepledger {
uint64_t cuda_block_at(const void*) { return 0; }
int64_t cuda_total() { return 0; }
}  // namespace stepledger

namespace {
bool allocator_is_ready() { return false; }

int no_cuda() {
  stepledger::last_error = "stepledger was built against a libtorch without CUDA's headers";
  return 1;
}
}  // namespace

extern "C" {
int sl_cuda_start(int, int64_t, int64_t*) { return no_cuda(); }
int sl_cuda_stop() { return 0; }
int sl_cuda_beside(int64_t*, int64_t*, int64_t*) { return no_cuda(); }
}

#endif

// Makes libtorch ready to work on CUDA, as its first tensor there does: the caching allocator knows no device before.
extern "C" int sl_cuda_init() {
  return guarded([] {
    // libtorch looks for its CUDA half once, the first time that it is asked for anything of it.
    TORCH_CHECK(at::detail::getCUDAHooks().hasCUDART(),
                "was asked about CUDA (tch::manual_seed does so) before its CUDA half was loaded, and has given it up for "
                "good: start the probe first, or call stepledger::probe::load_cuda()");
    if (!allocator_is_ready()) at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  });
}
