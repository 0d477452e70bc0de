/* The functions that the table of operations names, by file, and the numbers that tell their variants apart. */
#ifndef SW_LOWER_FAMILIES_H
#define SW_LOWER_FAMILIES_H

#include "compiler/lower/lower.h"

/* pointwise.c */
enum {
  LW_SQUARE, LW_CEIL, LW_SILU, LW_MISH, LW_HARDSIGMOID, LW_HARDSWISH, LW_LOG_SIGMOID, LW_SIGN, LW_ISNAN, LW_ISINF,
  LW_GLU, LW_ELU, LW_SELU, LW_CELU, LW_LEAKY_RELU, LW_PRELU, LW_CLAMP, LW_HARDTANH, LW_RELU6,
};
lw_fn lw_op_unary, lw_op_formula, lw_op_softplus, lw_op_elu, lw_op_leaky_relu, lw_op_clamp, lw_op_pow, lw_op_binary,
    lw_op_rsub, lw_op_div_mode, lw_op_compare, lw_op_logic, lw_op_not, lw_op_where, lw_op_masked_fill, lw_op_addcmul,
    lw_op_lerp;
struct tensor lw_softplus(struct lower *l, struct tensor x, double beta, double threshold);
/* An argument, tensor or number, as operand of an op that computes in dtype; constants are converted here. */
struct tensor lw_argument(struct lower *l, const struct sw_arg *a, enum sw_dtype dtype);

/* views.c */
lw_fn lw_op_reshape, lw_op_expand, lw_op_alias, lw_op_permute, lw_op_transpose, lw_op_reverse_dims, lw_op_movedim,
    lw_op_slice, lw_op_narrow, lw_op_select, lw_op_split, lw_op_diagonal, lw_op_unfold, lw_op_as_strided;

/* reduce.c */
enum { LW_VAR, LW_STD, LW_VAR_MEAN, LW_STD_MEAN };
lw_fn lw_op_reduce, lw_op_reduce_all, lw_op_max_dim, lw_op_aminmax, lw_op_any, lw_op_moments, lw_op_norm,
    lw_op_logsumexp, lw_op_topk, lw_op_prod;
/* Bit mask of a list of dims; all of them when the list is absent or empty. */
uint32_t lw_dims(struct lower *l, const char *name, int rank);

/* matmul.c */
lw_fn lw_op_matmul, lw_op_linear, lw_op_addmm, lw_op_dot, lw_op_outer, lw_op_scaled_mm;

/* einsum.c */
lw_fn lw_op_einsum;

/* complex.c */
lw_fn lw_op_view_as_complex, lw_op_view_as_real, lw_op_polar;

/* norm.c */
lw_fn lw_op_softmax, lw_op_log_softmax, lw_op_layer_norm, lw_op_native_layer_norm, lw_op_rms_norm, lw_op_batch_norm,
    lw_op_group_norm;

/* attention.c */
lw_fn lw_op_sdpa;

/* move.c */
lw_fn lw_op_clone, lw_op_contiguous, lw_op_cast, lw_op_type_as, lw_op_copy, lw_op_full, lw_op_cat,
    lw_op_pad, lw_op_slice_scatter, lw_op_select_scatter, lw_op_repeat, lw_op_repeat_interleave, lw_op_roll, lw_op_fill_tensor, lw_op_pixel_shuffle, lw_op_nothing,
    lw_op_dropout, lw_op_refuse;
/* The tensor that a functional write starts from: the old one's own storage or a copy. */
struct tensor lw_writable(struct lower *l, const struct sw_arg *a);

/* index.c */
lw_fn lw_op_embedding, lw_op_index, lw_op_index_select, lw_op_index_put, lw_op_index_copy, lw_op_flip;

/* convolution.c */
lw_fn lw_op_convolution, lw_op_avg_pool, lw_op_adaptive_avg_pool, lw_op_max_pool;

#endif
