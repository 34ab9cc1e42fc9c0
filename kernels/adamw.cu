// AdamW's whole update (Loshchilov & Hutter 2019) of many tensors in one launch:
//
//   m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
//   p ← p − lr λ p − lr / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
//
// in f32, whatever type the numbers are kept in; what is kept in bfloat16 is rounded once, as it is written. A block
// takes one chunk of one tensor: BLOCK_SIZE threads, TILE_SIZE elements each. Where tensors lie and what they are divided
// into comes as an argument of the kernel, within the 4 KiB that all cards take, so no table lies in the card's memory.
//
// Compiled by NVRTC with -DBLOCK_SIZE and -DTILE_SIZE, and without contraction (--fmad=false): what is fused says so
// here, and a host that rounds correctly computes the same bits. Needs no header.

// Elements of one access: 16 bytes of f32, 8 of bfloat16.
constexpr int kQuad = 4;
constexpr int kQuads = TILE_SIZE / kQuad;
constexpr unsigned long long kChunk = BLOCK_SIZE * TILE_SIZE;
// The largest number of f32.
constexpr float kLargest = 3.40282347e38f;
// Tensors of one launch; the same in src/device/adamw/batch.rs, as are the two structs.
constexpr int kTensors = 64;

static_assert(TILE_SIZE % kQuad == 0, "a tile is made of quads");
static_assert(BLOCK_SIZE >= kTensors, "each tensor is looked at by a thread of its own");

// The tensors of one launch. A master is the f32 copy of a parameter that is updated in its place.
struct Batch {
  void* params[kTensors];
  const void* grads[kTensors];
  void* exp_avgs[kTensors];
  void* exp_avg_sqs[kTensors];
  void* masters[kTensors];  // f32, where there are any
  float* steps[kTensors];
  unsigned long long numels[kTensors];
  // The first of each tensor's chunks; where there is no further tensor, the number of them all.
  unsigned first_chunks[kTensors + 1];
};

// What the formula takes, computed in f64 before.
struct Numbers {
  float keep1;        // β₁
  float take1;        // 1 − β₁
  float take2;        // 1 − β₂
  float decay;        // lr λ
  float step_size;    // lr / (1 − β₁ᵗ)
  float inverse_root; // 1 / √(1 − β₂ᵗ)
  float eps;          // ε
  float count;        // t
};

static_assert(sizeof(Batch) + sizeof(Numbers) <= 4096, "the arguments of a kernel");

struct Bf16 {
  unsigned short bits;
};

__device__ inline float widened(float value) { return value; }

__device__ inline float widened(Bf16 value) { return __uint_as_float(static_cast<unsigned>(value.bits) << 16); }

__device__ inline void round_to(float value, float& out) { out = value; }

// To nearest, ties to even; every NaN to the quiet one, since rounding could carry its payload away.
__device__ inline void round_to(float value, Bf16& out) {
  const unsigned bits = __float_as_uint(value);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  out.bits = static_cast<unsigned short>(value != value ? 0x7fc0u : rounded);
}

// Four elements in one access.
__device__ inline void load(const float* from, float (&to)[kQuad]) {
  const float4 quad = *reinterpret_cast<const float4*>(from);
  to[0] = quad.x, to[1] = quad.y, to[2] = quad.z, to[3] = quad.w;
}

__device__ inline void load(const Bf16* from, float (&to)[kQuad]) {
  const uint2 pairs = *reinterpret_cast<const uint2*>(from);
  to[0] = __uint_as_float(pairs.x << 16), to[1] = __uint_as_float(pairs.x & 0xffff0000u);
  to[2] = __uint_as_float(pairs.y << 16), to[3] = __uint_as_float(pairs.y & 0xffff0000u);
}

__device__ inline void store(const float (&from)[kQuad], float* to) {
  float4 quad;
  quad.x = from[0], quad.y = from[1], quad.z = from[2], quad.w = from[3];
  *reinterpret_cast<float4*>(to) = quad;
}

__device__ inline unsigned pair(float low, float high) {
  Bf16 first, second;
  round_to(low, first);
  round_to(high, second);
  return first.bits | (static_cast<unsigned>(second.bits) << 16);
}

__device__ inline void store(const float (&from)[kQuad], Bf16* to) {
  uint2 pairs;
  pairs.x = pair(from[0], from[1]), pairs.y = pair(from[2], from[3]);
  *reinterpret_cast<uint2*>(to) = pairs;
}

__device__ inline bool aligned(const float* at) { return reinterpret_cast<unsigned long long>(at) % 16 == 0; }

__device__ inline bool aligned(const Bf16* at) { return reinterpret_cast<unsigned long long>(at) % 8 == 0; }

// keep * old + take * fresh, where keep + take = 1: as a step from whichever is nearer, so that the two factors' own
// rounding does not add up over the steps.
__device__ inline float averaged(float old, float fresh, float keep, float take) {
  return take < 0.5f ? fmaf(take, fresh - old, old) : fmaf(keep, old - fresh, fresh);
}

// (1 - take) * old + take * grad². The factor is taken in before the second multiplication, as libtorch's operators do: the
// square alone may be beyond what f32 holds. What is infinite already stays so; it must not be taken from itself.
__device__ inline float averaged_square(float old, float grad, float take) {
  return fmaf(take * grad, grad, fmaf(-take, fminf(old, kLargest), old));
}

