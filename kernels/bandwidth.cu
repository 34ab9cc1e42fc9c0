// How fast a card's memory is: the copy and the triad of STREAM (McCalpin 1995). Every access is 16 bytes wide, the
// widest that all cards have, and neighbouring threads take neighbouring places. Each thread goes on by the size of the
// grid, so that a grid that just fills the card does all the work, and asks for four places before it waits for the
// first: the memory of a fast card is not kept busy by one access a thread.
//
// Compiled by NVRTC with -DBLOCK_SIZE; needs no header.

using Count = unsigned long long;

constexpr int kAhead = 4;

// Writes to each of `quads` places what `read` gives for it.
template <class Read>
__device__ inline void sweep(float4* __restrict__ to, Count quads, Read read) {
  const Count stride = static_cast<Count>(gridDim.x) * BLOCK_SIZE;
  Count i = static_cast<Count>(blockIdx.x) * BLOCK_SIZE + threadIdx.x;
  for (; i + (kAhead - 1) * stride < quads; i += kAhead * stride) {
    float4 values[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) values[k] = read(i + k * stride);
#pragma unroll
    for (int k = 0; k < kAhead; ++k) to[i + k * stride] = values[k];
  }
  for (; i < quads; i += stride) to[i] = read(i);
}

// to[i] = from[i]: moves 32 bytes for each of `quads` places.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    copy(float4* __restrict__ to, const float4* __restrict__ from, Count quads) {
  sweep(to, quads, [=](Count i) { return from[i]; });
}

// to[i] = added[i] + factor * scaled[i]: moves 48 bytes for each of `quads` places.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    triad(float4* __restrict__ to, const float4* __restrict__ added, const float4* __restrict__ scaled, float factor,
          Count quads) {
  sweep(to, quads, [=](Count i) {
    const float4 a = added[i], s = scaled[i];
    float4 sum;
    sum.x = fmaf(factor, s.x, a.x);
    sum.y = fmaf(factor, s.y, a.y);
    sum.z = fmaf(factor, s.z, a.z);
    sum.w = fmaf(factor, s.w, a.w);
    return sum;
  });
}
