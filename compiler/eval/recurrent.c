/* Recurrent layers and cells: input and state by their weights, then the gates. Rows of the weights are gate by gate:
 * LSTM input, forget, cell, output; GRU reset, update, new. */
#include "compiler/eval/ops.h"

#include <math.h>
#include <string.h>

static double sigmoid(double x)
{
  return 1 / (1 + exp(-x));
}

struct cell {
  enum sw_recurrent kind;
  int64_t in, hidden;
  const double *w_in, *w_hidden, *b_in, *b_hidden; /* biases may be NULL */
};

static int gates_of(enum sw_recurrent kind)
{
  return kind == SW_LSTM ? 4 : kind == SW_GRU ? 3 : 1;
}

static double gate(const double *w, const double *b, const double *x, int64_t row, int64_t n)
{
  double sum = b ? b[row] : 0;
  for (int64_t k = 0; k < n; k++)
    sum += w[row * n + k] * x[k];
  return sum;
}

/* One step of one sample: h (and c of an LSTM) become the new ones. `room` holds `hidden` numbers. */
static void step(const struct cell *m, const double *x, double *h, double *c, double *room)
{
  int64_t n = m->hidden;
  for (int64_t i = 0; i < n; i++) {
    double a[4], b[4];
    for (int g = 0; g < gates_of(m->kind); g++) {
      a[g] = gate(m->w_in, m->b_in, x, g * n + i, m->in);
      b[g] = gate(m->w_hidden, m->b_hidden, h, g * n + i, n);
    }
    switch (m->kind) {
    case SW_LSTM:
      c[i] = sigmoid(a[1] + b[1]) * c[i] + sigmoid(a[0] + b[0]) * tanh(a[2] + b[2]);
      room[i] = sigmoid(a[3] + b[3]) * tanh(c[i]);
      break;
    case SW_GRU: {
      double z = sigmoid(a[1] + b[1]);
      room[i] = (1 - z) * tanh(a[2] + sigmoid(a[0] + b[0]) * b[2]) + z * h[i];
      break;
    }
    case SW_RNN_TANH:
      room[i] = tanh(a[0] + b[0]);
      break;
    case SW_RNN_RELU:
      room[i] = a[0] + b[0] > 0 ? a[0] + b[0] : 0;
    }
  }
  memcpy(h, room, (size_t)n * sizeof *h);
}

static double *sized(struct sw_call *c, const struct sw_tensor *t, int64_t rows, int64_t columns)
{
  if (sw_tensor_elements(t) != rows * columns)
    sw_call_stop(c, SW_INVALID, "%lld elements where %lld x %lld are meant", (long long)sw_tensor_elements(t),
                 (long long)rows, (long long)columns);
  return sw_call_get(c, t);
}

/* Weights of a layer and direction, from `p` on in the list of parameters. */
static struct cell cell_of(struct sw_call *c, enum sw_recurrent kind, const struct sw_tensor *p, bool biases)
{
  if (p[0].rank != 2 || p[1].rank != 2)
    sw_call_stop(c, SW_INVALID, "weights of rank %d and %d", p[0].rank, p[1].rank);
  int64_t rows = p[0].size[0], hidden = p[1].size[1];
  if (rows != hidden * gates_of(kind))
    sw_call_stop(c, SW_UNSUPPORTED, "%lld rows of weights for %lld hidden numbers", (long long)rows, (long long)hidden);
  struct cell m = {kind, p[0].size[1], hidden, sized(c, &p[0], rows, p[0].size[1]), sized(c, &p[1], rows, hidden), NULL, NULL};
  if (biases) {
    m.b_in = sized(c, &p[2], rows, 1);
    m.b_hidden = sized(c, &p[3], rows, 1);
  }
  return m;
}

/* lstm_cell, gru_cell, rnn_*_cell. */
void sw_op_recurrent_cell(struct sw_call *c)
{
  enum sw_recurrent kind = (enum sw_recurrent)c->op->what;
  static const char *const names[] = {"w_ih", "w_hh", "b_ih", "b_hh"};
  struct sw_tensor x = sw_call_tensor(c, "input"), p[4], h, cells = {0};
  bool biases = sw_call_has(c, "b_ih") && sw_call_has(c, "b_hh");
  for (int i = 0; i < (biases ? 4 : 2); i++)
    p[i] = sw_call_tensor(c, names[i]);
  if (kind == SW_LSTM) {
    int n;
    const struct sw_tensor *hx = sw_call_tensors(c, "hx", &n);
    if (n != 2)
      sw_call_stop(c, SW_INVALID, "%d states", n);
    h = hx[0];
    cells = hx[1];
  } else {
    h = sw_call_tensor(c, "hx");
  }
  struct cell m = cell_of(c, kind, p, biases);
  int64_t batch = x.rank > 1 ? x.size[0] : 1;
  double *v = sized(c, &x, batch, m.in), *hv = sized(c, &h, batch, m.hidden), *room = sw_call_reals(c, m.hidden);
  double *cv = kind == SW_LSTM ? sized(c, &cells, batch, m.hidden) : NULL;
  for (int64_t b = 0; b < batch; b++)
    step(&m, v + b * m.in, hv + b * m.hidden, cv ? cv + b * m.hidden : NULL, room);
  struct sw_tensor out = sw_call_out(c, 0, h.rank, h.size);
  sw_put_reals(&out, hv, c->rounding);
  if (cv) {
    out = sw_call_out(c, 1, h.rank, h.size);
    sw_put_reals(&out, cv, c->rounding);
  }
}

