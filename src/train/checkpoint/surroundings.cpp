#include "surroundings.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <mutex>

namespace stepledger {

namespace {

at::CPUGeneratorImpl* cpu_generator() {
  return at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
}

CpuRandom cpu_random() {
  at::CPUGeneratorImpl* generator = cpu_generator();
  std::lock_guard<std::mutex> lock(generator->mutex_);
  return {generator->engine(), generator->next_float_normal_sample(), generator->next_double_normal_sample()};
}

void set(const CpuRandom& random) {
  at::CPUGeneratorImpl* generator = cpu_generator();
  std::lock_guard<std::mutex> lock(generator->mutex_);
  generator->set_engine(random.engine);
  generator->set_next_float_normal_sample(random.next_float);
  generator->set_next_double_normal_sample(random.next_double);
}

CudaRandom cuda_random(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  std::lock_guard<std::mutex> lock(generator.mutex());
  return {device, generator.get_state()};
}

void set(const CudaRandom& random) {
  at::Generator generator = at::globalContext().defaultGenerator(random.device);
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(random.state);
}

Autocast autocast_on(at::DeviceType device) {
  return {device, at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}

void set(const Autocast& autocast) {
  at::autocast::set_autocast_enabled(autocast.device, autocast.enabled);
  at::autocast::set_autocast_dtype(autocast.device, autocast.dtype);
}

}  // namespace

Surroundings Surroundings::now(const std::vector<at::Device>& devices) {
  std::vector<CudaRandom> cuda;
  for (const at::Device device : devices) cuda.push_back(cuda_random(device));
  return {cpu_random(), std::move(cuda), {autocast_on(at::kCPU), autocast_on(at::kCUDA)},
          at::autocast::is_autocast_cache_enabled()};
}

void Surroundings::restore() const {
  for (const CudaRandom& random : cuda) set(random);
  set(cpu);
  for (const Autocast& one : autocast) set(one);
  at::autocast::set_autocast_cache_enabled(autocast_cache);
}

std::vector<at::Device> cuda_devices(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    const at::Device device = tensor.device();
    const bool known = std::find(devices.begin(), devices.end(), device) != devices.end();
    if (device.is_cuda() && !known) devices.push_back(device);
  }
  return devices;
}

AutocastRegion::AutocastRegion() { at::autocast::increment_nesting(); }

AutocastRegion::~AutocastRegion() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

}  // namespace stepledger
