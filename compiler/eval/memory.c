#include "compiler/eval/tensor.h"

#include <stdlib.h>

/* Cells with their elements behind them, in a list from new to old, so that a node's temporaries are its head. */
struct sw_block {
  struct sw_cells cells;
  struct sw_block *older, *newer;
  uint64_t number;
  size_t bytes;
  double elements[];
};

struct sw_cells *sw_cells_new(struct sw_memory *m, enum sw_dtype dtype, int64_t n)
{
  size_t bytes;
  if (n < 0 || __builtin_mul_overflow((size_t)n, sw_dtype_is_complex(dtype) ? 16u : 8u, &bytes) ||
      bytes > m->max - m->used)
    return NULL;
  struct sw_block *b = calloc(1, sizeof *b + bytes);
  if (!b)
    return NULL;
  m->used += bytes;
  b->bytes = bytes;
  b->number = ++m->n_made;
  b->older = m->newest;
  if (b->older)
    b->older->newer = b;
  m->newest = b;
  b->cells = (struct sw_cells){.dtype = dtype, .n = n, .owner = m};
  if (sw_class_of(dtype) == SW_CLASS_WHOLE)
    b->cells.integer = (int64_t *)(void *)b->elements;
  else
    b->cells.real = b->elements;
  return &b->cells;
}

static void release(struct sw_block *b)
{
  struct sw_memory *m = b->cells.owner;
  if (b->newer)
    b->newer->older = b->older;
  else
    m->newest = b->older;
  if (b->older)
    b->older->newer = b->newer;
  m->used -= b->bytes;
  free(b);
}

void sw_cells_take(struct sw_cells *c)
{
  c->readers++;
}

void sw_cells_drop(struct sw_cells *c)
{
  if (--c->readers == 0 && c->owner)
    release((struct sw_block *)(void *)c);
}

void sw_memory_sweep(struct sw_memory *m, uint64_t mark)
{
  for (struct sw_block *b = m->newest; b && b->number > mark;) {
    struct sw_block *older = b->older;
    if (b->cells.readers == 0)
      release(b);
    b = older;
  }
}

void sw_memory_free(void *p)
{
  struct sw_memory *m = p;
  while (m->newest)
    release(m->newest);
}