/* lstm.input and its like: layers on top of one another, each once forwards and perhaps once backwards; their results
 * side by side are the input of the next. The last states of all of them are results too. */
void sw_op_recurrent(struct sw_call *c)
{
  enum sw_recurrent kind = (enum sw_recurrent)c->op->what;
  struct sw_tensor x = sw_call_tensor(c, "input"), h, cells = {0};
  int n_params, n_states = 1;
  const struct sw_tensor *params = sw_call_tensors(c, "params", &n_params);
  if (kind == SW_LSTM) {
    const struct sw_tensor *hx = sw_call_tensors(c, "hx", &n_states);
    if (n_states != 2)
      sw_call_stop(c, SW_INVALID, "%d states", n_states);
    h = hx[0];
    cells = hx[1];
  } else {
    h = sw_call_tensor(c, "hx");
  }
  bool biases = sw_call_bool(c, "has_biases"), batched = x.rank == 3, batch_first = batched && sw_call_bool(c, "batch_first");
  int64_t layers = sw_call_int(c, "num_layers"), ways = 1 + sw_call_bool(c, "bidirectional");
  int each = biases ? 4 : 2;
  if (layers < 1 || layers > 1000 || n_params != layers * ways * each || (x.rank != 2 && !batched))
    sw_call_stop(c, SW_UNSUPPORTED, "%d weights for %lld layers, an input of rank %d", n_params, (long long)layers, x.rank);
  if (sw_call_bool(c, "train") && sw_call_real(c, "dropout") > 0)
    sw_call_stop(c, SW_UNSUPPORTED, "random numbers of a training run");
  struct sw_tensor t = batch_first ? sw_tensor_move(&x, 1, 0) : x;
  int64_t steps = t.size[0], batch = batched ? t.size[1] : 1, in = t.size[x.rank - 1], hidden = h.size[h.rank - 1];
  double *v = sw_call_get(c, &t), *hv = sized(c, &h, layers * ways * batch, hidden), *room = sw_call_reals(c, hidden);
  double *cv = kind == SW_LSTM ? sized(c, &cells, layers * ways * batch, hidden) : NULL;
  for (int64_t layer = 0; layer < layers; layer++) {
    double *out = sw_call_reals(c, sw_call_product(c, 4, (int64_t[]){steps, batch, ways, hidden}));
    for (int64_t way = 0; way < ways; way++) {
      int64_t k = layer * ways + way;
      struct cell m = cell_of(c, kind, params + k * each, biases);
      if (m.in != in || m.hidden != hidden)
        sw_call_stop(c, SW_INVALID, "weights for %lld numbers, not %lld", (long long)m.in, (long long)in);
      for (int64_t i = 0; i < steps; i++)
        for (int64_t b = 0; b < batch; b++) {
          int64_t at = (way ? steps - 1 - i : i) * batch + b;
          double *state = hv + (k * batch + b) * hidden;
          step(&m, v + at * in, state, cv ? cv + (k * batch + b) * hidden : NULL, room);
          memcpy(out + (at * ways + way) * hidden, state, (size_t)hidden * sizeof *out);
        }
    }
    v = out;
    in = ways * hidden;
  }
  int64_t size[3] = {steps, batch, in}, swapped[3] = {batch, steps, in}, flat[2] = {steps, in};
  struct sw_tensor to = sw_call_out(c, 0, x.rank, batch_first ? swapped : batched ? size : flat);
  if (batch_first)
    to = sw_tensor_move(&to, 1, 0);
  sw_put_reals(&to, v, c->rounding);
  to = sw_call_out(c, 1, h.rank, h.size);
  sw_put_reals(&to, hv, c->rounding);
  if (cv) {
    to = sw_call_out(c, 2, h.rank, h.size);
    sw_put_reals(&to, cv, c->rounding);
  }
}
