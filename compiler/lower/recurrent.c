/* Recurrent layers, one step after the other: the products of all inputs with the weights at once, then per step the
 * product of the state and the gates. Where a gate's lanes are whole sticks all gates are one product and slices of it;
 * else every gate has a product of its own. */
#include "compiler/lower/families.h"

struct cell {
  int gates;
  struct tensor w_in, w_hidden, b_in, b_hidden; /* biases may be unknown */
  int64_t hidden;
  bool apart; /* gates by products of their own */
};

enum { MAX_GATES = 4 };

static int gates_of(int kind)
{
  return kind == LW_LSTM ? 4 : kind == LW_GRU ? 3 : 1;
}

/* Gates of x by w: [.., hidden] each. */
static void products(struct lower *l, const struct cell *m, struct tensor x, struct tensor w, struct tensor b, struct tensor out[MAX_GATES])
{
  struct tensor all = m->apart ? lw_unknown() : lw_linear(l, x, w, lw_known(b) ? &b : NULL);
  for (int g = 0; g < m->gates; g++) {
    if (m->apart) {
      struct tensor part = lw_known(b) ? lw_slice(b, 0, g * m->hidden, m->hidden, 1) : b;
      out[g] = lw_linear(l, x, lw_slice(w, 0, g * m->hidden, m->hidden, 1), lw_known(b) ? &part : NULL);
    } else {
      out[g] = lw_known(all) ? lw_slice(all, all.rank - 1, g * m->hidden, m->hidden, 1) : all;
    }
  }
}

static struct tensor sum(struct lower *l, struct tensor a, struct tensor b)
{
  return lw_binary(l, SW_OP_ADD, a, b);
}

static struct tensor sigmoid(struct lower *l, struct tensor x)
{
  return lw_unary(l, SW_OP_SIGMOID, x);
}

/* The new state from the gates a of the input and b of the state; *c is an LSTM's cell. */
static struct tensor step(struct lower *l, int kind, const struct tensor *a, const struct tensor *b, struct tensor h, struct tensor *c)
{
  struct tensor x, y;
  switch (kind) {
  case LW_LSTM:
    x = lw_binary(l, SW_OP_MUL, sigmoid(l, sum(l, a[1], b[1])), *c);
    y = sigmoid(l, sum(l, a[0], b[0]));
    y = lw_binary(l, SW_OP_MUL, y, lw_unary(l, SW_OP_TANH, sum(l, a[2], b[2])));
    *c = sum(l, x, y);
    x = sigmoid(l, sum(l, a[3], b[3]));
    return lw_binary(l, SW_OP_MUL, x, lw_unary(l, SW_OP_TANH, *c));
  case LW_GRU: /* n + z (h - n) */
    x = lw_binary(l, SW_OP_MUL, sigmoid(l, sum(l, a[0], b[0])), b[2]);
    x = lw_unary(l, SW_OP_TANH, sum(l, a[2], x));
    y = sigmoid(l, sum(l, a[1], b[1]));
    return sum(l, x, lw_binary(l, SW_OP_MUL, y, lw_binary(l, SW_OP_SUB, h, x)));
  case LW_RNN_TANH:
    return lw_unary(l, SW_OP_TANH, sum(l, a[0], b[0]));
  default:
    return lw_unary(l, SW_OP_RELU, sum(l, a[0], b[0]));
  }
}

static struct cell cell_of(int kind, const struct tensor *p, bool biases)
{
  struct cell m = {gates_of(kind), p[0], p[1], lw_unknown(), lw_unknown(), p[1].size[1], false};
  m.apart = m.hidden % 64 != 0 && m.gates > 1;
  if (biases) {
    m.b_in = p[2];
    m.b_hidden = p[3];
  }
  return m;
}

