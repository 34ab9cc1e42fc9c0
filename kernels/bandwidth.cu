// How fast a card's memory is: the copy and the triad of STREAM (McCalpin 1995). Every access is 16 bytes wide, the
// widest there is, neighbouring threads take neighbouring places, and each thread goes on by the size of the grid, so
// that a grid that just fills the card does all the work.
//
// Compiled by NVRTC with -DBLOCK_SIZE; needs no header.

// to[i] = from[i]: moves 32 bytes for each of `quads` places.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    copy(float4* __restrict__ to, const float4* __restrict__ from, unsigned long long quads) {
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * BLOCK_SIZE;
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * BLOCK_SIZE + threadIdx.x;
  for (; i < quads; i += stride) to[i] = from[i];
}

// to[i] = added[i] + factor * scaled[i]: moves 48 bytes for each of `quads` places.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    triad(float4* __restrict__ to, const float4* __restrict__ added, const float4* __restrict__ scaled, float factor,
          unsigned long long quads) {
  const unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * BLOCK_SIZE;
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * BLOCK_SIZE + threadIdx.x;
  for (; i < quads; i += stride) {
    const float4 a = added[i], s = scaled[i];
    float4 sum;
    sum.x = fmaf(factor, s.x, a.x);
    sum.y = fmaf(factor, s.y, a.y);
    sum.z = fmaf(factor, s.z, a.z);
    sum.w = fmaf(factor, s.w, a.w);
    to[i] = sum;
  }
}
