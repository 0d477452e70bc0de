/* Elimination: the variable at position i goes, and what it costs at best becomes a table over its scope:
 *
 *   J_i(scope) = min over labels x of [ unary(x) + its pairs with later variables + the tables of its children ]
 *
 * The tables are dense; scope and own label are mixed-radix digits, the own label fastest, then the variable that goes
 * next. Of each table only one bit an entry is kept, "x is minimal here": enough to find all optimal vectors again
 * (100 entries of 3 labels are 300 bits). The costs go as soon as the parent has read them.
 *
 * Work: the entries of all tables, times the number of large ones that meet in one (small ones are added up first). */
#include "solver/assign/net.h"

#include <string.h>

enum { MAX_DIMS = 64 };

/* A table seen from the digits of another: `step` is 0 where it does not depend on the digit. */
struct factor {
  const int64_t *t;
  int64_t step[MAX_DIMS], entries;
};

struct eliminate {
  const struct sw_island *is;
  const struct sw_order *o;
  struct sw_arena *scratch;
  struct message {
    int64_t *t;
    int64_t entries;
    struct sw_arena *own; /* of a large table */
    int sibling;          /* next child of the same parent */
  } *message;
  int *child;
  SW_VEC(struct factor) factors;
};

/* Digits of position i: 0 the variable itself, then its scope. */
static int dims_of(const struct eliminate *m, int i, int *position, int64_t *size)
{
  int n = 0;
  position[n++] = i;
  for (int64_t e = m->o->scope_first[i]; e < m->o->scope_first[i + 1]; e++)
    position[n++] = m->o->scope[e];
  for (int d = 0; d < n; d++)
    size[d] = m->is->k[m->o->order[position[d]]];
  return n;
}

static struct factor *add_factor(struct eliminate *m, const int64_t *t, int64_t entries)
{
  struct factor *f = SW_PUSH(m->scratch, &m->factors);
  memset(f, 0, sizeof *f);
  f->t = t;
  f->entries = entries;
  return f;
}

static int digit_of(const int *position, int n, int wanted)
{
  int d = 0;
  while (d < n && position[d] != wanted)
    d++;
  return d;
}

static void collect(struct eliminate *m, int i, const int *position, int n)
{
  const struct sw_island *is = m->is;
  int v = m->o->order[i];
  m->factors.n = 0;
  add_factor(m, is->unary + is->first[v], is->k[v])->step[0] = 1;
  for (int e = is->adj_first[v]; e < is->adj_first[v + 1]; e++) {
    const struct sw_pair *p = &is->pairs[is->adj[e]];
    int w = sw_pair_other(p, v), at = m->o->position[w];
    if (at < i)
      continue;
    struct factor *f = add_factor(m, p->t, (int64_t)is->k[v] * is->k[w]);
    f->step[0] = v == p->a ? p->step_a : p->step_b;
    f->step[digit_of(position, n, at)] = v == p->a ? p->step_b : p->step_a;
  }
  for (int c = m->child[i]; c >= 0; c = m->message[c].sibling) {
    struct factor *f = add_factor(m, m->message[c].t, m->message[c].entries);
    int64_t step = 1;
    for (int64_t e = m->o->scope_first[c]; e < m->o->scope_first[c + 1]; e++) {
      f->step[digit_of(position, n, m->o->scope[e])] = step;
      step *= is->k[m->o->order[m->o->scope[e]]];
    }
  }
}

/* sum += f, over the digits that the sum has. */
static void add_into(int64_t *sum, const struct factor *shape, const struct factor *f, const int64_t *size, int n)
{
  int64_t digits[MAX_DIMS], step_s[MAX_DIMS], step_f[MAX_DIMS], at[MAX_DIMS] = {0};
  int m = 0;
  for (int d = 0; d < n; d++)
    if (shape->step[d]) {
      digits[m] = size[d];
      step_s[m] = shape->step[d];
      step_f[m++] = f->step[d];
    }
  for (int64_t done = 0, s = 0, x = 0; done < shape->entries; done += digits[0]) {
    for (int64_t j = 0; j < digits[0]; j++)
      sum[s + j * step_s[0]] = sw_assign__plus(sum[s + j * step_s[0]], f->t[x + j * step_f[0]]);
    for (int d = 1; d < m; d++) {
      s += step_s[d];
      x += step_f[d];
      if (++at[d] < digits[d])
        break;
      s -= step_s[d] * digits[d];
      x -= step_f[d] * digits[d];
      at[d] = 0;
    }
  }
}

/* All factors but the largest, added up over the digits that they depend on. */
static struct factor rest_of(struct eliminate *m, struct sw_arena *a, int largest, const int64_t *size, int n)
{
  struct factor rest = {.entries = 1};
  for (int d = 0; d < n; d++) {
    bool used = d == 0;
    for (int f = 0; f < m->factors.n && !used; f++)
      used = f != largest && m->factors.v[f].step[d];
    if (!used)
      continue;
    rest.step[d] = rest.entries;
    rest.entries *= size[d];
  }
  int64_t *sum = SW_NEW_N(a, int64_t, rest.entries);
  rest.t = sum;
  for (int f = 0; f < m->factors.n; f++)
    if (f != largest)
      add_into(sum, &rest, &m->factors.v[f], size, n);
  return rest;
}

