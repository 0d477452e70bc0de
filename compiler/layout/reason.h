/* Why a layout is left out, why an op can't write into one, why it can't read an operand through one: one closed list. Code
 * knows the numbers below; words are made where somebody reads them, in conversions, refusals and dropped.json. */
#ifndef SW_LAYOUT_REASON_H
#define SW_LAYOUT_REASON_H

#include "compiler/layout/stick.h"

/* X(id, name in dropped.json, words; reason.c puts the numbers to some). docs/layouts.md has the same list. */
#define SW_REASONS(X)                                                                                                     \
  X(NONE, "none", "nothing is in the way")                                                                                \
  /* of an access, reading or writing */                                                                                  \
  X(NO_FORM, "no-form", "the loops can't be taken apart into its dims")                                                   \
  X(MIXED, "not-one-loop", "its stick would not be one loop, lane by lane")                                                           \
  X(INSIDE, "inside-stick", "starts inside a stick")                                                                      \
  X(HALF_PAIR, "half-pair", "its rows begin or end in half a pair of float32 sticks")                                     \
  X(ROWS_OUTERMOST, "rows-outermost", "rows are gathered and scattered along the outermost dim")                          \
  /* of an operand and a result */                                                                                        \
  X(OTHER_DIM, "other-dim", "its stick is on another dim")                                                                \
  X(MATRIX_DIM, "matrix-dim", "its stick is on another dim than the matrix unit takes")                                   \
  X(GATHER, "gather-sticks", "No mechanism to gather elements from multiple sticks into single stick")                    \
  X(SCATTER, "scatter-sticks", "No mechanism to scatter elements from one stick to multiple sticks")                      \
  X(CUT, "cut-stick", "a dim of it ends inside a stick of another tensor")                                                \
  X(PRODUCT, "product-along-stick", "a product does not run along the stick")                                             \
  X(FLOAT32_SUM, "float32-partial", "a float32 reduction along a stick that is not full")                                 \
  X(SEARCH, "search-partial", "a search along a stick that is not full: what is behind its end would be found")           \
  X(LANES_SUM, "lanes-partial",                                                                                           \
    "a reduction along a stick that is not full, with its lanes in another order: no mask fits them")                     \
  X(K_BEST_ALONE, "k-best-alone", "no loop is on a stick, and in the files the dim of the k best would be")               \
  X(LANES, "lane-order", "its lanes are in another order (element arrangement)")                                          \
  X(FP8_OPERAND, "fp8-operand",                                                                                           \
    "the matrix unit takes an fp8 operand here only as the device's qfp8wt makes it, in sticks of 2 x 64 and K in whole " \
    "128; a loaded one is in sticks of 128")                                                                              \
  X(STICK_SIZES, "stick-sizes", "sticks of different numbers of elements")                                                \
  X(ROWS_STICK, "rows-stick", "rows are moved in whole sticks: their stick must be the result's")                         \
  /* of a result */                                                                                                       \
  X(MATRIX_RESULT, "matrix-result", "the matrix unit writes its columns (N) along the stick")                             \
  X(ONE_ELEMENT, "one-element", "the op leaves one element a stick")                                                      \
  X(K_BEST_DIM, "k-best-dim", "the dim of the k best is never the stick")                                                 \
  X(SHARED_STICK, "shared-stick", "the write ends inside a stick that holds other elements too")                          \
  X(ROUNDED_ROWS, "rounded-rows", "row numbers would be read behind the last, up to a whole stick")                       \
  /* while candidates are made */                                                                                         \
  X(PARTIAL, "partial-stick", "the dim is not a number of whole sticks")                                                  \
  X(FOLLOW, "operand-unlike", "an operand can't be laid out likewise")                                                    \
  X(NOT_OFFERED, "not-offered", "no rule for this op offers it in this profile")                                          \
  X(NO_LAYOUT, "no-layout", "it has no layout: more than six dims, or more elements than can be counted")                 \
  X(TOO_MANY, "too-many", "a storage has at most 32 candidates")

enum sw_reason {
#define X(id, name, words) SW_WHY_##id,
  SW_REASONS(X)
#undef X
  SW_N_REASONS
};

const char *sw_layout__reason_name(enum sw_reason r);
const char *sw_layout__reason_words(enum sw_reason r);

/* "floor(d1/128)", "32*d0 + Mod(d2,32)": a coordinate over the op's loops d0, d1, .. */
const char *sw_layout__coord_text(struct sw_arena *a, const struct sw_coord *c);

/* What is wrong with the stick of an access by itself; NONE: it is clean. */
enum sw_reason sw_layout__stick_reason(const struct sw_seen *seen);
/* The same in words: "its stick would be floor(d1/128) (d1 < 8192): it stays on each lane for 128 steps". */
const char *sw_layout__stick_words(struct sw_arena *a, enum sw_reason r, const struct sw_op *op, const struct sw_seen *seen,
                                   bool is_written);

#endif
