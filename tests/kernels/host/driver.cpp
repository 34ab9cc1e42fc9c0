// A double of CUDA's driver (libcuda) with one GPU, which runs this project's kernels on the host: what is launched, and
// with which arguments, is what the program launches. Its clock is a fiction: every launch takes one millisecond. Nothing
// that it tells is a measurement.
#include "host_cuda.h"

#include "../../../kernels/adamw.cu"
#include "../../../kernels/bandwidth.cu"
#include "../../../kernels/fma.cu"

#include <stdlib.h>

#include <set>
#include <string>

namespace {

// As in cuda.h.
enum Result { kSuccess = 0, kInvalidValue = 1, kInvalidContext = 201, kUnknownPtx = 222, kNotFound = 500 };
enum Attribute { kMultiprocessors = 16, kThreads = 39, kMajor = 75, kMinor = 76 };

template <class T>
T argument(void** arguments, int place) {
  return *static_cast<T*>(arguments[place]);
}

struct Function {
  const char* name;
  std::function<void(void**)> run;
};

template <class Kernel>
std::function<void(void**)> adamw_by(Kernel kernel) {
  return [=](void** a) { kernel(argument<Batch>(a, 0), argument<Numbers>(a, 1)); };
}

Function functions[] = {
    {"adamw_f32", adamw_by(adamw_f32)},
    {"adamw_bf16", adamw_by(adamw_bf16)},
    {"adamw_bf16_f32_states", adamw_by(adamw_bf16_f32_states)},
    {"adamw_bf16_masters", adamw_by(adamw_bf16_masters)},
    {"copy", [](void** a) { copy(argument<float4*>(a, 0), argument<float4*>(a, 1), argument<Count>(a, 2)); }},
    {"triad",
     [](void** a) {
       triad(argument<float4*>(a, 0), argument<float4*>(a, 1), argument<float4*>(a, 2), argument<float>(a, 3),
             argument<Count>(a, 4));
     }},
    // Of many rounds a thousandth, for which a host has the time.
    {"fma_peak",
     [](void** a) {
       const int rounds = argument<int>(a, 3);
       fma_peak(argument<float*>(a, 0), argument<float>(a, 1), argument<float>(a, 2), rounds < 1024 ? rounds : rounds / 1024);
     }},
};

int the_context, other_context;
void* current = &other_context;
int retained = 0, launches = 0;
void* last_stream = nullptr;
std::set<void*> live;  // modules, events, memory

bool knows_ptx = true, spoils = false;
int refusal = 0;

// An object file ends with the table of its sections (ELF's header says where that is).
size_t object_bytes(const char* image) {
  uint64_t at;
  uint16_t each, count;
  memcpy(&at, image + 0x28, sizeof at), memcpy(&each, image + 0x3a, sizeof each), memcpy(&count, image + 0x3c, sizeof count);
  return at + uint64_t(each) * count;
}

struct Event {
  int launches = -1;
};

// What is made in no context, or in another one than the GPU's, does not exist there.
template <class Make>
Result made(Make make) {
  if (current != &the_context) return kInvalidContext;
  live.insert(make());
  return kSuccess;
}

Result ended(void* what) { return live.erase(what) ? kSuccess : kInvalidValue; }

}  // namespace

extern "C" {

Result cuInit(unsigned) { return kSuccess; }
// NVRTC asks the driver that it finds for this, and calls it without a look.
Result cuGetExportTable(const void** table, const void*) { return *table = nullptr, kNotFound; }
Result cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? kSuccess : kInvalidValue; }

Result cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case kMultiprocessors: return *value = 1, kSuccess;
    case kThreads: return *value = 512, kSuccess;
    case kMajor: return *value = 9, kSuccess;
    case kMinor: return *value = 0, kSuccess;
  }
  return kInvalidValue;
}

Result cuDevicePrimaryCtxRetain(void** context, int) { return ++retained, *context = &the_context, kSuccess; }
Result cuDevicePrimaryCtxRelease_v2(int) { return --retained, kSuccess; }
Result cuCtxGetCurrent(void** context) { return *context = current, kSuccess; }
Result cuCtxSetCurrent(void* context) { return current = context, kSuccess; }

