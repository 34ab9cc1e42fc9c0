// Tests host_cuda.h itself: what a barrier must do, and what it must not let pass.
#include "host_cuda.h"

namespace {

constexpr unsigned kThreads = 96;

// Each block reverses its part, by way of shared memory.
void reverse(int* values) {
  __shared__ int shared[kThreads];
  const unsigned at = blockIdx.x * kThreads + threadIdx.x;
  shared[threadIdx.x] = values[at];
  __syncthreads();
  values[at] = shared[kThreads - 1 - threadIdx.x];
}

// The same, with the barrier forgotten.
void reverse_too_early(int* values) {
  __shared__ int shared[kThreads];
  const unsigned at = blockIdx.x * kThreads + threadIdx.x;
  shared[threadIdx.x] = values[at];
  values[at] = shared[kThreads - 1 - threadIdx.x];
}

// A sum by halves, with a barrier for each.
void sum(int* values) {
  __shared__ int shared[64];
  shared[threadIdx.x] = values[blockIdx.x * 64 + threadIdx.x];
  for (unsigned half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0) values[blockIdx.x * 64] = shared[0];
}

}  // namespace

extern "C" {

bool host_reverse(int* values, unsigned blocks, bool descending) {
  return host_cuda::launch(blocks, kThreads, descending, [&] { reverse(values); });
}

bool host_reverse_too_early(int* values, unsigned blocks, bool descending) {
  return host_cuda::launch(blocks, kThreads, descending, [&] { reverse_too_early(values); });
}

bool host_sum(int* values, unsigned blocks, bool descending) {
  return host_cuda::launch(blocks, 64, descending, [&] { sum(values); });
}

// Half of the threads never come to the barrier.
bool host_divergent() {
  return host_cuda::launch(1, 64, false, [] {
    if (threadIdx.x < 32) __syncthreads();
  });
}

}  // extern "C"
