// kernels/bandwidth.cu and kernels/fma.cu as a host library.
#include "host_cuda.h"

#include "../../../kernels/bandwidth.cu"
#include "../../../kernels/fma.cu"

extern "C" {

bool host_copy(unsigned blocks, float4* to, const float4* from, uint64_t quads) {
  return host_cuda::launch(blocks, BLOCK_SIZE, false, [&] { copy(to, from, quads); });
}

bool host_triad(unsigned blocks, float4* to, const float4* added, const float4* scaled, float factor, uint64_t quads) {
  return host_cuda::launch(blocks, BLOCK_SIZE, true, [&] { triad(to, added, scaled, factor, quads); });
}

bool host_fma(unsigned blocks, float* sums, float factor, float summand, int rounds) {
  return host_cuda::launch(blocks, BLOCK_SIZE, false, [&] { fma_peak(sums, factor, summand, rounds); });
}

}  // extern "C"
