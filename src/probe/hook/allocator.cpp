// The allocator hook: libtorch's CPU allocator, wrapped, so that every allocation and free on any thread
// is written down. The callback stamps and stores plain data; everything else happens in Rust, later.
//
// No exception leaves this file except out of the allocator itself, where libtorch expects them: each
// entry point returns 0, or 1 with the message in sl_last_error().

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <torch/headeronly/version.h>

#include "cuda.h"
#include "events.h"
#include "guarded.h"

#include <array>
#include <atomic>

using namespace stepledger;

namespace {

// Stands before each block of ours, so that a free finds number and size without a look-up. As wide as
// libtorch's alignment, which the block behind it must keep.
struct alignas(64) Header {
  uint64_t id;
  int64_t bytes;
  // The call of the operator that it was made in.
  uint64_t call;
};
static_assert(sizeof(Header) == c10::gAlignment, "the block behind a header must stay aligned");

c10::Allocator* wrapped = nullptr;
// The most that may be alive; 0 for no limit.
std::atomic<int64_t> limit_bytes{0};

void release(void* data) {
  // Some kernels give back through raw_deallocate() what they asked for with size 0.
  if (!data) return;
  Header* header = static_cast<Header*>(data) - 1;
  const bool in_op = header->call && header->call == call_here();
  push(kFree, header->id, header->bytes, -header->bytes, in_op ? kInOp : 0);
  wrapped->raw_deallocate(header);
}

// Throws as libtorch does when the machine has no more.
[[noreturn]] void refuse(int64_t bytes, int64_t limit) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory: ", bytes, " bytes were asked for while ", total_bytes(),
                   " were in use, and the limit is ", limit);
}

// libtorch's own block. Its message would count the header in.
Header* obtain(size_t bytes) {
  try {
    return static_cast<Header*>(wrapped->raw_allocate(bytes + sizeof(Header)));
  } catch (const c10::Error&) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory: ", bytes,
                     " bytes were asked for, and the machine had no more");
  }
}

// A block with its header, which is alive in the stream.
Header* reserve(size_t bytes) {
  // More than the total can hold; also keeps the sums below from wrapping round.
  TORCH_CHECK_WITH(OutOfMemoryError, bytes <= size_t(most_bytes() / 2), "not enough memory: you tried to allocate ",
                   bytes, " bytes");
  const int64_t limit = limit_bytes.load(std::memory_order_relaxed);
  // The machine is not asked for what cannot be kept.
  if (limit && int64_t(bytes) > limit - total_bytes()) refuse(int64_t(bytes), limit);
  Header* header = obtain(bytes);
  header->id = next_block();
  header->bytes = int64_t(bytes);
  header->call = call_here();
  if (push_within(limit, header->id, header->bytes)) return header;
  // Another thread has taken the room since.
  wrapped->raw_deallocate(header);
  refuse(int64_t(bytes), limit);
}

struct Recorder final : c10::Allocator {
  // data == context, and raw_deleter() gives the deleter: some kernels insist on both.
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, at::Device(at::DeviceType::CPU)};
    try {
      void* data = reserve(bytes) + 1;
      return {data, data, &release, at::Device(at::DeviceType::CPU)};
    } catch (...) {
      push(kAllocFailed, 0, int64_t(bytes), 0);
      throw;
    }
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

Recorder recorder;

uint64_t block_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  const at::DataPtr& data = tensor.storage().data_ptr();
  if (data.device().is_cuda()) return cuda_block_at(data.get());
  if (data.get_deleter() != &release || !data.get_context()) return 0;
  return (static_cast<const Header*>(data.get_context()) - 1)->id;
}

// At most as many tensors make up one: the values of a sparse one, and the indices of them.
constexpr size_t kParts = 3;

// The dense tensors that make up `tensor`, which is one itself unless it is sparse.
std::array<at::Tensor, kParts> parts_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  switch (tensor.layout()) {
    case at::kSparse:
      return {tensor._values(), tensor._indices()};
    case at::kSparseCsr:
    case at::kSparseBsr:
      return {tensor.values(), tensor.crow_indices(), tensor.col_indices()};
    case at::kSparseCsc:
    case at::kSparseBsc:
      return {tensor.values(), tensor.ccol_indices(), tensor.row_indices()};
    default:
      return {tensor};
  }
}

void blocks_of(const at::Tensor& tensor, uint64_t* blocks) {
  const std::array<at::Tensor, kParts> parts = parts_of(tensor);
  for (size_t i = 0; i < kParts; ++i) blocks[i] = block_of(parts[i]);
}

}  // namespace

extern "C" {

const char* sl_last_error() { return last_error.c_str(); }

// Puts the recorder in front of libtorch's CPU allocator and begins to write events. `limit` is the most
// bytes that may be alive, 0 for no limit.
int sl_start(int64_t limit) {
  return guarded([&] {
    if (!wrapped) wrapped = c10::GetCPUAllocator();
    limit_bytes.store(limit, std::memory_order_relaxed);
    c10::SetCPUAllocator(&recorder, /*priority=*/1);
    set_recording(true);
  });
}

// Takes the recorder out again. Blocks it made keep their way back through it.
int sl_stop() {
  return guarded([] {
    set_recording(false);
    limit_bytes.store(0, std::memory_order_relaxed);
    if (wrapped) c10::SetCPUAllocator(wrapped, /*priority=*/1);
  });
}

// The blocks behind `count` tensors and behind their gradients, kParts for each; 0 where there is none of ours.
int sl_blocks(const at::Tensor* const* tensors, size_t count, uint64_t* blocks, uint64_t* gradients) {
  return guarded([&] {
    for (size_t i = 0; i < count; ++i) {
      blocks_of(*tensors[i], blocks + i * kParts);
      blocks_of(tensors[i]->grad(), gradients + i * kParts);
    }
  });
}

// The stream that libtorch works on now, on CUDA device `device`, by way of libtorch's own device guard:
// needs no CUDA header.
int sl_current_stream(int device, void** stream) {
  return guarded([&] {
    const c10::Device cuda(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(device));
    *stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(cuda).native_handle();
  });
}

const char* sl_torch_version() { return TORCH_VERSION; }

// The version of the libtorch that this process has loaded, as TORCH_ABI_VERSION has it: major, minor and patch in the
// upper three bytes. 0 for one that is too old to say. Looked up by name, since such a one could not even be loaded else.
uint64_t sl_loaded_torch_version() {
  void* symbol = dlsym(RTLD_DEFAULT, "aoti_torch_abi_version");
  return symbol ? reinterpret_cast<uint64_t (*)()>(symbol)() : 0;
}

}  // extern "C"
