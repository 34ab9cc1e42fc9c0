/* A test double of a driver that is installed further down the loader's path than the one a test works with: a decoy,
 * which refuses whatever it is asked. Nothing it says is a measurement. */
enum { INVALID_HANDLE = 400, NO_DEVICE = 100 };

int cuInit(unsigned flags) { (void)flags; return NO_DEVICE; }
int cuDriverGetVersion(int *version) { *version = 0; return NO_DEVICE; }
int cuEventElapsedTime(float *ms, void *from, void *to) { (void)ms, (void)from, (void)to; return INVALID_HANDLE; }
int cuEventElapsedTime_v2(float *ms, void *from, void *to) { return cuEventElapsedTime(ms, from, to); }
int cuGetErrorString(int code, const char **text) { (void)code; *text = "asked of the decoy"; return 0; }
int cuGetErrorName(int code, const char **text) { return cuGetErrorString(code, text); }
