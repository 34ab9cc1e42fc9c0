/* A test double of NVIDIA's management library, loaded as libnvidia-ml.so.1. It knows one device, at the place on the
 * bus that the driver's double gives to its first one. Nothing it says is a measurement. */
#include <stdio.h>
#include <string.h>

static int open_now;

const char *nvmlErrorString(int code) { return code == 6 ? "Not Found" : NULL; }
int nvmlInit_v2(void) { open_now = 1; return 0; }
int nvmlShutdown(void) { open_now = 0; return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned room) {
  snprintf(text, room, "999.1");
  return open_now ? 0 : 1;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device) {
  *device = &open_now;
  return !open_now ? 1 : strcmp(id, "0000:01:00.0") ? 6 : 0;
}
int nvmlDeviceGetClockInfo(void *device, unsigned which, unsigned *mhz) {
  (void)device;
  *mhz = which == 1 ? 1000 : 2000;
  return open_now && (which == 1 || which == 2) ? 0 : 1;
}
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
  (void)device;
  *milliwatts = 75500;
  return open_now ? 0 : 1;
}
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts) {
  (void)device, (void)milliwatts;
  return 3; /* not supported */
}
