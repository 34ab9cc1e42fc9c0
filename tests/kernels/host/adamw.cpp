// kernels/adamw.cu as a host library; the names are those of the kernels.
#include "host_cuda.h"

#include "../../../kernels/adamw.cu"

using Kernel = void (*)(const Batch, const Numbers);

extern "C" {

bool host_adamw(const char* name, unsigned blocks, const Batch* batch, const Numbers* numbers, bool descending) {
  Kernel kernel = nullptr;
  if (!strcmp(name, "adamw_f32")) kernel = adamw_f32;
  if (!strcmp(name, "adamw_bf16")) kernel = adamw_bf16;
  if (!strcmp(name, "adamw_bf16_f32_states")) kernel = adamw_bf16_f32_states;
  if (!strcmp(name, "adamw_bf16_masters")) kernel = adamw_bf16_masters;
  return kernel && host_cuda::launch(blocks, BLOCK_SIZE, descending, [&] { kernel(*batch, *numbers); });
}

size_t host_batch_bytes() { return sizeof(Batch); }
size_t host_numbers_bytes() { return sizeof(Numbers); }

float host_widened(uint16_t bits) { return widened(Bf16{bits}); }

uint16_t host_rounded(float value) {
  Bf16 rounded;
  round_to(value, rounded);
  return rounded.bits;
}

}  // extern "C"
