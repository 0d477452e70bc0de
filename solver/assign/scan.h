/* JSON read in place: one pass proves the syntax, then values are visited by pointers into the text, without a tree
 * (which would take ten times the text: a problem of a million variables is 110 MB).
 *
 * Everything but sw_scan expects a pointer that sw_scan's text contains, at the first character of a value. */
#ifndef SW_SOLVER_ASSIGN_SCAN_H
#define SW_SOLVER_ASSIGN_SCAN_H

#include "base/arena.h"

#include <stdint.h>

enum { SW_SCAN_MAX_DEPTH = 64 };

/* The first value of a document that is well-formed JSON in UTF-8; else NULL. */
const char *sw_scan(const char *text, size_t len);

/* Past the value, and past blanks. */
const char *sw_scan_skip(const char *s);

/* First element of a list or first key of an object, NULL when empty; the next one, NULL behind the last. */
const char *sw_scan_first(const char *s);
const char *sw_scan_next(const char *s);
/* The value of a key. */
const char *sw_scan_value(const char *key);

/* Number of elements of a list. */
size_t sw_scan_count(const char *s);

/* An integer that fits; false for anything else, reals included. */
bool sw_scan_int(const char *s, int64_t *out);
bool sw_scan_is(const char *s, const char *text); /* a string of just these characters */
/* The string's text, decoded. Code point 0 becomes U+FFFD. */
const char *sw_scan_text(struct sw_arena *a, const char *s);

#endif
