#include "base/arena.h"

#include <limits.h>
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunks double from 4 kB to 1 MB; a larger object gets a chunk of its own. A worked number: ten thousand objects of
 * 100 bytes (1,120,000 with alignment to 16) need 4 + 8 + ... + 512 kB and one chunk of 1 MB. */
enum { FIRST_CHUNK = 4096, LAST_CHUNK = 1 << 20 };

struct chunk {
  struct chunk *next;
  size_t used, size;
  alignas(max_align_t) unsigned char bytes[];
};

struct deferred {
  struct deferred *next;
  void (*fn)(void *);
  void *p;
};

struct sw_arena {
  struct sw_arena *parent, *root;
  struct sw_arena *first_child, *next_sibling, *prev_sibling;
  struct chunk *chunks;
  struct deferred *deferred;
  size_t next_chunk;
  size_t own_bytes;
  /* of the root only */
  size_t budget, spent;
  jmp_buf *trap;
};

struct sw_arena *sw_arena_new(struct sw_arena *parent, size_t budget_bytes)
{
  struct sw_arena *a = calloc(1, sizeof *a);
  if (!a) {
    if (parent && parent->root->trap)
      longjmp(*parent->root->trap, 1);
    return NULL;
  }
  a->next_chunk = FIRST_CHUNK;
  a->parent = parent;
  a->root = parent ? parent->root : a;
  a->budget = budget_bytes;
  if (parent) {
    a->next_sibling = parent->first_child;
    if (a->next_sibling)
      a->next_sibling->prev_sibling = a;
    parent->first_child = a;
  }
  return a;
}

void sw_arena_free(struct sw_arena *a)
{
  if (!a)
    return;
  while (a->first_child)
    sw_arena_free(a->first_child);
  for (struct deferred *d = a->deferred; d; d = d->next)
    d->fn(d->p);
  for (struct chunk *c = a->chunks; c;) {
    struct chunk *next = c->next;
    free(c);
    c = next;
  }
  a->root->spent -= a->own_bytes;
  if (a->parent) {
    if (a->prev_sibling)
      a->prev_sibling->next_sibling = a->next_sibling;
    else
      a->parent->first_child = a->next_sibling;
    if (a->next_sibling)
      a->next_sibling->prev_sibling = a->prev_sibling;
  }
  free(a);
}

bool sw_arena_run(struct sw_arena *a, void (*body)(void *ctx), void *ctx)
{
  jmp_buf here;
  jmp_buf *volatile outer = a->root->trap;
  volatile bool done = false;
  if (!setjmp(here)) {
    a->root->trap = &here;
    body(ctx);
    done = true;
  }
  a->root->trap = outer;
  return done;
}

/* The one way out when memory is short. Without a run around it there is no way to go on: only tests do that. */
static _Noreturn void spent(struct sw_arena *a)
{
  if (a->root->trap)
    longjmp(*a->root->trap, 1);
  fputs("stickwright: out of memory outside sw_arena_run\n", stderr);
  abort();
}

static struct chunk *new_chunk(struct sw_arena *a, size_t bytes)
{
  struct sw_arena *root = a->root;
  if (bytes > root->budget - root->spent)
    spent(a);
  struct chunk *c = calloc(1, sizeof *c + bytes);
  if (!c)
    spent(a);
  root->spent += bytes;
  a->own_bytes += bytes;
  c->size = bytes;
  return c;
}

void *sw_arena_alloc(struct sw_arena *a, size_t n, size_t size)
{
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 4)
    spent(a);
  bytes = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
  struct chunk *c = a->chunks;
#ifndef SW_ARENA_MALLOC
  if (c && c->size - c->used >= bytes) {
    void *p = c->bytes + c->used;
    c->used += bytes;
    return p;
  }
  size_t want = a->next_chunk;
  if (bytes > want / 4) {
    /* A chunk of its own, put behind the open one. */
    struct chunk *own = new_chunk(a, bytes);
    own->used = bytes;
    own->next = c ? c->next : NULL;
    *(c ? &c->next : &a->chunks) = own;
    return own->bytes;
  }
  if (a->next_chunk < LAST_CHUNK)
    a->next_chunk *= 2;
#else
  size_t want = bytes;
#endif
  struct chunk *fresh = new_chunk(a, want);
  fresh->next = c;
  fresh->used = bytes;
  a->chunks = fresh;
  return fresh->bytes;
}

char *sw_arena_strndup(struct sw_arena *a, const char *s, size_t len)
{
  char *p = sw_arena_alloc(a, len + 1, 1);
  memcpy(p, s, len);
  return p;
}

char *sw_arena_strdup(struct sw_arena *a, const char *s)
{
  return sw_arena_strndup(a, s, strlen(s));
}

char *sw_arena_printf(struct sw_arena *a, const char *fmt, ...)
{
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = sw_arena_alloc(a, (size_t)(n < 0 ? 0 : n) + 1, 1);
  if (n > 0)
    vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

void *sw_arena_copy(struct sw_arena *a, const void *p, size_t n, size_t size)
{
  void *q = sw_arena_alloc(a, n, size);
  if (n && size)
    memcpy(q, p, n * size);
  return q;
}

void sw_arena_defer(struct sw_arena *a, void (*fn)(void *), void *p)
{
  struct deferred *d = SW_NEW(a, struct deferred);
  d->fn = fn;
  d->p = p;
  d->next = a->deferred;
  a->deferred = d;
}

size_t sw_arena_bytes(const struct sw_arena *a)
{
  return a == a->root ? a->spent : a->own_bytes;
}

void *sw_vec_grow(struct sw_arena *a, void *v, int *n, int *cap, size_t size)
{
  if (*n == *cap) {
    if (*cap > INT_MAX / 2)
      spent(a);
    int more = *cap ? *cap * 2 : 8;
    void *w = sw_arena_alloc(a, (size_t)more, size);
    if (*n)
      memcpy(w, v, (size_t)*n * size);
    v = w;
    *cap = more;
  }
  ++*n;
  return v;
}
