/* docs/openapi.yaml, taken into the program as it is; the build names the file. */
#include "server/server.h"

__asm__(".section .rodata\n"
        ".globl sw_openapi_text\n.globl sw_openapi_end\n"
        "sw_openapi_text:\n.incbin \"" SW_OPENAPI_FILE "\"\n"
        "sw_openapi_end:\n.byte 0\n.previous\n");

extern const char sw_openapi_text[], sw_openapi_end[];

enum MHD_Result sw_get_openapi(struct sw_request *q)
{
  return sw_send_text(q, 200, "application/yaml", sw_openapi_text, (size_t)(sw_openapi_end - sw_openapi_text));
}
