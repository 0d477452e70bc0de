/* A result directory as one ZIP archive in memory. */
#ifndef SW_SERVER_ZIP_H
#define SW_SERVER_ZIP_H

#include "server/store.h"

/* malloced bytes, or NULL. Entries in the result's order, all with the same date, so equal results are equal bytes. */
char *sw_result_zip(const struct sw_result *r, size_t *len);

#endif
