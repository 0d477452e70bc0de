/* What every later pass may rely on. A fault here is a mistake of the pass that made the program. */
#include "base/map.h"
#include "compiler/lower/program.h"

int64_t sw_storage_elements(const struct sw_storage *s)
{
  int64_t n = 1;
  for (int d = 0; d < s->rank; d++)
    n *= s->size[d];
  return n;
}

int64_t sw_op_turns(const struct sw_op *op)
{
  int64_t n = 1;
  for (int l = 0; l < op->n_levels; l++)
    n *= op->level[l].count;
  return n;
}

bool sw_follows_slices(const struct sw_op *op)
{
  switch (op->op) {
  case SW_OP_RESTICKIFY:
  case SW_OP_TOPKVALUE:
  case SW_OP_TOPKINDEX:
  case SW_OP_AVGPOOL:
  case SW_OP_CONV2D:
  case SW_OP_DEPTHWISE:
  case SW_OP_QFP8CH:
  case SW_OP_QFP8WT:
  case SW_OP_MATMULFP8: return false;
  default: break;
  }
  for (int i = 0; i < op->n_in; i++)
    if (op->in[i].index_input >= 0)
      return false;
  return op->out.index_input < 0;
}

struct check {
  struct sw_job *job;
  const struct sw_program *p;
  const char *pass;
  bool *written;
  struct sw_level open[SW_MAX_LEVELS]; /* loops around the step at hand */
  int n_open;
  struct sw_map closed; /* numbers of loops that are over */
};

static void complain(const struct check *c, const char *where, const char *what)
{
  sw_fault(c->job, SW_INTERNAL, "after %s: %s: %s", c->pass, where, what)->node = where;
}

/* Smallest and largest element of an access lie inside its storage. */
static void check_access(const struct check *c, const struct sw_op *op, const struct sw_access *x, int n_loops)
{
  const struct sw_program *p = c->p;
  if (x->storage < 0 || x->storage >= p->storages.n) {
    complain(c, op->name, "an access to no storage");
    return;
  }
  int64_t low = x->offset, high = x->offset;
  for (int d = 0; d < n_loops; d++) {
    int64_t reach = x->step[d] * (op->range[d] - 1);
    *(reach < 0 ? &low : &high) += reach;
  }
  for (int l = 0; l < op->n_levels; l++) {
    int64_t reach = x->advance[l] * (op->level[l].count - 1);
    *(reach < 0 ? &low : &high) += reach;
  }
  if (x->index_input >= 0) {
    if (x->index_input >= op->n_in)
      complain(c, op->name, "row numbers from no input");
    high += x->index_step * (x->index_range - 1);
  }
  if (low < 0 || high >= sw_storage_elements(&p->storages.v[x->storage]))
    complain(c, op->name, sw_arena_printf(c->job->arena, "an access leaves %s", p->storages.v[x->storage].name));
}

/* Has its elements without any step: loaded, or none to have. */
static bool is_loaded(const struct sw_storage *s)
{
  return s->kind != SW_STORAGE_TEMPORARY || sw_storage_elements(s) == 0;
}

static void check_read(const struct check *c, const char *where, int storage)
{
  if (storage < 0 || storage >= c->p->storages.n)
    complain(c, where, "a read of no storage");
  else if (!is_loaded(&c->p->storages.v[storage]) && !c->written[storage])
    complain(c, where, sw_arena_printf(c->job->arena, "reads %s before anything wrote it", c->p->storages.v[storage].name));
}

/* Closes the open loops from number `kept` on. */
static void close_loops(struct check *c, int kept)
{
  for (; c->n_open > kept; c->n_open--)
    sw_map_set(&c->closed, &c->open[c->n_open - 1].loop, sizeof c->open->loop, 1);
}

