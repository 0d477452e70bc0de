/* Byte strings to integers, open addressing, in an arena. Iteration order does not exist on purpose: nothing of a
 * result may depend on hashing. Keys are copied. */
#ifndef SW_BASE_MAP_H
#define SW_BASE_MAP_H

#include "base/arena.h"

struct sw_map {
  struct sw_arena *arena;
  struct sw_map_slot *slots;
  size_t n, cap;
};

/* Value of the key, or -1. */
int64_t sw_map_get(const struct sw_map *m, const void *key, size_t len);
/* Sets the key's value (>= 0); gives the value it had, or -1 if the key is new. */
int64_t sw_map_set(struct sw_map *m, const void *key, size_t len, int64_t value);

int64_t sw_map_get_str(const struct sw_map *m, const char *key);
int64_t sw_map_set_str(struct sw_map *m, const char *key, int64_t value);

/* 64-bit hash of bytes, for content keys. */
uint64_t sw_hash(const void *p, size_t len);

#endif
