/* Tiles (profile best): ops around buffers that are too large for the scratchpads are done tile by tile, so that what
 * lies between them fits.
 *
 * A group is a set of ops joined by such buffers. Its loop walks one dim of each of them, is reduced nowhere and lies
 * in no stick. What lives inside the group gets a buffer for each tile, a part as large; what the group reads and writes
 * outside is taken in slices. An operand without the loop is fetched again in every tile, so a group is tiled only if
 * the traffic that the tiles save is more than that.
 *
 * The tiles are the turns of a counted loop. Where what it takes from outside is not equally far apart in memory from
 * tile to tile, which is all that a loop can say, every tile gets ops of its own.
 *
 * Example: attention of 32 heads over 1024 positions has scores of 64 MiB, 2 MiB a core where 1.55 MiB fit. In 4 tiles
 * of 8 heads a score buffer takes 512 KiB a core, and none of its six trips to memory is left. */
#include "compiler/plan/division.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/parts.h"

#include "base/options.h"

#include <string.h>

enum { NOBODY = -1, SEVERAL = -2, MAX_TILES = 32, MAX_GROUP = 64, MAX_FAILURES = 1000 };

typedef SW_VEC(int) ints;

struct storage_facts {
  int writer;  /* op, NOBODY or SEVERAL */
  ints ops;    /* that touch it, in order of steps, each once */
  bool fixed;  /* seen from outside, by a host step, or without a layout */
  int group;   /* it lives inside that one, 0: none */
  int dim;     /* host dim of the tiles */
};

struct op_facts {
  int tick, group, loop; /* loop -1: not known yet */
  bool tiled;
};

struct tiler {
  struct sw_job *job;
  const struct sw_options *o;
  struct sw_program *p;
  struct sw_arena *scratch;
  struct storage_facts *storage;
  struct op_facts *op;
  struct sw_job quiet; /* takes the faults of attempts */
  struct sw_work *w;
  ints group; /* ops of the group at hand, in order of steps */
  int number;
  struct sw_storage *shorter; /* by storage: what a tile has of it */
  int *storage_of;            /* by storage: that of the tile at hand */
  ints *at_tick;              /* by tick: ops that run there instead */
  bool moved;                 /* any */
};

static const struct sw_access *operand(const struct sw_op *op, int k)
{
  return k < op->n_in ? &op->in[k] : &op->out;
}

/* -- facts -- */

static void fix_args(struct tiler *t, const struct sw_host_arg *args, int n)
{
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_HOST_VIEW)
      t->storage[args[i].view.storage].fixed = true;
    fix_args(t, args[i].list, args[i].n_list);
  }
}

static void look_at_host_step(struct tiler *t, const struct sw_host_step *h)
{
  fix_args(t, h->args.v, h->args.n);
  for (int i = 0; i < h->results.n; i++)
    if (h->results.v[i].storage >= 0)
      t->storage[h->results.v[i].storage].fixed = true;
}

static void look_at_op(struct tiler *t, int index)
{
  const struct sw_op *op = &t->p->ops.v[index];
  for (int k = 0; k <= op->n_in; k++) {
    struct storage_facts *s = &t->storage[operand(op, k)->storage];
    if (!s->ops.n || s->ops.v[s->ops.n - 1] != index)
      *SW_PUSH(t->scratch, &s->ops) = index;
  }
  struct storage_facts *out = &t->storage[op->out.storage];
  out->writer = out->writer == NOBODY ? index : SEVERAL;
}

static void look(struct tiler *t)
{
  for (int s = 0; s < t->p->storages.n; s++) {
    const struct sw_storage *x = &t->p->storages.v[s];
    t->storage[s].writer = NOBODY;
    t->storage[s].fixed = x->kind != SW_STORAGE_TEMPORARY || x->is_output || !x->layout;
  }
  for (int i = 0; i < t->p->steps.n; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host) {
      look_at_host_step(t, &t->p->host_steps.v[step->index]);
    } else {
      t->op[step->index] = (struct op_facts){.tick = i, .loop = -1};
      look_at_op(t, step->index);
    }
  }
  for (int i = 0; i < t->p->outputs.n; i++)
    if (t->p->outputs.v[i].is_tensor)
      t->storage[t->p->outputs.v[i].view.storage].fixed = true;
}

/* -- groups -- */

static bool is_plain(const struct sw_op *op)
{
  bool plain = !op->n_levels && op->op != SW_OP_RESTICKIFY && op->role == SW_ROLE_PLAIN && op->out.index_input < 0;
  for (int i = 0; i < op->n_in; i++)
    plain &= op->in[i].index_input < 0 && op->in[i].storage != op->out.storage;
  return plain;
}

