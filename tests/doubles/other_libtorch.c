/* A test double of one function of libtorch's, loaded before it through LD_PRELOAD: says that it is libtorch 2.10.0. */
#include <stdint.h>

uint64_t aoti_torch_abi_version(void) { return (uint64_t)2 << 56 | (uint64_t)10 << 48; }