/* lstm_cell, gru_cell, rnn_*_cell. */
void lw_op_recurrent_cell(struct lower *l, int kind)
{
  static const char *const names[] = {"w_ih", "w_hh", "b_ih", "b_hh"};
  enum sw_dtype t = lw_result_dtype(l, 0);
  bool biases = lw_given(l, "b_ih") && lw_given(l, "b_hh");
  struct tensor p[4], x = lw_argument(l, lw_arg(l, "input"), t), h, c = lw_unknown(), a[MAX_GATES], b[MAX_GATES];
  const struct sw_arg *hx = lw_arg(l, "hx");
  bool known = lw_known(x);
  for (int i = 0; i < (biases ? 4 : 2); i++) {
    p[i] = lw_argument(l, lw_arg(l, names[i]), t);
    known = known && lw_known(p[i]);
  }
  h = lw_argument(l, kind == LW_LSTM ? &hx->list.v[0] : hx, t);
  if (kind == LW_LSTM)
    c = lw_argument(l, &hx->list.v[1], t);
  if (!known || !lw_known(h)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  struct cell m = cell_of(kind, p, biases);
  products(l, &m, x, m.w_in, m.b_in, a);
  products(l, &m, h, m.w_hidden, m.b_hidden, b);
  lw_set(l, 0, step(l, kind, a, b, h, &c));
  if (kind == LW_LSTM)
    lw_set(l, 1, c);
}

struct states {
  struct tensor h, c, h_out, c_out; /* [layers * ways, N, hidden] */
};

/* One layer in one direction over x [T,N,in], its states into columns of `out` [T,N,..] from `at` on. */
static void run_layer(struct lower *l, int kind, const struct cell *m, struct tensor x, bool back, struct states *s, int64_t k, struct tensor out,
                      int64_t at)
{
  struct tensor a[MAX_GATES], b[MAX_GATES], now[MAX_GATES];
  struct tensor h = lw_select(s->h, 0, k), c = kind == LW_LSTM ? lw_select(s->c, 0, k) : lw_unknown();
  int64_t steps = x.size[0];
  products(l, m, x, m->w_in, m->b_in, a);
  for (int64_t i = 0; i < steps && !l->failed; i++) {
    int64_t t = back ? steps - 1 - i : i;
    for (int g = 0; g < m->gates; g++)
      now[g] = lw_known(a[g]) ? lw_select(a[g], 0, t) : a[g];
    products(l, m, h, m->w_hidden, m->b_hidden, b);
    h = step(l, kind, now, b, h, &c);
    lw_write(l, lw_slice(lw_select(out, 0, t), 1, at, m->hidden, 1), h);
  }
  if (lw_known(s->h_out))
    lw_write(l, lw_select(s->h_out, 0, k), h);
  if (lw_known(s->c_out))
    lw_write(l, lw_select(s->c_out, 0, k), c);
}

/* A state argument as [layers * ways, N, hidden]. */
static struct tensor state(struct lower *l, const struct sw_arg *a, enum sw_dtype t, bool batched)
{
  struct tensor x = lw_argument(l, a, t);
  return lw_known(x) && !batched ? lw_unsqueeze(x, 1) : x;
}

/* lstm.input and its like: layers on top of one another, each forwards and perhaps backwards too. */
void lw_op_recurrent(struct lower *l, int kind)
{
  enum sw_dtype t = lw_result_dtype(l, 0);
  const struct sw_arg *list = lw_arg(l, "params"), *hx = lw_arg(l, "hx");
  struct tensor x = lw_argument(l, lw_arg(l, "input"), t);
  bool biases = lw_bool(l, "has_biases"), batched = x.rank == 3, known = lw_known(x);
  int64_t layers = lw_int(l, "num_layers"), ways = 1 + lw_bool(l, "bidirectional");
  int each = biases ? 4 : 2;
  if (lw_bool(l, "train") && lw_real(l, "dropout") > 0) {
    lw_refuse(l, "export the model in eval mode", "dropout in training mode");
    return;
  }
  if (list->list.n != layers * ways * each) {
    lw_refuse(l, "use a layer without proj_size", "projected states");
    return;
  }
  struct tensor *p = SW_NEW_N(l->arena, struct tensor, list->list.n);
  for (int i = 0; i < list->list.n; i++) {
    p[i] = lw_argument(l, &list->list.v[i], t);
    known = known && lw_known(p[i]);
  }
  struct states s = {state(l, kind == LW_LSTM ? &hx->list.v[0] : hx, t, batched), lw_unknown(), lw_unknown(), lw_unknown()};
  if (kind == LW_LSTM)
    s.c = state(l, &hx->list.v[1], t, batched);
  if (!known || !lw_known(s.h)) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  if (!batched)
    x = lw_unsqueeze(x, 1);
  else if (lw_bool(l, "batch_first"))
    x = lw_transpose(x, 0, 1);
  if (lw_wanted(l, 1))
    s.h_out = lw_new(l, t, 3, s.h.size, NULL);
  if (kind == LW_LSTM && lw_wanted(l, 2))
    s.c_out = lw_new(l, t, 3, s.c.size, NULL);
  int64_t hidden = s.h.size[2];
  for (int64_t layer = 0; layer < layers && !l->failed; layer++) {
    struct tensor out = lw_new(l, t, 3, (const int64_t[]){x.size[0], x.size[1], ways * hidden}, NULL);
    for (int64_t way = 0; way < ways; way++) {
      int64_t k = layer * ways + way;
      struct cell m = cell_of(kind, p + k * each, biases);
      run_layer(l, kind, &m, x, way == 1, &s, k, out, way * hidden);
    }
    x = out;
  }
  if (l->failed) {
    lw_set(l, 0, lw_unknown());
    return;
  }
  lw_set(l, 0, !batched ? lw_squeeze(x, 1) : lw_bool(l, "batch_first") ? lw_transpose(x, 0, 1) : x);
  if (lw_known(s.h_out))
    lw_set(l, 1, batched ? s.h_out : lw_squeeze(s.h_out, 1));
  if (lw_known(s.c_out))
    lw_set(l, 2, batched ? s.c_out : lw_squeeze(s.c_out, 1));
}