/* A loop has one count and its ops are neighbours. */
static void check_levels(struct check *c, const struct sw_op *op)
{
  if (op->n_levels < 0 || op->n_levels > SW_MAX_LEVELS) {
    complain(c, op->name, "too many loops around it");
    return;
  }
  int same = 0;
  while (same < op->n_levels && same < c->n_open && op->level[same].loop == c->open[same].loop)
    same++;
  close_loops(c, same);
  for (int l = 0; l < op->n_levels; l++) {
    if (op->level[l].count < 2 || (l < same && op->level[l].count != c->open[l].count))
      complain(c, op->name, "a loop around it has no count of its own");
    if (l >= same && sw_map_get(&c->closed, &op->level[l].loop, sizeof op->level[l].loop) >= 0)
      complain(c, op->name, "the ops of a loop around it are no neighbours");
    c->open[l] = op->level[l];
  }
  c->n_open = op->n_levels;
}

static void check_op(const struct check *c, const struct sw_op *op)
{
  if (op->n_loops > SW_MAX_LOOPS || op->n_written > op->n_loops || op->n_in > SW_MAX_INPUTS || op->n_loops < 0) {
    complain(c, op->name, "too many loops or inputs");
    return;
  }
  for (int d = 0; d < op->n_loops; d++)
    if (op->range[d] < 2)
      complain(c, op->name, "a loop of range 1 or less");
  for (int d = op->n_written; d < op->n_loops; d++)
    if (op->out.step[d])
      complain(c, op->name, "the output depends on a reduced loop");
  for (int i = 0; i < op->n_in; i++) {
    check_read(c, op->name, op->in[i].storage);
    check_access(c, op, &op->in[i], op->n_loops);
  }
  check_access(c, op, &op->out, op->n_written);
  if (op->out.storage >= 0 && op->out.storage < c->p->storages.n)
    c->written[op->out.storage] = true;
}

static void check_args(const struct check *c, const char *where, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++)
    if (args[i].kind == SW_HOST_VIEW)
      check_read(c, where, args[i].view.storage);
    else if (args[i].kind == SW_HOST_LIST)
      check_args(c, where, args[i].list, args[i].n_list);
}

enum sw_rc sw_program_verify(struct sw_job *job, const struct sw_program *p, const char *pass)
{
  struct check c = {.job = job, .p = p, .pass = pass, .written = SW_NEW_N(job->arena, bool, p->storages.n),
                    .closed = {.arena = job->arena}};
  int before = job->faults.n;
  struct sw_map names = {.arena = job->arena};
  for (int i = 0; i < p->storages.n; i++)
    if (sw_map_set_str(&names, p->storages.v[i].name, i) >= 0)
      complain(&c, p->storages.v[i].name, "two storages of one name");
  names = (struct sw_map){.arena = job->arena};
  for (int i = 0; i < p->steps.n; i++) {
    const struct sw_step *s = &p->steps.v[i];
    if (s->index < 0 || s->index >= (s->is_host ? p->host_steps.n : p->ops.n)) {
      complain(&c, "steps", "a step that is not there");
      continue;
    }
    if (!s->is_host) {
      const struct sw_op *op = &p->ops.v[s->index];
      if (sw_map_set_str(&names, op->name, i) >= 0)
        complain(&c, op->name, "two ops of one name");
      check_levels(&c, op);
      check_op(&c, op);
      continue;
    }
    close_loops(&c, 0);
    const struct sw_host_step *h = &p->host_steps.v[s->index];
    check_args(&c, h->name, h->args.v, h->args.n);
    for (int r = 0; r < h->results.n; r++)
      if (h->results.v[r].storage >= p->storages.n)
        complain(&c, h->name, "a result in no storage");
      else if (h->results.v[r].storage >= 0)
        c.written[h->results.v[r].storage] = true;
  }
  for (int i = 0; i < p->outputs.n; i++)
    if (p->outputs.v[i].is_tensor)
      check_read(&c, p->outputs.v[i].name, p->outputs.v[i].view.storage);
  return job->faults.n > before ? SW_INTERNAL : SW_OK;
}