int cuModuleLoadData(void** module, const char* image) {
  if (refusal) return refusal;
  const bool code = !strncmp(image, "\177ELF", 4);
  if (!code && !knows_ptx) return kUnknownPtx;
  return made([&] { return *module = new std::string(image, code ? object_bytes(image) : strlen(image)); });
}

Result cuModuleGetFunction(Function** function, void* module, const char* name) {
  if (!live.count(module)) return kInvalidValue;
  const std::string& image = *static_cast<std::string*>(module);
  const std::string in_ptx = std::string(".entry ") + name + "(", in_code = std::string(".text.") + name + '\0';
  if (image.find(in_ptx) == std::string::npos && image.find(in_code) == std::string::npos) return kNotFound;
  for (Function& known : functions) {
    if (!strcmp(known.name, name)) return *function = &known, kSuccess;
  }
  return kNotFound;
}

Result cuModuleUnload(void* module) { return ended(module); }

Result cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                      unsigned threads_z, unsigned shared, void* stream, void** arguments, void** extra) {
  if (current != &the_context) return kInvalidContext;
  const bool flat = y == 1 && z == 1 && threads_y == 1 && threads_z == 1 && shared == 0 && !extra;
  if (!flat || x == 0 || threads != BLOCK_SIZE) return kInvalidValue;
  ++launches;
  last_stream = stream;
  return host_cuda::launch(x, threads, false, [&] { function->run(arguments); }) ? kSuccess : kInvalidValue;
}

Result cuMemAlloc_v2(void** address, size_t bytes) {
  return made([&] { return *address = aligned_alloc(256, (bytes + 255) / 256 * 256); });
}

Result cuMemsetD8_v2(void* address, unsigned char value, size_t bytes) {
  return live.count(address) ? (memset(address, value, bytes), kSuccess) : kInvalidValue;
}

Result cuMemcpyHtoD_v2(void* to, const void* from, size_t bytes) { return memcpy(to, from, bytes), kSuccess; }

Result cuMemcpyDtoH_v2(void* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
  if (spoils && bytes) static_cast<char*>(to)[bytes - 1] ^= 1;
  return kSuccess;
}

Result cuMemFree_v2(void* address) { return free(address), ended(address); }

Result cuEventCreate(void** event, unsigned) {
  return made([&] { return *event = new Event; });
}

Result cuEventRecord(Event* event, void*) {
  if (current != &the_context || !live.count(event)) return kInvalidContext;
  return event->launches = launches, kSuccess;
}

Result cuEventSynchronize(Event* event) { return event->launches < 0 ? kInvalidValue : kSuccess; }

Result cuEventElapsedTime(float* ms, Event* begin, Event* end) {
  return *ms = static_cast<float>(end->launches - begin->launches), kSuccess;
}

Result cuEventElapsedTime_v2(float* ms, Event* begin, Event* end) { return cuEventElapsedTime(ms, begin, end); }
Result cuEventDestroy_v2(void* event) { return ended(event); }
Result explained(int code, const char* words, const char** text) {
  *text = code == refusal ? nullptr : words;
  return *text ? kSuccess : kInvalidValue;
}
Result cuGetErrorString(int code, const char** text) { return explained(code, "refused by the double", text); }
Result cuGetErrorName(int code, const char** text) { return explained(code, "CUDA_ERROR", text); }

// For the tests: from now on it knows no PTX, or does; what is read back is wrong in a bit, or is not; it loads no kernel,
// with a code of its own that it does not explain, or 0 for that it does.
void double_refuses(int code) { refusal = code; }
void double_knows_ptx(bool yes) { knows_ptx = yes; }
void double_spoils(bool yes) { spoils = yes; }

// For the tests: whether nothing is left, and this thread has the context that it had.
bool double_is_clean() { return live.empty() && retained == 0 && current == &other_context; }
bool double_has_its_context_back() { return current == &other_context; }
int double_launches() { return launches; }
void* double_last_stream() { return last_stream; }

}  // extern "C"
