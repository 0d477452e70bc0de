/* Pass 3: the cores that are left go to the largest output dims, then to one reduction. And the menu of all legal
 * divisions. Reference: work-division.md sections 8 and 16. */
#include "compiler/plan/division.h"

static int64_t largest_divisor(int64_t basis, int64_t most)
{
  for (int64_t d = most < basis ? most : basis; d > 1; d--)
    if (basis % d == 0)
      return d;
  return 1;
}

/* Free variables on one side (output or reduced), largest adjusted size first, equal ones in iteration order. */
static int by_size(const struct sw_work *w, const bool *taken, bool outputs, int *list)
{
  int n = 0;
  for (int v = 0; v < w->n_vars; v++) {
    if (taken[v] || w->var[v].is_output != outputs)
      continue;
    int at = n++;
    for (; at > 0 && w->var[list[at - 1]].adjusted < w->var[v].adjusted; at--)
      list[at] = list[at - 1];
    list[at] = v;
  }
  return n;
}

/* [100,100] in fp16 on 32 cores: rows 100 take 25 cores; floor(32 / 25) = 1 is left, so the 2 sticks get nothing.
 *
 * What the span has cut gets no more in the reference: a conversion of 64 x 800 sticks stays at 2 x 2, 4 cores. In
 * profile best it takes part again and becomes 2 x 16. */
void sw_divide_greedy(const struct sw_work *w, const struct sw_work_limits *limits, const int64_t *committed,
                      int64_t *split)
{
  bool taken[SW_MAX_LOOPS], reduction_taken = false;
  int64_t left = w->cores;
  for (int v = 0; v < w->n_vars; v++) {
    int64_t fixed = committed[v] > 1 ? committed[v] : limits->pin[v];
    bool again = w->best && w->var[v].is_output && !limits->pin[v];
    taken[v] = (fixed && !again) || limits->blocked[v];
    reduction_taken |= fixed && !w->var[v].is_output;
    split[v] = 1;
    if (fixed > 1 && left / fixed > 0) {
      split[v] = fixed;
      left /= fixed;
    }
  }
  int list[SW_MAX_LOOPS];
  int n = by_size(w, taken, true, list);
  for (int i = 0; i < n && left > 1; i++) {
    int64_t most = left * split[list[i]];
    split[list[i]] = largest_divisor(sw_work_basis(w, list[i]), most);
    left = most / split[list[i]];
  }
  if (reduction_taken || left <= 1)
    return;
  n = by_size(w, taken, false, list);
  int best = -1;
  int64_t most = 1;
  for (int i = 0; i < n; i++) {
    int64_t d = largest_divisor(sw_work_basis(w, list[i]), left);
    if (d > most) {
      best = list[i];
      most = d;
    }
  }
  if (best >= 0)
    split[best] = most;
}

/* Whether a division keeps every rule: enough cores, one reduction, spans, limits. */
static bool legal(const struct sw_work *w, const struct sw_work_limits *limits, const int64_t *split)
{
  int reductions = 0;
  for (int v = 0; v < w->n_vars; v++) {
    reductions += split[v] > 1 && !w->var[v].is_output;
    if ((limits->blocked[v] && split[v] > 1) || (limits->pin[v] && split[v] != limits->pin[v]))
      return false;
  }
  if (reductions > 1 || sw_split_product(split, w->n_vars) > w->cores)
    return false;
  for (int i = 0; i < w->n_in; i++)
    if (sw_work_span(w, &w->in[i], split) > SW_MAX_SPAN)
      return false;
  return sw_work_span(w, &w->out, split) <= SW_MAX_SPAN;
}

enum sw_rc sw_work_menu(struct sw_job *job, struct sw_arena *arena, const struct sw_work *w, struct sw_menu *out)
{
  struct sw_division d;
  struct sw_work_limits limits;
  for (int v = 0; v < SW_MAX_LOOPS; v++)
    d.split[v] = 1;
  SW_TRY(sw_work_limits(job, w, d.split, &limits));
  for (;;) {
    if (legal(w, &limits, d.split))
      *SW_PUSH(arena, &out->divisions) = d;
    int v = w->n_vars - 1;
    for (; v >= 0; v--) { /* next divisor of the last variable that has one within the cores */
      int64_t basis = sw_work_basis(w, v), most = w->cores / (sw_split_product(d.split, w->n_vars) / d.split[v]);
      int64_t next = d.split[v] + 1;
      while (next <= most && next <= basis && basis % next)
        next++;
      if (next <= most && next <= basis) {
        d.split[v] = next;
        break;
      }
      d.split[v] = 1;
    }
    if (v < 0)
      return SW_OK;
  }
}
