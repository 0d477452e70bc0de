#include "base/map.h"

#include <string.h>

struct sw_map_slot {
  const char *key; /* NULL: free */
  size_t len;
  uint64_t hash;
  int64_t value;
};

/* Eight bytes at a time: keys may be whole tables. The shift brings what a step has mixed upwards down again. */
uint64_t sw_hash(const void *p, size_t len)
{
  const unsigned char *s = p;
  uint64_t h = 14695981039346656037u ^ len, word;
  for (; len >= sizeof word; s += sizeof word, len -= sizeof word) {
    memcpy(&word, s, sizeof word);
    h = (h ^ word) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
  }
  for (size_t i = 0; i < len; i++)
    h = (h ^ s[i]) * 1099511628211u;
  h ^= h >> 32;
  h *= 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

/* The slot that holds the key or would take it. The table is at most half full, so a free slot exists. */
static struct sw_map_slot *slot(const struct sw_map *m, const void *key, size_t len, uint64_t hash)
{
  for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
    struct sw_map_slot *s = &m->slots[i];
    if (!s->key || (s->hash == hash && s->len == len && !memcmp(s->key, key, len)))
      return s;
  }
}

int64_t sw_map_get(const struct sw_map *m, const void *key, size_t len)
{
  if (!m->cap)
    return -1;
  const struct sw_map_slot *s = slot(m, key, len, sw_hash(key, len));
  return s->key ? s->value : -1;
}

static void grow(struct sw_map *m)
{
  struct sw_map old = *m;
  m->cap = old.cap ? old.cap * 2 : 64;
  m->slots = SW_NEW_N(m->arena, struct sw_map_slot, m->cap);
  for (size_t i = 0; i < old.cap; i++)
    if (old.slots[i].key)
      *slot(m, old.slots[i].key, old.slots[i].len, old.slots[i].hash) = old.slots[i];
}

int64_t sw_map_set(struct sw_map *m, const void *key, size_t len, int64_t value)
{
  if (m->n * 2 >= m->cap)
    grow(m);
  uint64_t hash = sw_hash(key, len);
  struct sw_map_slot *s = slot(m, key, len, hash);
  if (s->key) {
    int64_t was = s->value;
    s->value = value;
    return was;
  }
  s->key = sw_arena_strndup(m->arena, key, len);
  s->len = len;
  s->hash = hash;
  s->value = value;
  m->n++;
  return -1;
}

int64_t sw_map_get_str(const struct sw_map *m, const char *key)
{
  return sw_map_get(m, key, strlen(key));
}

int64_t sw_map_set_str(struct sw_map *m, const char *key, int64_t value)
{
  return sw_map_set(m, key, strlen(key), value);
}
