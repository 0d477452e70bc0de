/* Looking back through the graph from a value, shared by the files that find operations again (pattern.c,
 * pattern_attention.c) and operands as they were (operand.c). */
#ifndef SW_LOWER_PATTERN_H
#define SW_LOWER_PATTERN_H

#include "compiler/lower/lower.h"

/* Nobody writes into what value looks at between its maker and `node`. */
bool lw_unchanged_until(const struct lower *l, int value, int node);
/* The node that makes a value, or NULL: an input, no value (-1), or one that was written into before the node at work, so that
 * its maker no longer says what it holds. */
const struct sw_node *lw_maker(const struct lower *l, int value);
bool lw_is(const struct sw_node *n, const char *target); /* n may be NULL */
bool lw_is_one_of(const struct sw_node *n, const char *const *targets);
/* Value of argument k, or -1. */
int lw_arg_value(const struct sw_node *n, int k);
/* Argument k when it is a number, else NULL; and which number. */
const struct sw_arg *lw_number_at(const struct sw_node *n, int k);
double lw_number_of(const struct sw_arg *a);
/* Overloads, ended by NULL: new sizes for the same elements, and whatever keeps all elements in order. */
extern const char *const lw_views[], *const lw_reshapes[];
/* Behind a cast from fp16 to float32. */
int lw_behind_cast(const struct lower *l, int value);
bool lw_swaps_last_two(const struct lower *l, const struct sw_node *n);
/* A 0-d or full tensor of that number. */
bool lw_is_constant_number(const struct lower *l, int value, double x);

/* pattern_attention.c: from the node of the second product. */
void lw_match_attention(struct lower *l, int node);

#endif
