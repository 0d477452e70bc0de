/* Memory of one job: one arena, freed at once.
 *
 * An allocation never returns NULL. When the arena's budget is spent, or the system refuses, control jumps to the
 * innermost sw_arena_run() of this thread's arena, which returns false; the caller reports SW_LIMIT. So code between
 * owns nothing that the arena does not know: foreign objects (json_t, zip_t, FILE) are handed over with
 * sw_arena_defer() as soon as they exist.
 *
 * Built with SW_ARENA_MALLOC every object is its own malloc, so that ASan sees each one. */
#ifndef SW_BASE_ARENA_H
#define SW_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_arena;

/* A root arena with a budget in bytes, or (parent given) a child that draws on its parent's budget, jumps where the
 * parent jumps and goes when the parent goes at the latest. A root that can't be made is NULL. */
struct sw_arena *sw_arena_new(struct sw_arena *parent, size_t budget_bytes);

/* Runs the deferred calls, newest first, frees all memory and the children. NULL is fine. */
void sw_arena_free(struct sw_arena *a);

/* Runs body(ctx). False when an allocation of `a` or of a child did not fit; what was allocated stays until
 * sw_arena_free. May be nested: the innermost run catches. */
bool sw_arena_run(struct sw_arena *a, void (*body)(void *ctx), void *ctx);

/* Zeroed memory for n objects of `size` bytes (n = 0 gives a valid pointer). Overflow of n * size counts as spent. */
void *sw_arena_alloc(struct sw_arena *a, size_t n, size_t size) __attribute__((returns_nonnull));
#define SW_NEW(a, T) ((T *)sw_arena_alloc((a), 1, sizeof(T)))
#define SW_NEW_N(a, T, n) ((T *)sw_arena_alloc((a), (size_t)(n), sizeof(T)))

char *sw_arena_strndup(struct sw_arena *a, const char *s, size_t len);
char *sw_arena_strdup(struct sw_arena *a, const char *s);
char *sw_arena_printf(struct sw_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void *sw_arena_copy(struct sw_arena *a, const void *p, size_t n, size_t size);

/* Calls fn(p) when the arena is freed. */
void sw_arena_defer(struct sw_arena *a, void (*fn)(void *), void *p);

/* Bytes handed out so far, children included; for statistics. */
size_t sw_arena_bytes(const struct sw_arena *a);

/* A list that grows: SW_VEC(struct x) xs = {0}; *SW_PUSH(arena, &xs) = x; for (int i = 0; i < xs.n; i++) xs.v[i] ...
 * SW_PUSH gives a pointer to the new zeroed element, valid until the next push. */
#define SW_VEC(T) \
  struct {        \
    T *v;         \
    int n, cap;   \
  }
#define SW_PUSH(a, vec) \
  ((vec)->v = sw_vec_grow((a), (vec)->v, &(vec)->n, &(vec)->cap, sizeof *(vec)->v), &(vec)->v[(vec)->n - 1])
void *sw_vec_grow(struct sw_arena *a, void *v, int *n, int *cap, size_t size);

#endif
