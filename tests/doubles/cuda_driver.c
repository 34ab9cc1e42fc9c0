/* A test double of NVIDIA's driver library, loaded as libcuda.so: two devices that compute nothing and a time that
 * the test makes pass. It keeps a log of the calls that matter and can be told to fail. Nothing it says is a
 * measurement.
 *
 * A stream is a queue with an end: work put on it ends that much later, and an event is reached when the time has come
 * to where the queue ended as it was recorded. The devices' clocks run from another beginning than the host's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  NOT_READY = 600,
  CAPTURE_UNSUPPORTED = 900,
};

typedef struct { int device; int64_t ends_ns; int capturing; } Stream;
typedef struct { int number, device, destroyed, recorded; int64_t at_ns; } Event;

static int64_t now_ns, tick_ns;
static Stream streams[8];
static Event events[4096];
static int made, destroyed, retained, stuck;
static int contexts[2]; /* their addresses are the contexts */
static void *current;
static char calls[1 << 20];
static size_t logged;

/* The call to fail, with what, and how many of it succeed before. */
#ifndef FAILS
#define FAILS ""
#define WITH 0
#endif
static char fail_name[64] = FAILS;
static int fail_code = WITH, fail_after;

static void note(const char *call, int event, int stream) {
  if (logged + 64 < sizeof calls)
    logged += snprintf(calls + logged, 64, "%s %d %d\n", call, event, stream);
}

static int fails(const char *name) {
  if (strcmp(name, fail_name)) return SUCCESS;
  return fail_after-- > 0 ? SUCCESS : fail_code;
}

#define MAY_FAIL(name) \
  do { int code = fails(name); if (code) return code; } while (0)

/* What the test says. */
void double_pass(int64_t ns) { now_ns += ns; }
/* So much passes before each query is answered. */
void double_tick(int64_t ns) { tick_ns = ns; }
void double_work(int stream, int64_t ns) {
  Stream *at = &streams[stream];
  at->ends_ns = (at->ends_ns > now_ns ? at->ends_ns : now_ns) + ns;
}
void double_place(int stream, int device) { streams[stream].device = device; }
void double_capture(int stream, int status) { streams[stream].capturing = status; }
void double_stick(int on) { stuck = on; }
void double_fail(const char *name, int code, int after) {
  snprintf(fail_name, sizeof fail_name, "%s", name);
  fail_code = code;
  fail_after = after;
}
void *double_stream(int stream) { return &streams[stream]; }
void double_set_current(int device) { current = device < 0 ? NULL : &contexts[device]; }
int double_current(void) { return current ? (int)((int *)current - contexts) : -1; }
const char *double_calls(void) { return calls; }
int double_made(void) { return made; }
int double_destroyed(void) { return destroyed; }
int double_retained(void) { return retained; }

/* The driver's own face. */
int cuInit(unsigned flags) { (void)flags; MAY_FAIL("cuInit"); return SUCCESS; }
int cuDriverGetVersion(int *version) { MAY_FAIL("cuDriverGetVersion"); *version = 13020; return SUCCESS; }
int cuDeviceGetCount(int *count) { MAY_FAIL("cuDeviceGetCount"); *count = 2; return SUCCESS; }
int cuDeviceGet(int *device, int ordinal) {
  MAY_FAIL("cuDeviceGet");
  if (ordinal < 0 || ordinal > 1) return 101;
  *device = ordinal;
  return SUCCESS;
}
int cuDeviceGetName(char *name, int room, int device) {
  MAY_FAIL("cuDeviceGetName");
  snprintf(name, room, "Double %d", device);
  return SUCCESS;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  MAY_FAIL("cuDeviceGetAttribute");
  switch (attribute) {
    case 16: *value = 132; return SUCCESS; /* multiprocessors */
    case 75: *value = 9; return SUCCESS;   /* compute capability */
    case 76: *value = 0; return SUCCESS;
    default: return INVALID_VALUE;
  }
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  MAY_FAIL("cuDeviceTotalMem");
  *bytes = 1 << 30;
  return SUCCESS;
}
int cuDeviceGetPCIBusId(char *id, int room, int device) {
  MAY_FAIL("cuDeviceGetPCIBusId");
  snprintf(id, room, "0000:0%d:00.0", device + 1);
  return SUCCESS;
}
int cuMemGetInfo_v2(size_t *free_bytes, size_t *bytes) {
  MAY_FAIL("cuMemGetInfo");
  if (!current) return INVALID_CONTEXT;
  *free_bytes = 1 << 29;
  *bytes = 1 << 30;
  return SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  MAY_FAIL("cuDevicePrimaryCtxRetain");
  *context = &contexts[device];
  retained++;
  return SUCCESS;
}
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; retained--; return SUCCESS; }
int cuCtxGetCurrent(void **context) { MAY_FAIL("cuCtxGetCurrent"); *context = current; return SUCCESS; }
int cuCtxSetCurrent(void *context) { MAY_FAIL("cuCtxSetCurrent"); current = context; return SUCCESS; }

