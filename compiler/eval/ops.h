/* The functions behind the table of overloads, and what they tell one another. Inside compiler/eval only. */
#ifndef SW_EVAL_OPS_H
#define SW_EVAL_OPS_H

#include "compiler/eval/call.h"
#include "compiler/eval/kernels.h"

/* Numbers in the column `what` of the table. */
enum sw_reduction {
  SW_R_SUM,
  SW_R_PROD,
  SW_R_MEAN,
  SW_R_AMAX,
  SW_R_AMIN,
  SW_R_ANY,
  SW_R_ALL,
  SW_R_NORM,
  SW_R_LOGSUMEXP,
  SW_R_VAR,
  SW_R_STD,
};
enum sw_pick { SW_PICK_MAX, SW_PICK_MIN, SW_PICK_MEDIAN, SW_PICK_MODE, SW_PICK_KTH };
enum sw_scan {
  SW_SCAN_SOFTMAX,
  SW_SCAN_SAFE_SOFTMAX,
  SW_SCAN_LOG_SOFTMAX,
  SW_SCAN_CUMSUM,
  SW_SCAN_CUMPROD,
  SW_SCAN_LOGCUMSUMEXP,
  SW_SCAN_CUMMAX,
  SW_SCAN_CUMMIN,
};
enum sw_loss {
  SW_LOSS_SQUARE,
  SW_LOSS_ABS,
  SW_LOSS_SMOOTH,
  SW_LOSS_HUBER,
  SW_LOSS_BCE,
  SW_LOSS_BCE_LOGITS,
  SW_LOSS_KL,
  SW_LOSS_SOFT_MARGIN,
};
enum sw_recurrent { SW_LSTM, SW_GRU, SW_RNN_TANH, SW_RNN_RELU };
enum sw_batch { SW_BATCH_ARG, SW_BATCH_RUNNING, SW_BATCH_INPUT };
enum sw_attention { SW_ATTENTION_PLAIN, SW_ATTENTION_WEIGHTS, SW_ATTENTION_SUMS };
enum sw_index_write { SW_INDEX_COPY, SW_INDEX_ADD, SW_INDEX_FILL };
enum sw_scatter {
  SW_SCATTER_WRITE,
  SW_SCATTER_ADD,
  SW_SCATTER_MEAN,
  SW_SCATTER_PROD,
  SW_SCATTER_MAX,
  SW_SCATTER_MIN,
  SW_SCATTER_NAMED, /* argument `reduce` says */
};
/* On numbers; from SW_A_EQ on the result is a truth. */
enum sw_arithmetic {
  SW_A_ADD,
  SW_A_SUB,
  SW_A_MUL,
  SW_A_NEG,
  SW_A_TRUEDIV,
  SW_A_FLOORDIV,
  SW_A_MOD,
  SW_A_POW,
  SW_A_MAX,
  SW_A_MIN,
  SW_A_SQRT,
  SW_A_FLOAT,
  SW_A_INT,
  SW_A_TRUNC,
  SW_A_FLOOR,
  SW_A_CEIL,
  SW_A_ROUND,
  SW_A_EQ,
  SW_A_NE,
  SW_A_LT,
  SW_A_LE,
  SW_A_GT,
  SW_A_GE,
  SW_A_AND,
  SW_A_OR,
  SW_A_NOT,
};

/* X(function): sw_op_NAME */
#define SW_OP_FUNCTIONS(X)                                                                                         \
  X(adaptive_avg_pool) X(addmm) X(alias) X(aminmax) X(arange) X(arithmetic) X(as_strided) X(assert) X(attention)   \
  X(avg_pool) X(batch_norm) X(bincount) X(bitwise_not) X(cat) X(chunk) X(clone) X(cond) X(contiguous)              \
  X(convolution) X(copy) X(diagonal) X(diff) X(div_mode) X(dropout) X(einsum) X(embedding) X(expand) X(expand_as)  \
  X(eye) X(flatten) X(flip) X(full) X(full_like) X(gather) X(gelu) X(glu) X(group_norm) X(grouped_mm) X(histc)     \
  X(im2col) X(index) X(index_put) X(index_select) X(index_write) X(isin) X(item) X(layer_norm) X(linear)           \
  X(linspace) X(map) X(masked_scatter) X(matmul) X(max_pool) X(movedim) X(narrow) X(nonzero) X(nothing) X(one_hot) \
  X(outer) X(pad) X(permute) X(pick) X(pixel_shuffle) X(polar) X(prelu) X(random) X(reduce) X(repeat)              \
  X(repeat_interleave) X(reshape) X(rms_norm) X(roll) X(scalar_tensor) X(scaled_mm) X(scan) X(scatter) X(select)   \
  X(slice) X(sort) X(split) X(split_with_sizes) X(squeeze) X(sym_size) X(t) X(take_along_dim) X(to) X(topk)        \
  X(adaptive_max_pool) X(add_product) X(bilinear) X(cdist) X(chain) X(col2im) X(cosine_similarity) X(cross) X(dist) \
  X(embedding_bag) X(grid_sampler) X(inner) X(kron) X(logspace) X(loss) X(nll_loss) X(nonzero_static) X(norm) X(pairwise_distance) \
  X(partial) X(recurrent) X(recurrent_cell) X(search_sorted) X(take) X(tensordot) X(trilinear) X(vecdot) \
  X(at_least) X(block_diag) X(broadcast) X(channel_shuffle) X(diag) X(flip_dim) X(logit) X(meshgrid) X(nan_to_num) \
  X(pieces) X(pixel_unshuffle) X(ravel) X(rot90) X(rrelu) X(stacked) X(trace) X(triangle_indices) X(turn) \
  X(transpose) X(triangle) X(unbind) X(unflatten) X(unfold) X(unique) X(unsqueeze) X(upsample)            \
  X(var) X(view_as) X(view_as_complex) X(view_as_real) X(view_scatter) X(weight_norm) X(while_loop) X(wrap)

#define X(name) void sw_op_##name(struct sw_call *c);
SW_OP_FUNCTIONS(X)
#undef X

/* An elementwise function of n tensors: into `to`, to whose size they broadcast, or as a result of their own size.
 * is_number (may be NULL): operands that were numbers in the graph, which only say a category in type promotion. */
void sw_apply(struct sw_call *c, const struct sw_tensor *to, enum sw_kernel k, int n, const struct sw_tensor *ts,
              const bool *is_number);
void sw_map(struct sw_call *c, int result, enum sw_kernel k, int n, const struct sw_tensor *ts, const bool *is_number);

/* out[m,n] += a[m,k] b[k,n], row-major. */
void sw_gemm(int64_t m, int64_t n, int64_t k, const double *a, const double *b, double *out);
double sw_row_logsumexp(const double *v, int64_t n);
/* What a softmax takes off the row: that, or NaN for a row that reaches inf, as inf - inf is in the sum of all. */
double sw_row_softmax_shift(const double *v, int64_t n);

/* Views of t that arguments dim, start, end, step or dim, index name. */
struct sw_tensor sw_call_slice(struct sw_call *c, const struct sw_tensor *t);
struct sw_tensor sw_call_select(struct sw_call *c, const struct sw_tensor *t);

#endif
