/* Expressions over the symbols of dynamic shapes, in sympy's two notations: srepr as in tensor metadata,
 * "Mul(Integer(8), Symbol('s39', integer=True))", and the ordinary one of range constraints, "8*s39"
 * (reference: pt2.md section 10). Both are parsed by one grammar: srepr is nothing but calls. */
#ifndef SW_EXPR_H
#define SW_EXPR_H

#include "base/buf.h"

struct sw_expr;

/* NULL when the text is no expression. */
const struct sw_expr *sw_expr_parse(struct sw_arena *a, const char *text);

/* As sympy prints it: "s33 - 1", "((s33 + s6)//2)". */
const char *sw_expr_text(struct sw_arena *a, const struct sw_expr *e);

/* The name when the expression is one symbol, else NULL. */
const char *sw_expr_symbol(const struct sw_expr *e);

/* Calls fn with every symbol in the expression, from left to right, repeated ones again. */
void sw_expr_symbols(const struct sw_expr *e, void (*fn)(void *ctx, const char *symbol), void *ctx);

/* Value of a symbol; false when it is not known. */
typedef bool sw_expr_lookup(void *ctx, const char *symbol, int64_t *value);

/* Value in integers (a truth is 0 or 1). False when a symbol is unknown, a result leaves 63 bits, or the expression
 * needs something else than integers. */
bool sw_expr_eval(const struct sw_expr *e, sw_expr_lookup *lookup, void *ctx, int64_t *value);

#endif