/* Between ops only, written once, and by what a tile can repeat. */
static bool is_free(const struct tiler *t, int storage)
{
  const struct storage_facts *s = &t->storage[storage];
  bool free = !s->fixed && s->writer >= 0 && s->ops.n > 1 && !s->group;
  for (int i = 0; free && i < s->ops.n; i++)
    free = is_plain(&t->p->ops.v[s->ops.v[i]]);
  return free;
}

static bool is_large(const struct tiler *t, int storage)
{
  return !t->storage[storage].fixed &&
         sw_layout_bytes(t->p->storages.v[storage].layout) > t->o->lx_bytes * t->o->cores;
}

static void join(struct tiler *t, int storage)
{
  struct storage_facts *s = &t->storage[storage];
  s->group = t->number;
  for (int i = 0; i < s->ops.n; i++)
    if (!t->op[s->ops.v[i]].group) {
      t->op[s->ops.v[i]].group = t->number;
      *SW_PUSH(t->scratch, &t->group) = s->ops.v[i];
    }
}

/* The members in order of steps. */
static void sort_members(struct tiler *t)
{
  int first = t->p->steps.n, last = 0;
  for (int i = 0; i < t->group.n; i++) {
    int tick = t->op[t->group.v[i]].tick;
    first = tick < first ? tick : first;
    last = tick > last ? tick : last;
  }
  t->group.n = 0;
  for (int i = first; i <= last; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (!step->is_host && t->op[step->index].group == t->number)
      *SW_PUSH(t->scratch, &t->group) = step->index;
  }
}

/* Whether all that touch what lives inside are members, and no member reads in one place outside what another wrote. */
static bool is_closed(const struct tiler *t)
{
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    for (int k = 0; k <= op->n_in; k++) {
      const struct storage_facts *s = &t->storage[operand(op, k)->storage];
      bool inside = s->group == t->number;
      for (int j = 0; j < s->ops.n; j++) {
        bool member = t->op[s->ops.v[j]].group == t->number;
        if (inside ? !member : k == op->n_in && member && s->ops.v[j] != t->group.v[i])
          return false;
      }
    }
  }
  return true;
}

/* Whether an op reads or overwrites what an earlier member wrote, or overwrites what one read. */
static bool waits_for_group(const struct tiler *t, int index)
{
  const struct sw_op *op = &t->p->ops.v[index];
  for (int k = 0; k <= op->n_in; k++) {
    int s = operand(op, k)->storage;
    for (int j = 0; j < t->storage[s].ops.n; j++) {
      int other = t->storage[s].ops.v[j];
      bool earlier = t->op[other].group == t->number && t->op[other].tick < t->op[index].tick;
      if (earlier && (k == op->n_in || t->p->ops.v[other].out.storage == s))
        return true;
    }
  }
  return false;
}

/* What lies between members and waits for one has to become a member. */
static void add_between(struct tiler *t)
{
  int first = t->op[t->group.v[0]].tick, last = t->op[t->group.v[t->group.n - 1]].tick;
  for (int i = first; i <= last; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host || t->op[step->index].group || !is_plain(&t->p->ops.v[step->index]) ||
        !waits_for_group(t, step->index))
      continue;
    t->op[step->index].group = t->number;
    *SW_PUSH(t->scratch, &t->group) = step->index;
  }
}

/* Ops joined to this buffer by large ones, as far as MAX_GROUP, and the smaller buffers that live between them. */
static bool collect(struct tiler *t, int storage)
{
  t->group.n = 0;
  t->number++;
  join(t, storage);
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    for (int k = 0; k <= op->n_in; k++) {
      int s = operand(op, k)->storage;
      if (t->group.n < MAX_GROUP && is_large(t, s) && is_free(t, s))
        join(t, s);
    }
  }
  sort_members(t);
  add_between(t);
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    bool inside = is_free(t, s);
    for (int k = 0; inside && k < t->storage[s].ops.n; k++)
      inside = t->op[t->storage[s].ops.v[k]].group == t->number;
    if (inside)
      t->storage[s].group = t->number;
  }
  sort_members(t);
  return is_closed(t);
}

/* Ops of others between the group's first and last step run before it. */
static bool can_run_together(const struct tiler *t)
{
  for (int i = t->op[t->group.v[0]].tick; i <= t->op[t->group.v[t->group.n - 1]].tick; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host)
      return false;
    const struct op_facts *op = &t->op[step->index];
    if (op->group != t->number && (op->tiled || waits_for_group(t, step->index)))
      return false;
  }
  return true;
}

/* -- the loop -- */