__device__ inline void update(float& param, float grad, float& exp_avg, float& exp_avg_sq, const Numbers& by) {
  exp_avg = averaged(exp_avg, grad, by.keep1, by.take1);
  exp_avg_sq = averaged_square(exp_avg_sq, grad, by.take2);
  const float direction = exp_avg / fmaf(sqrtf(exp_avg_sq), by.inverse_root, by.eps);
  // Decay and step in one, so that the parameter is rounded once.
  param -= fmaf(by.step_size, direction, by.decay * param);
}

// One tensor, as its chunk's block sees it. `Updated` is f32 where there is a master, else the parameter's own type.
template <class Param, class State, class Updated>
struct Part {
  Param* params;
  const Param* grads;
  State* exp_avgs;
  State* exp_avg_sqs;
  Updated* updated;

  __device__ bool aligned_all() const {
    return aligned(params) && aligned(grads) && aligned(exp_avgs) && aligned(exp_avg_sqs) && aligned(updated);
  }

  // Whether the parameters are written beside what is updated.
  __device__ bool copies() const { return static_cast<void*>(params) != static_cast<void*>(updated); }
};

// A chunk that is complete and aligned: everything is asked for before anything is computed.
template <class Param, class State, class Updated>
__device__ inline void whole(const Part<Param, State, Updated>& part, unsigned long long begin, const Numbers& by) {
  float updated[kQuads][kQuad], grads[kQuads][kQuad], exp_avgs[kQuads][kQuad], exp_avg_sqs[kQuads][kQuad];
  begin += threadIdx.x * kQuad;
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    const unsigned long long at = begin + quad * BLOCK_SIZE * kQuad;
    load(part.updated + at, updated[quad]);
    load(part.grads + at, grads[quad]);
    load(part.exp_avgs + at, exp_avgs[quad]);
    load(part.exp_avg_sqs + at, exp_avg_sqs[quad]);
  }
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    const unsigned long long at = begin + quad * BLOCK_SIZE * kQuad;
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      update(updated[quad][i], grads[quad][i], exp_avgs[quad][i], exp_avg_sqs[quad][i], by);
    }
    store(updated[quad], part.updated + at);
    store(exp_avgs[quad], part.exp_avgs + at);
    store(exp_avg_sqs[quad], part.exp_avg_sqs + at);
    if (part.copies()) store(updated[quad], part.params + at);
  }
}

// Any other chunk, from `begin` to `end`, element by element.
template <class Param, class State, class Updated>
__device__ inline void ragged(const Part<Param, State, Updated>& part, unsigned long long begin,
                              unsigned long long end, const Numbers& by) {
#pragma unroll 1
  for (unsigned long long at = begin + threadIdx.x; at < end; at += BLOCK_SIZE) {
    float updated = widened(part.updated[at]);
    float exp_avg = widened(part.exp_avgs[at]), exp_avg_sq = widened(part.exp_avg_sqs[at]);
    update(updated, widened(part.grads[at]), exp_avg, exp_avg_sq, by);
    round_to(updated, part.updated[at]);
    round_to(exp_avg, part.exp_avgs[at]);
    round_to(exp_avg_sq, part.exp_avg_sqs[at]);
    if (part.copies()) round_to(updated, part.params[at]);
  }
}

// The tensor that this block's chunk belongs to. Each thread looks at one; exactly one of them finds it.
__device__ inline int owner(const Batch& batch) {
  __shared__ int found;
  const unsigned tensor = threadIdx.x;
  if (tensor < kTensors && batch.first_chunks[tensor] <= blockIdx.x && blockIdx.x < batch.first_chunks[tensor + 1]) {
    found = static_cast<int>(tensor);
  }
  __syncthreads();
  return found;
}

template <class Param, class State, class Updated>
__device__ inline void adamw(const Batch& batch, void* const (&updated)[kTensors], const Numbers& by) {
  const int tensor = owner(batch);
  const Part<Param, State, Updated> part = {
      static_cast<Param*>(batch.params[tensor]), static_cast<const Param*>(batch.grads[tensor]),
      static_cast<State*>(batch.exp_avgs[tensor]), static_cast<State*>(batch.exp_avg_sqs[tensor]),
      static_cast<Updated*>(updated[tensor])};
  const unsigned chunk = blockIdx.x - batch.first_chunks[tensor];
  // Nobody reads the counter here: the number of the step is an argument.
  if (chunk == 0 && threadIdx.x == 0) *batch.steps[tensor] = by.count;
  const unsigned long long begin = chunk * kChunk, numel = batch.numels[tensor];
  if (begin + kChunk <= numel && part.aligned_all()) {
    whole(part, begin, by);
  } else {
    ragged(part, begin, begin + kChunk < numel ? begin + kChunk : numel, by);
  }
}

#define ADAMW(name, Param, State, Updated, updated)                       \
  extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)                \
      name(const __grid_constant__ Batch batch, const __grid_constant__ Numbers by) { \
    adamw<Param, State, Updated>(batch, batch.updated, by);               \
  }

ADAMW(adamw_f32, float, float, float, params)
ADAMW(adamw_bf16, Bf16, Bf16, Bf16, params)
ADAMW(adamw_bf16_f32_states, Bf16, float, Bf16, params)
ADAMW(adamw_bf16_masters, Bf16, float, float, masters)
