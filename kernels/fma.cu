// How fast a card computes in f32: nothing but fused multiply-adds, on registers. One that waits for the one before it
// would measure a latency, so every thread works on CHAINS values that know nothing of each other: there is always
// another one to issue.
//
// Compiled by NVRTC with -DBLOCK_SIZE and -DCHAINS; needs no header.

// Applies x → factor * x + summand `rounds` times to CHAINS values of each thread, which begin at the thread's number in
// its block, plus 0, 1, 2 …; sums[thread of the grid] is the sum of what they come to. That makes
// 2 * CHAINS * rounds floating-point operations a thread, beside the sum.
extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    fma_peak(float* __restrict__ sums, float factor, float summand, int rounds) {
  float values[CHAINS];
#pragma unroll
  for (int chain = 0; chain < CHAINS; ++chain) values[chain] = static_cast<float>(threadIdx.x + chain);
  // Unrolled, so that counting the rounds is next to nothing.
#pragma unroll 8
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int chain = 0; chain < CHAINS; ++chain) values[chain] = fmaf(factor, values[chain], summand);
  }
  float sum = 0;
#pragma unroll
  for (int chain = 0; chain < CHAINS; ++chain) sum += values[chain];
  // Written in any case: a result that nobody reads is not computed.
  sums[static_cast<unsigned long long>(blockIdx.x) * BLOCK_SIZE + threadIdx.x] = sum;
}