/* Host dim that a loop walks from end to end, -1: none. */
static int dim_of(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int loop)
{
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] > 1 && s->stride[d] == x->step[loop] && s->size[d] == op->range[loop])
      return d;
  return -1;
}

static int loop_of(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x, int dim)
{
  for (int l = 0; l < op->n_loops; l++)
    if (x->step[l] == s->stride[dim] && op->range[l] == s->size[dim])
      return l;
  return -1;
}

/* Whether an access walks all of a buffer, a dim a loop, so that it can walk a smaller one. */
static bool walks_all(const struct sw_storage *s, const struct sw_op *op, const struct sw_access *x)
{
  int walked = 0, dims = 0;
  for (int l = 0; l < op->n_loops; l++) {
    if (x->step[l] && dim_of(s, op, x, l) < 0)
      return false;
    walked += x->step[l] != 0;
  }
  for (int d = 0; d < s->rank; d++)
    dims += s->size[d] > 1;
  return !x->offset && walked == dims;
}

/* Gives every op of the group the loop, and every buffer inside the dim, that belong to this loop of the first op. */
static bool spread(struct tiler *t, int loop)
{
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    t->op[t->group.v[i]].loop = -1;
    for (int k = 0; k <= op->n_in; k++)
      t->storage[operand(op, k)->storage].dim = -1;
  }
  ints queue = {0};
  *SW_PUSH(t->scratch, &queue) = t->group.v[0];
  t->op[t->group.v[0]].loop = loop;
  for (int i = 0; i < queue.n; i++) {
    const struct sw_op *op = &t->p->ops.v[queue.v[i]];
    int l = t->op[queue.v[i]].loop;
    if (l >= op->n_written || sw_work_of(&t->quiet, t->o, t->p, op, t->w) != SW_OK || t->w->var[l].eps)
      return false;
    for (int k = 0; k <= op->n_in; k++) {
      const struct sw_access *x = operand(op, k);
      const struct sw_storage *s = &t->p->storages.v[x->storage];
      struct storage_facts *f = &t->storage[x->storage];
      if (f->group != t->number)
        continue;
      int dim = x->step[l] ? dim_of(s, op, x, l) : -1;
      if (dim < 0 || !walks_all(s, op, x) || (f->dim >= 0 && f->dim != dim))
        return false;
      f->dim = dim;
      for (int j = 0; j < f->ops.n; j++) {
        const struct sw_op *other = &t->p->ops.v[f->ops.v[j]];
        for (int m = 0; m <= other->n_in; m++) {
          if (operand(other, m)->storage != x->storage)
            continue;
          int *known = &t->op[f->ops.v[j]].loop, there = loop_of(s, other, operand(other, m), dim);
          if (there < 0 || (*known >= 0 && *known != there))
            return false;
          if (*known < 0)
            *SW_PUSH(t->scratch, &queue) = f->ops.v[j];
          *known = there;
        }
      }
    }
  }
  return queue.n == t->group.n;
}

/* Bytes of memory traffic that tiles save, and that they add. */
static int64_t saved_bytes(const struct tiler *t)
{
  int64_t sum = 0;
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group == t->number && is_large(t, s))
      sum += sw_layout_bytes(t->p->storages.v[s].layout) * t->storage[s].ops.n;
  }
  return sum;
}

static int64_t repeated_bytes(const struct tiler *t)
{
  int64_t sum = 0;
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    for (int k = 0; k < op->n_in; k++) {
      const struct sw_layout *l = t->p->storages.v[op->in[k].storage].layout;
      if (l && !op->in[k].step[t->op[t->group.v[i]].loop])
        sum += sw_layout_bytes(l);
    }
  }
  return sum;
}

/* The fewest tiles with which all that an op touches inside the group fits at once; 0: none. */
static int64_t count_tiles(const struct tiler *t)
{
  int64_t range = t->p->ops.v[t->group.v[0]].range[t->op[t->group.v[0]].loop], most = 0;
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    int64_t bytes = 0;
    for (int k = 0; k <= op->n_in; k++)
      if (t->storage[operand(op, k)->storage].group == t->number)
        bytes += sw_layout_bytes(t->p->storages.v[operand(op, k)->storage].layout);
    most = bytes > most ? bytes : most;
  }
  for (int64_t n = 2; n <= MAX_TILES && range / n >= 2; n++)
    if (range % n == 0 && most / n <= t->o->lx_bytes * t->o->cores)
      return n;
  return 0;
}

