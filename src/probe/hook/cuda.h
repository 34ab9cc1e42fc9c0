// The part of the hook that watches CUDA's caching allocator.
#pragma once

#include <cstdint>

namespace stepledger {

// The block that begins at this address of the watched device; 0 for none.
uint64_t cuda_block_at(const void* address);

// Brings the account up to the allocator's own total before a marker, and gives that total.
int64_t cuda_total();

}  // namespace stepledger
