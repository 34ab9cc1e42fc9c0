/* A test double of an NVTX tool: writes every domain, category, and range of threads to $NVTX_TOOL_LOG.
 * Loaded by the NVTX library through $NVTX_INJECTION64_PATH, as Nsight's own is. */
#include <nvtx3/nvToolsExt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static FILE *tool_log;

static nvtxDomainHandle_t create_domain(const char *name) {
  fprintf(tool_log, "domain %s\n", name);
  return (nvtxDomainHandle_t)strdup(name);
}

static nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const wchar_t *string) {
  (void)domain;
  return (nvtxStringHandle_t)wcsdup(string);
}

static void name_category(nvtxDomainHandle_t domain, uint32_t number, const char *name) {
  fprintf(tool_log, "category %s %u %s\n", (const char *)domain, number, name);
}

/* push DOMAIN NAME CATEGORY COLOUR PAYLOAD, with a dash for what is not set. */
static int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  if (event->messageType == NVTX_MESSAGE_TYPE_REGISTERED)
    fprintf(tool_log, "push %s %ls", (const char *)domain, (const wchar_t *)event->message.registered);
  else
    fprintf(tool_log, "push %s (not-registered)", (const char *)domain);
  fprintf(tool_log, " %u", event->category);
  if (event->colorType == NVTX_COLOR_ARGB)
    fprintf(tool_log, " %08x", event->color);
  else
    fprintf(tool_log, " -");
  if (event->payloadType == NVTX_PAYLOAD_TYPE_INT64)
    fprintf(tool_log, " %lld\n", (long long)event->payload.llValue);
  else
    fprintf(tool_log, " -\n");
  return 0;
}

static int pop(nvtxDomainHandle_t domain) {
  fprintf(tool_log, "pop %s\n", (const char *)domain);
  fflush(tool_log);
  return 0;
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t export_table) {
  const NvtxExportTableCallbacks *callbacks = export_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned int size;
  tool_log = fopen(getenv("NVTX_TOOL_LOG"), "w");
  if (!tool_log || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
  *table[NVTX_CBID_CORE2_DomainRegisterStringW] = (NvtxFunctionPointer)register_string;
  *table[NVTX_CBID_CORE2_DomainNameCategoryA] = (NvtxFunctionPointer)name_category;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
