// What a segment's first run had around it and its recomputation must have again: the state of the random
// generators, and autocast.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <vector>

namespace stepledger {

// Not the generators' own state tensors for the CPU: those would be blocks of the allocator under observation,
// alive as long as the graph.
struct CpuRandom {
  at::mt19937 engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};

struct CudaRandom {
  at::Device device;
  at::Tensor state;
};

struct Autocast {
  at::DeviceType device;
  bool enabled;
  at::ScalarType dtype;
};

struct Surroundings {
  CpuRandom cpu;
  std::vector<CudaRandom> cuda;
  std::array<Autocast, 2> autocast;
  bool autocast_cache;

  // As they are now on this thread; of the CUDA generators, those of these devices.
  static Surroundings now(const std::vector<at::Device>& devices);
  void restore() const;
};

// The CUDA devices that these lie on, each once.
std::vector<at::Device> cuda_devices(const std::vector<at::Tensor>& tensors);

// A region of autocast's nesting: copies of weights made inside go at its end, unless it lies in another one.
struct AutocastRegion {
  AutocastRegion();
  ~AutocastRegion();
};

}  // namespace stepledger