/* out[scope] = least of f + g over the own label (digit 0), and the bits of the labels that reach it. */
static void minimise(const struct factor *f, const struct factor *g, const int64_t *size, int n, int64_t *out,
                     int64_t n_out, uint64_t *bits)
{
  int64_t k = size[0], at[MAX_DIMS] = {0}, f0 = f->step[0], g0 = g->step[0];
  const int64_t *x = f->t, *y = g->t;
  for (int64_t s = 0; s < n_out; s++) {
    if (k == 2) {
      int64_t p = sw_assign__plus(x[0], y[0]), q = sw_assign__plus(x[f0], y[g0]);
      uint64_t word = (uint64_t)(p <= q) | (uint64_t)(q <= p) << 1;
      out[s] = p < q ? p : q;
      bits[s >> 5] |= word << (s & 31) * 2;
    } else {
      int64_t least = SW_ASSIGN_INF;
      for (int64_t j = 0; j < k; j++) {
        int64_t c = sw_assign__plus(x[j * f0], y[j * g0]);
        least = c < least ? c : least;
      }
      out[s] = least;
      for (int64_t j = 0, e = s * k; j < k; j++, e++)
        if (sw_assign__plus(x[j * f0], y[j * g0]) == least)
          bits[e >> 6] |= (uint64_t)1 << (e & 63);
    }
    for (int d = 1; d < n; d++) {
      x += f->step[d];
      y += g->step[d];
      if (++at[d] < size[d])
        break;
      x -= f->step[d] * size[d];
      y -= g->step[d] * size[d];
      at[d] = 0;
    }
  }
}

static void eliminate_one(struct eliminate *m, struct sw_arena *a, int i, uint64_t **bits)
{
  enum { LARGE = 8192 };
  int position[MAX_DIMS];
  int64_t size[MAX_DIMS], n_out = 1;
  int n = dims_of(m, i, position, size), largest = 0;
  for (int d = 1; d < n; d++)
    n_out *= size[d];
  collect(m, i, position, n);
  for (int f = 1; f < m->factors.n; f++)
    if (m->factors.v[f].entries > m->factors.v[largest].entries)
      largest = f;
  struct message *out = &m->message[i];
  out->own = n_out > LARGE ? sw_arena_new(m->scratch, 0) : NULL;
  out->t = SW_NEW_N(out->own ? out->own : m->scratch, int64_t, n_out);
  out->entries = n_out;
  *bits = SW_NEW_N(a, uint64_t, (n_out * size[0] + 63) / 64);
  struct sw_arena *temporary = n_out > LARGE ? sw_arena_new(m->scratch, 0) : NULL;
  struct factor rest = rest_of(m, temporary ? temporary : m->scratch, largest, size, n);
  minimise(&m->factors.v[largest], &rest, size, n, out->t, n_out, *bits);
  sw_arena_free(temporary);
  for (int c = m->child[i]; c >= 0; c = m->message[c].sibling)
    sw_arena_free(m->message[c].own);
  if (n > 1) {
    out->sibling = m->child[position[1]];
    m->child[position[1]] = i;
  }
}

/* Labels from the last position to the first, each the smallest minimal one. False when some had a choice. */
static bool decode(const struct sw_choices *c, int *labels)
{
  const struct sw_island *is = c->island;
  const struct sw_order *o = c->order;
  bool unique = true;
  for (int i = is->n - 1; i >= 0; i--) {
    int v = o->order[i], k = is->k[v], found = -1;
    int64_t s = 0, step = 1;
    for (int64_t e = o->scope_first[i]; e < o->scope_first[i + 1]; e++) {
      int w = o->order[o->scope[e]];
      s += labels[w] * step;
      step *= is->k[w];
    }
    for (int x = 0; x < k; x++)
      if (c->bits[i][(s * k + x) >> 6] >> ((s * k + x) & 63) & 1) {
        unique &= found < 0;
        found = found < 0 ? x : found;
      }
    labels[v] = found;
  }
  return unique;
}

bool sw_eliminate(struct sw_arena *a, const struct sw_island *is, const struct sw_order *o, int64_t *cost, int *labels)
{
  struct sw_arena *kept = sw_arena_new(a, 0);
  struct eliminate m = {.is = is, .o = o, .scratch = sw_arena_new(a, 0)};
  struct sw_choices c = {is, o, SW_NEW_N(kept, uint64_t *, is->n)};
  m.message = SW_NEW_N(m.scratch, struct message, is->n);
  m.child = SW_NEW_N(m.scratch, int, is->n);
  for (int i = 0; i < is->n; i++)
    m.child[i] = -1;
  *cost = 0;
  for (int i = 0; i < is->n; i++) {
    eliminate_one(&m, kept, i, &c.bits[i]);
    if (o->scope_first[i] == o->scope_first[i + 1])
      *cost = sw_assign__plus(*cost, m.message[i].t[0]);
  }
  sw_arena_free(m.scratch);
  bool smallest = true;
  if (*cost != SW_ASSIGN_INF && !decode(&c, labels) && !o->natural)
    smallest = sw_ties_smallest(kept, &c, labels);
  sw_arena_free(kept);
  return smallest;
}
