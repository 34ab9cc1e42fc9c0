// The part of CUDA's C++ that this project's kernels use, on the host: blocks run one after the other, the threads of a
// block as fibers of one thread. A barrier is real: no fiber passes it before all others of the block have reached it,
// and one that some never reach is reported. Fibers run in ascending or in descending order: a kernel that lacks a barrier
// gives other results in one of them.
#pragma once

#include <math.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __global__
#define __device__
#define __grid_constant__
#define __launch_bounds__(...)
// Blocks run one after the other, so one place serves them all; it keeps what the block before left, as a card's does.
#define __shared__ static thread_local

struct alignas(16) float4 {
  float x, y, z, w;
};

struct alignas(8) uint2 {
  unsigned x, y;
};

struct Place {
  unsigned x = 0, y = 0, z = 0;
};

inline thread_local Place threadIdx, blockIdx, gridDim, blockDim;

inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

namespace host_cuda {

class Block;
inline thread_local Block* running = nullptr;

class Block {
 public:
  Block(unsigned threads, bool descending) : fibers_(threads), descending_(descending) {
    for (Fiber& fiber : fibers_) fiber.stack.reset(new char[kStack]);
  }

  // Whether all threads came to the same barriers.
  bool run(const std::function<void()>& kernel) {
    kernel_ = &kernel;
    running = this;
    for (Fiber& fiber : fibers_) begin(fiber);
    // Each round takes every thread to its next barrier, or to its end.
    for (size_t ended = 0; ended == 0;) {
      for (size_t i = 0; i < fibers_.size(); ++i) ended += resume(descending_ ? fibers_.size() - 1 - i : i);
      if (ended != 0 && ended != fibers_.size()) return false;
    }
    return true;
  }

  // A barrier: back to `run`, which goes on with this thread when all others have come here.
  void wait() { swapcontext(&fibers_[current_].context, &home_); }

 private:
  static constexpr size_t kStack = 64 * 1024;

  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool ended = false;
  };

  static void enter() {
    Block& block = *running;
    (*block.kernel_)();
    block.fibers_[block.current_].ended = true;
  }

  void begin(Fiber& fiber) {
    fiber.ended = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = &home_;
    makecontext(&fiber.context, enter, 0);
  }

  bool resume(size_t thread) {
    current_ = thread;
    threadIdx.x = static_cast<unsigned>(thread);
    swapcontext(&home_, &fibers_[thread].context);
    return fibers_[thread].ended;
  }

  std::vector<Fiber> fibers_;
  bool descending_;
  ucontext_t home_;
  size_t current_ = 0;
  const std::function<void()>* kernel_ = nullptr;
};

// Runs `kernel` in every block of a grid. Whether all threads of each came to the same barriers.
inline bool launch(unsigned blocks, unsigned threads, bool descending, const std::function<void()>& kernel) {
  Block block(threads, descending);
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned i = 0; i < blocks; ++i) {
    blockIdx.x = i;
    if (!block.run(kernel)) return false;
  }
  return true;
}

}  // namespace host_cuda

inline void __syncthreads() { host_cuda::running->wait(); }
