#include "compiler/verify/memory.h"

#include "compiler/eval/eval.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  int bytes;
} formats[] = {{"SEN169_FP16", 2}, {"IEEE_FP32", 4}, {"IEEE_INT32", 4}, {"SEN143_FP8", 1}};

int sim_format_find(const char *superdsc_name)
{
  if (!strcmp(superdsc_name, "SENUINT32"))
    return SIM_INT32;
  for (int f = 0; f < SIM_N_FORMATS; f++)
    if (!strcmp(formats[f].name, superdsc_name))
      return f;
  return -1;
}

int sim_format_bytes(enum sim_format f)
{
  return formats[f].bytes;
}

struct sim_memory *sim_memory_new(struct sw_arena *a, const char *name, size_t bytes, bool shared)
{
  struct sim_memory *m = SW_NEW(a, struct sim_memory);
  m->name = name;
  m->n = bytes;
  m->bytes = SW_NEW_N(a, unsigned char, bytes + 8);
  m->defined = SW_NEW_N(a, unsigned char, bytes + 8);
  if (shared) {
    m->writer = SW_NEW_N(a, uint32_t, bytes / 2 + 4);
    m->reader = SW_NEW_N(a, uint32_t, bytes / 2 + 4);
  }
  return m;
}

/* Value of a binary float with e exponent and f fraction bits, IEEE style with infinities unless `finite` (e4m3fn). */
static double decode(unsigned bits, int e, int f, bool finite)
{
  int bias = (1 << (e - 1)) - 1, exponent = (int)(bits >> f) & ((1 << e) - 1);
  unsigned fraction = bits & ((1u << f) - 1);
  double sign = bits >> (e + f) & 1 ? -1 : 1;
  if (exponent == (1 << e) - 1 && !finite)
    return fraction ? NAN : sign * INFINITY;
  if (finite && exponent == (1 << e) - 1 && fraction == (1u << f) - 1)
    return NAN;
  return exponent ? sign * ldexp(1 + ldexp(fraction, -f), exponent - bias)
                  : sign * ldexp(fraction, 1 - bias - f);
}

/* Bits of a value that the format can hold exactly (it was rounded before). */
static unsigned encode(double v, int e, int f)
{
  int bias = (1 << (e - 1)) - 1;
  unsigned sign = signbit(v) ? 1u << (e + f) : 0, all = (1u << e) - 1;
  if (isnan(v))
    return sign | all << f | ((1u << f) - 1);
  v = fabs(v);
  if (isinf(v))
    return sign | all << f;
  if (v == 0)
    return sign;
  int exponent;
  double fraction = frexp(v, &exponent) * 2; /* 1 <= fraction < 2 */
  exponent += bias - 1;
  if (exponent <= 0)
    return sign | (unsigned)ldexp(v, bias - 1 + f);
  return sign | (unsigned)exponent << f | (unsigned)ldexp(fraction - 1, f);
}

static enum sim_clash touch_read(struct sim_memory *m, int64_t at, int bytes, uint32_t stamp)
{
  if (at < 0 || (uint64_t)at + (uint64_t)bytes > m->n)
    return SIM_OUTSIDE;
  if (!m->writer)
    return SIM_FINE;
  uint32_t w = m->writer[at / 2], *r = &m->reader[at / 2];
  if (w != stamp && (w - 1) / 64 == (stamp - 1) / 64 && w)
    return SIM_RACE;
  /* Two readers: remember that it was more than one core (core number 63). */
  *r = *r && *r != stamp && (*r - 1) / 64 == (stamp - 1) / 64 ? (stamp - 1) / 64 * 64 + 64 : stamp;
  return SIM_FINE;
}

static enum sim_clash touch_write(struct sim_memory *m, int64_t at, const void *bits, int bytes, bool defined,
                                  uint32_t stamp)
{
  if (at < 0 || (uint64_t)at + (uint64_t)bytes > m->n)
    return SIM_OUTSIDE;
  if (m->writer) {
    uint32_t r = m->reader[at / 2], *w = &m->writer[at / 2];
    if (r && r != stamp && (r - 1) / 64 == (stamp - 1) / 64)
      return SIM_RACE;
    bool other_wrote = *w && *w != stamp && (*w - 1) / 64 == (stamp - 1) / 64;
    if (other_wrote && (memcmp(m->bytes + at, bits, (size_t)bytes) || m->defined[at] != defined))
      return SIM_RACE;
    *w = stamp;
  }
  memcpy(m->bytes + at, bits, (size_t)bytes);
  memset(m->defined + at, defined, (size_t)bytes);
  return SIM_FINE;
}

enum sim_clash sim_load(struct sim_memory *m, int64_t at, enum sim_format f, uint32_t stamp, struct sim_value *out)
{
  enum sim_clash clash = touch_read(m, at, formats[f].bytes, stamp);
  if (clash != SIM_FINE)
    return clash;
  out->poison = false;
  for (int i = 0; i < formats[f].bytes; i++)
    out->poison |= !m->defined[at + i];
  const unsigned char *p = m->bytes + at;
  uint16_t half;
  float single;
  int32_t whole;
  switch (f) {
  case SIM_FP16: memcpy(&half, p, 2), out->v = decode(half, 5, 10, false); break;
  case SIM_FP32: memcpy(&single, p, 4), out->v = (double)single; break;
  case SIM_INT32: memcpy(&whole, p, 4), out->v = whole; break;
  default: out->v = decode(*p, 4, 3, true); break;
  }
  return SIM_FINE;
}

enum sim_clash sim_store(struct sim_memory *m, int64_t at, enum sim_format f, uint32_t stamp, struct sim_value v)
{
  unsigned char bits[4] = {0};
  uint16_t half;
  float single;
  int32_t whole;
  if (v.poison)
    v.v = 0;
  switch (f) {
  case SIM_FP16: half = (uint16_t)encode(sw_round_to(SW_F16, v.v), 5, 10), memcpy(bits, &half, 2); break;
  case SIM_FP32: single = (float)v.v, memcpy(bits, &single, 4); break;
  case SIM_INT32:
    whole = v.v >= INT32_MAX ? INT32_MAX : v.v <= INT32_MIN ? INT32_MIN : (int32_t)v.v;
    memcpy(bits, &whole, 4);
    break;
  default: bits[0] = (unsigned char)encode(sw_round_to(SW_F8E4M3, v.v), 4, 3); break;
  }
  return touch_write(m, at, bits, formats[f].bytes, !v.poison, stamp);
}

enum sim_clash sim_copy(struct sim_memory *to, int64_t to_at, struct sim_memory *from, int64_t from_at, int bytes,
                        uint32_t stamp)
{
  unsigned char bits[4];
  enum sim_clash clash = touch_read(from, from_at, bytes, stamp);
  if (clash != SIM_FINE)
    return clash;
  memcpy(bits, from->bytes + from_at, (size_t)bytes);
  return touch_write(to, to_at, bits, bytes, from->defined[from_at], stamp);
}