int cuEventCreate(void **event, unsigned flags) {
  MAY_FAIL("cuEventCreate");
  if (!current) return INVALID_CONTEXT;
  events[made] = (Event){.number = made, .device = double_current()};
  *event = &events[made];
  note("create", made++, flags);
  return SUCCESS;
}
int cuEventRecord(void *handle, void *on) {
  Event *event = handle;
  Stream *stream = on;
  MAY_FAIL("cuEventRecord");
  if (event->destroyed || event->device != stream->device) return INVALID_HANDLE;
  event->at_ns = stream->ends_ns > now_ns ? stream->ends_ns : now_ns;
  event->recorded = 1;
  note("record", event->number, (int)(stream - streams));
  return SUCCESS;
}
/* How the thread that asks behaves while a graph is captured: 0 is global, 2 relaxed. */
static _Thread_local int capture_mode;
int double_capture_mode(void) { return capture_mode; }
int cuThreadExchangeStreamCaptureMode(int *mode) {
  int before = capture_mode;
  MAY_FAIL("cuThreadExchangeStreamCaptureMode");
  note("exchange", *mode, before);
  capture_mode = *mode;
  *mode = before;
  return SUCCESS;
}
/* What a capture does not survive. */
static int spoils_a_capture(void) {
  for (int i = 0; i < 8; i++)
    if (streams[i].capturing && capture_mode != 2) return 1;
  return 0;
}
int cuEventQuery(void *handle) {
  Event *event = handle;
  note("query", event->number, 0);
  now_ns += tick_ns;
  if (spoils_a_capture()) return CAPTURE_UNSUPPORTED;
  MAY_FAIL("cuEventQuery");
  return !stuck && event->at_ns <= now_ns ? SUCCESS : NOT_READY;
}
int cuEventSynchronize(void *handle) {
  note("synchronize", ((Event *)handle)->number, 0);
  return SUCCESS;
}
int cuCtxSynchronize(void) { note("synchronize", -1, 0); return SUCCESS; }
int cuStreamSynchronize(void *stream) { (void)stream; note("synchronize", -1, 1); return SUCCESS; }
/* The name that it has had since CUDA 12.8. */
#ifdef OLD_DRIVER
#define cuEventElapsedTime_v2 cuEventElapsedTime
#endif
int cuEventElapsedTime_v2(float *ms, void *from, void *to) {
  Event *begin = from, *end = to;
  note("elapsed", begin->number, end->number);
  MAY_FAIL("cuEventElapsedTime");
  if (begin->device != end->device || !begin->recorded || !end->recorded) return INVALID_HANDLE;
  if (stuck || begin->at_ns > now_ns || end->at_ns > now_ns) return NOT_READY;
  *ms = (float)((double)(end->at_ns - begin->at_ns) / 1e6);
  return SUCCESS;
}
int cuEventDestroy_v2(void *handle) {
  Event *event = handle;
  if (event->destroyed++) abort();
  note("destroy", event->number, 0);
  destroyed++;
  return SUCCESS;
}
int cuStreamIsCapturing(void *handle, int *status) {
  MAY_FAIL("cuStreamIsCapturing");
  *status = ((Stream *)handle)->capturing;
  return SUCCESS;
}
/* Codes that this driver knows. Of others it says nothing, as a real one does. */
static const struct { int code; const char *name, *text; } known[] = {
  {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
  {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
  {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
  {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
  {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
  {NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
  {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};
static int explain(int code, int by_name, const char **text) {
  *text = NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].code == code) *text = by_name ? known[i].name : known[i].text;
  return *text ? SUCCESS : INVALID_VALUE;
}
int cuGetErrorString(int code, const char **text) { return explain(code, 0, text); }
int cuGetErrorName(int code, const char **text) { return explain(code, 1, text); }