/* The loop of the first op that repeats least; -1: none is worth it. */
static int choose_loop(struct tiler *t, int64_t *n_tiles)
{
  const struct sw_op *first = &t->p->ops.v[t->group.v[0]];
  int best = -1;
  int64_t least = saved_bytes(t);
  for (int l = 0; l < first->n_written; l++) {
    if (!spread(t, l))
      continue;
    int64_t n = count_tiles(t);
    if (!n || repeated_bytes(t) * (n - 1) >= least)
      continue;
    least = repeated_bytes(t) * (n - 1);
    best = l;
    *n_tiles = n;
  }
  return best >= 0 && spread(t, best) ? best : -1;
}

/* -- the tiles -- */

/* One op of one tile: inside accesses walk the smaller buffers, outside ones a slice. */
static struct sw_op op_of_tile(const struct tiler *t, const struct sw_op *whole, int loop, int64_t tile, int64_t n)
{
  struct sw_op op = *whole;
  op.range[loop] /= n;
  for (int k = 0; k <= op.n_in; k++) {
    struct sw_access *x = k < op.n_in ? &op.in[k] : &op.out;
    const struct sw_storage *s = &t->p->storages.v[x->storage];
    if (t->storage[x->storage].group != t->number) {
      x->offset += x->step[loop] * op.range[loop] * tile;
      if (k == op.n_in)
        op.role = SW_ROLE_WRITE;
      continue;
    }
    const struct sw_storage *shorter = &t->shorter[x->storage];
    for (int l = 0; l < op.n_loops; l++)
      if (x->step[l])
        x->step[l] = shorter->stride[dim_of(s, whole, operand(whole, k), l)];
    x->storage = t->storage_of[x->storage];
  }
  return op;
}

/* The same op as the body of a loop: what it touches outside moves on. */
static struct sw_op op_of_loop(const struct tiler *t, const struct sw_op *whole, int loop, int64_t n)
{
  struct sw_op op = op_of_tile(t, whole, loop, 0, n);
  struct sw_level *level = &op.level[op.n_levels++];
  *level = (struct sw_level){.loop = t->p->n_loops, .count = n, .cut = loop};
  for (int k = 0; k <= op.n_in; k++)
    if (t->storage[operand(whole, k)->storage].group != t->number) {
      struct sw_access *x = k < op.n_in ? &op.in[k] : &op.out;
      x->advance[op.n_levels - 1] = x->step[loop] * op.range[loop];
    }
  return op;
}

/* Whether every access of a tile has device coordinates. */
static bool has_coordinates(const struct tiler *t, const struct sw_op *whole, const struct sw_op *op)
{
  for (int k = 0; k <= op->n_in; k++) {
    int s = operand(whole, k)->storage;
    const struct sw_layout *l = t->p->storages.v[s].layout;
    struct sw_coord coord[SW_MAX_DEVICE_RANK];
    if (t->storage[s].group == t->number)
      l = t->shorter[s].layout;
    if (l && !sw_layout_coords(l, op, operand(op, k), coord))
      return false;
  }
  return true;
}

static bool prepare(struct tiler *t, int64_t n)
{
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group != t->number)
      continue;
    t->shorter[s] = t->p->storages.v[s];
    t->storage_of[s] = s;
    if (!sw_shorten(t->job->arena, &t->shorter[s], t->storage[s].dim, n))
      return false;
  }
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
    for (int64_t tile = 0; tile < n; tile++) {
      struct sw_op op = op_of_tile(t, whole, t->op[t->group.v[i]].loop, tile, n);
      if (!has_coordinates(t, whole, &op))
        return false;
    }
  }
  return true;
}

/* The buffers of one tile more. */
static void add_buffers(struct tiler *t, int tile)
{
  struct sw_arena *a = t->job->arena;
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group != t->number)
      continue;
    struct sw_storage *more = SW_PUSH(a, &t->p->storages);
    *more = t->shorter[s];
    more->name = sw_arena_printf(a, "%s/tile%d", t->shorter[s].name, tile + 1);
    t->storage_of[s] = t->p->storages.n - 1;
  }
}

/* All ops run where the group ended. */
static ints *run_together(struct tiler *t)
{
  ints *order = &t->at_tick[t->op[t->group.v[t->group.n - 1]].tick];
  t->moved = true;
  for (int i = 0; i < t->group.n; i++) {
    *SW_PUSH(t->scratch, order) = t->group.v[i];
    t->op[t->group.v[i]].tiled = true;
  }
  return order;
}

static void shorten_buffers(struct tiler *t)
{
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    if (t->storage[s].group == t->number)
      t->p->storages.v[s] = t->shorter[s];
  }
}

