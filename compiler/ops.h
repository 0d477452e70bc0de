/* The tables that lowering works by: ATen overloads, and device operations with the dtypes they take. */
#ifndef SW_OPS_H
#define SW_OPS_H

#include "base/buf.h"

void sw_ops_json(struct sw_buf *out);
void sw_ops_markdown(struct sw_buf *out);
void sw_ops_text(struct sw_buf *out);

#endif
