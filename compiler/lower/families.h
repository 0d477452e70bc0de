/* The functions that the table of operations names, by file, and the numbers that tell their variants apart. */
#ifndef SW_LOWER_FAMILIES_H
#define SW_LOWER_FAMILIES_H

#include "compiler/lower/lower.h"

/* choice.c */
/* src into dst, one lane of the last dim of a whole tensor (profile best); false: it is none. */
bool lw_write_lane(struct lower *l, struct tensor dst, struct tensor src);
lw_fn lw_op_logic, lw_op_not, lw_op_where, lw_op_masked_fill, lw_op_triangle;

/* pointwise.c */
enum {
  LW_SQUARE, LW_CEIL, LW_SILU, LW_MISH, LW_HARDSIGMOID, LW_HARDSWISH, LW_LOG_SIGMOID, LW_SIGN, LW_ISNAN, LW_ISINF,
  LW_GLU, LW_ELU, LW_SELU, LW_CELU, LW_LEAKY_RELU, LW_PRELU, LW_CLAMP, LW_HARDTANH, LW_RELU6,
};
lw_fn lw_op_unary, lw_op_formula, lw_op_softplus, lw_op_elu, lw_op_leaky_relu, lw_op_clamp, lw_op_pow, lw_op_binary,
    lw_op_rsub, lw_op_div_mode, lw_op_compare, lw_op_addcmul, lw_op_lerp;
/* A scalar as a whole tensor in profile torch-spyre, which spreads numbers over a tensor first. */
struct tensor lw_spread(struct lower *l, struct tensor scalar, struct tensor like);
struct tensor lw_softplus(struct lower *l, struct tensor x, double beta, double threshold);
/* An argument, tensor or number, as operand of an op that computes in dtype; constants are converted here. */
struct tensor lw_argument(struct lower *l, const struct sw_arg *a, enum sw_dtype dtype);

/* formulas.c */
enum {
  LW_HARDSHRINK, LW_SOFTSHRINK, LW_THRESHOLD, LW_RRELU, LW_LOGIT, LW_NAN_TO_NUM, LW_DEG2RAD, LW_RAD2DEG, LW_LOGADDEXP, LW_HEAVISIDE,
  LW_ISFINITE, LW_ISPOSINF, LW_ISNEGINF,
};
lw_fn lw_op_more, lw_op_question;

/* arrange.c */
enum { LW_HSTACK, LW_VSTACK, LW_DSTACK, LW_COLUMN_STACK };
enum { LW_DIAG, LW_DIAGFLAT, LW_DIAG_EMBED };
lw_fn lw_op_turn, lw_op_stacked, lw_op_meshgrid, lw_op_broadcast, lw_op_flip_dim, lw_op_rot90, lw_op_diagonal, lw_op_diag, lw_op_trace, lw_op_block_diag,
    lw_op_channel_shuffle, lw_op_pixel_unshuffle;

/* views.c */
enum { LW_SPLIT, LW_UNBIND, LW_HSPLIT, LW_VSPLIT, LW_DSPLIT };
lw_fn lw_op_reshape, lw_op_expand, lw_op_alias, lw_op_permute, lw_op_transpose, lw_op_reverse_dims, lw_op_movedim,
    lw_op_slice, lw_op_narrow, lw_op_select, lw_op_split, lw_op_unfold, lw_op_as_strided;

/* reduce.c */
enum { LW_VAR, LW_STD, LW_VAR_MEAN, LW_STD_MEAN };
lw_fn lw_op_reduce, lw_op_reduce_all, lw_op_max_dim, lw_op_aminmax, lw_op_any, lw_op_moments,
    lw_op_logsumexp, lw_op_topk, lw_op_prod;
/* In float32 a host step, else log(sum(exp(x - m))) + m. */
struct tensor lw_logsumexp(struct lower *l, struct tensor x, uint32_t dims, bool keepdim);
/* Bit mask of a list of dims; all of them when the list is absent or empty. */
uint32_t lw_dims(struct lower *l, const char *name, int rank);

/* matmul.c */
lw_fn lw_op_matmul, lw_op_linear, lw_op_addmm, lw_op_dot, lw_op_outer, lw_op_scaled_mm;

/* einsum.c */
lw_fn lw_op_einsum;

/* complex.c */
lw_fn lw_op_view_as_complex, lw_op_view_as_real, lw_op_polar;

/* norm.c */
enum { LW_GROUPS, LW_INSTANCES, LW_BATCH };
lw_fn lw_op_softmax, lw_op_safe_softmax, lw_op_log_softmax, lw_op_layer_norm, lw_op_rms_norm, lw_op_batch_norm, lw_op_group_norm;

/* attention.c */
lw_fn lw_op_sdpa;

/* move.c */
lw_fn lw_op_clone, lw_op_contiguous, lw_op_cast, lw_op_type_as, lw_op_copy, lw_op_full, lw_op_cat,
    lw_op_pad, lw_op_slice_scatter, lw_op_select_scatter, lw_op_repeat, lw_op_repeat_interleave, lw_op_roll, lw_op_fill_tensor, lw_op_pixel_shuffle, lw_op_nothing,
    lw_op_dropout, lw_op_refuse;
/* One copy per piece into its slice of `out`. Empty 1-d pieces count for nothing, as in PyTorch. */
struct tensor lw_join(struct lower *l, int n, const struct tensor *piece, int dim, struct tensor out);
/* The tensor that a functional write starts from: the old one's own storage or a copy. */
struct tensor lw_writable(struct lower *l, const struct sw_arg *a);

/* index.c */
struct tensor lw_flip(struct lower *l, struct tensor x, int dim);
/* Rows of dim `dim` by numbers that are known: a view, copies of slices, or a look-up. */
struct tensor lw_known_rows(struct lower *l, struct tensor x, int dim, int64_t n, const int64_t *row);
lw_fn lw_op_embedding, lw_op_index, lw_op_index_select, lw_op_index_put, lw_op_index_copy, lw_op_flip;

/* distance.c */
enum {
  LW_LOSS_SQUARE, LW_LOSS_ABS, LW_LOSS_SMOOTH, LW_LOSS_HUBER, LW_LOSS_BCE, LW_LOSS_BCE_LOGITS, LW_LOSS_KL, LW_LOSS_SOFT_MARGIN,
};
lw_fn lw_op_norm, lw_op_dist, lw_op_pairwise_distance, lw_op_cdist, lw_op_cosine_similarity, lw_op_weight_norm,
    lw_op_loss;

/* product.c */
lw_fn lw_op_tensordot, lw_op_inner, lw_op_chain, lw_op_add_product, lw_op_bilinear, lw_op_kron, lw_op_cross, lw_op_vecdot,
    lw_op_trilinear;

/* recurrent.c */
enum { LW_LSTM, LW_GRU, LW_RNN_TANH, LW_RNN_RELU };
lw_fn lw_op_recurrent, lw_op_recurrent_cell;

/* convolution.c */
lw_fn lw_op_convolution;

/* pool.c */
lw_fn lw_op_avg_pool, lw_op_adaptive_avg_pool, lw_op_max_pool, lw_op_adaptive_max_pool, lw_op_upsample;

#endif