/* False when some access does not go straight. */
static bool commit_loop(struct tiler *t, int64_t n)
{
  struct sw_op *body = SW_NEW_N(t->scratch, struct sw_op, t->group.n);
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
    int64_t advance[SW_MAX_LEVELS];
    if (whole->n_levels == SW_MAX_LEVELS)
      return false;
    body[i] = op_of_loop(t, whole, t->op[t->group.v[i]].loop, n);
    for (int k = 0; k <= whole->n_in; k++) {
      int s = operand(whole, k)->storage;
      const struct sw_layout *l = t->p->storages.v[s].layout;
      if (l && t->storage[s].group != t->number && !sw_access_advance(l, &body[i], operand(&body[i], k), advance))
        return false;
    }
  }
  run_together(t);
  for (int i = 0; i < t->group.n; i++)
    t->p->ops.v[t->group.v[i]] = body[i];
  shorten_buffers(t);
  t->p->n_loops++;
  return true;
}

/* Tile 0 takes the places of the group's ops and buffers, at last, since the others are made from them. */
static void commit_one_by_one(struct tiler *t, int64_t n)
{
  struct sw_arena *a = t->job->arena;
  ints *order = run_together(t);
  for (int tile = 1; tile < n; tile++) {
    add_buffers(t, tile);
    for (int i = 0; i < t->group.n; i++) {
      const struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
      struct sw_op op = op_of_tile(t, whole, t->op[t->group.v[i]].loop, tile, n);
      op.name = sw_arena_printf(a, "%s/tile%d", whole->name, tile + 1);
      *SW_PUSH(a, &t->p->ops) = op;
      *SW_PUSH(t->scratch, order) = t->p->ops.n - 1;
    }
  }
  for (int i = 0; i < t->group.n; i++) {
    int s = t->p->ops.v[t->group.v[i]].out.storage;
    t->storage_of[s] = s;
  }
  for (int i = 0; i < t->group.n; i++) {
    struct sw_op *whole = &t->p->ops.v[t->group.v[i]];
    *whole = op_of_tile(t, whole, t->op[t->group.v[i]].loop, 0, n);
  }
  shorten_buffers(t);
}

/* The members may still belong to another group. */
static void give_up(struct tiler *t)
{
  for (int i = 0; i < t->group.n; i++) {
    const struct sw_op *op = &t->p->ops.v[t->group.v[i]];
    t->op[t->group.v[i]].group = 0;
    for (int k = 0; k <= op->n_in; k++)
      if (t->storage[operand(op, k)->storage].group == t->number)
        t->storage[operand(op, k)->storage].group = 0;
  }
}

static void rebuild_steps(struct tiler *t)
{
  SW_VEC(struct sw_step) steps = {0};
  for (int i = 0; i < t->p->steps.n; i++) {
    const struct sw_step *step = &t->p->steps.v[i];
    if (step->is_host || !t->op[step->index].tiled)
      *SW_PUSH(t->job->arena, &steps) = *step;
    for (int k = 0; k < t->at_tick[i].n; k++)
      *SW_PUSH(t->job->arena, &steps) = (struct sw_step){.is_host = false, .index = t->at_tick[i].v[k]};
  }
  memcpy(&t->p->steps, &steps, sizeof steps);
}

void sw_tile(struct sw_job *job, const struct sw_options *o, struct sw_program *p)
{
  struct tiler t = {.job = job, .o = o, .p = p, .scratch = sw_arena_new(job->arena, SIZE_MAX)};
  int n_storages = p->storages.n, n_ops = p->ops.n, failures = 0;
  t.quiet = (struct sw_job){.arena = t.scratch, .cancel = job->cancel};
  t.storage = SW_NEW_N(t.scratch, struct storage_facts, n_storages);
  t.op = SW_NEW_N(t.scratch, struct op_facts, n_ops);
  t.w = SW_NEW(t.scratch, struct sw_work);
  t.shorter = SW_NEW_N(t.scratch, struct sw_storage, n_storages);
  t.storage_of = SW_NEW_N(t.scratch, int, n_storages);
  t.at_tick = SW_NEW_N(t.scratch, ints, p->steps.n);
  look(&t);
  for (int s = 0; s < n_storages && failures < MAX_FAILURES; s++) {
    int64_t n = 0;
    if (!is_large(&t, s) || !is_free(&t, s))
      continue;
    if (collect(&t, s) && can_run_together(&t) && choose_loop(&t, &n) >= 0 && prepare(&t, n)) {
      if (!commit_loop(&t, n))
        commit_one_by_one(&t, n);
    } else {
      give_up(&t);
      failures++;
    }
  }
  if (t.moved)
    rebuild_steps(&t);
  sw_arena_free(t.scratch);
}
