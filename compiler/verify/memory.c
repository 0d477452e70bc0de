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

static float from_bits(uint32_t bits)
{
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

/* A half in a float's fields, times 2^112 for the difference of the biases: 0x3C00 (1.0) -> 0x07800000 = 2^-112 -> 1.
 * Subnormals come out right too. */
static double half_value(uint16_t half)
{
  uint32_t bits = (uint32_t)(half & 0x7FFF) << 13, sign = (uint32_t)(half & 0x8000) << 16;
  if ((half & 0x7C00) == 0x7C00)
    return (double)from_bits(sign | bits | 0x7F800000);
  return (double)from_bits(sign | bits) * 0x1p112;
}

/* 2^e as a double. */
static double power(int e)
{
  uint64_t bits = (uint64_t)(e + 1023) << 52;
  double v;
  memcpy(&v, &bits, 8);
  return v;
}

/* Nearest half, ties to even. Adding a power of two pushes the bits that a half does not have out of a double: for
 * 2^e <= |v| < 2^(e+1) the half's last bit is 2^(e-10), the double's 2^(e'-52), so e' = e + 42. Subnormal halves end at
 * 2^-24. */
static uint16_t half_bits(double v)
{
  uint64_t bits;
  memcpy(&bits, &v, 8);
  unsigned sign = (unsigned)(bits >> 48) & 0x8000;
  int e = (int)(bits >> 52 & 2047) - 1023;
  if (isnan(v))
    return (uint16_t)(sign | 0x7FFF);
  if (e > 15)
    return (uint16_t)(sign | 0x7C00);
  if (e < -14)
    e = -14;
  double push = power(e + 42), rounded = (fabs(v) + push) - push;
  unsigned whole = (unsigned)(rounded * power(10 - e)); /* 0 to 2048, 1024 and more: a normal number */
  return (uint16_t)(sign | (whole + ((unsigned)(e + 14) << 10)));
}

uint16_t sim_dl16_bits(double v)
{
  float single = (float)v;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  unsigned sign = bits >> 16 & 0x8000;
  bits = (bits & 0x7FFFFFFF) + (1u << 13); /* a carry goes to the exponent */
  int exponent = (int)(bits >> 23) - 127 + 31;
  unsigned fraction = bits >> 14 & 511;
  if (isnan(v) || exponent > 63)
    return (uint16_t)(sign | 0x7FFF);
  return exponent < 0 ? (uint16_t)sign : (uint16_t)(sign | (unsigned)exponent << 9 | fraction);
}

double sim_dl16_value(unsigned bits)
{
  int exponent = (int)(bits >> 9 & 63), fraction = (int)(bits & 511);
  double sign = bits & 0x8000 ? -1 : 1;
  if (!(bits & 0x7FFF))
    return sign * 0.0;
  if ((bits & 0x7FFF) == 0x7FFF)
    return sign * INFINITY;
  return sign * (512 + fraction) * power(exponent - 31 - 9);
}

/* e4m3fn: 4 exponent bits with bias 7, no infinity, all ones is NaN. */
static double fp8_value(unsigned bits)
{
  int exponent = (int)(bits >> 3) & 15, fraction = (int)(bits & 7);
  double v = (bits & 127) == 127 ? NAN : exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
  return bits & 128 ? -v : v;
}

static unsigned char fp8_bits(double v)
{
  double r = fabs(sw_round_to(SW_F8E4M3, v));
  unsigned sign = signbit(v) ? 128 : 0;
  for (unsigned b = 0; b < 127; b++)
    if (fp8_value(b) == r)
      return (unsigned char)(sign | b);
  return (unsigned char)(sign | 127);
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
  case SIM_FP16: memcpy(&half, p, 2), out->v = m->is_dl16 ? sim_dl16_value(half) : half_value(half); break;
  case SIM_FP32: memcpy(&single, p, 4), out->v = (double)single; break;
  case SIM_INT32: memcpy(&whole, p, 4), out->v = whole; break;
  default: out->v = fp8_value(*p); break;
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
  case SIM_FP16: half = m->is_dl16 ? sim_dl16_bits(v.v) : half_bits(v.v), memcpy(bits, &half, 2); break;
  case SIM_FP32: single = (float)v.v, memcpy(bits, &single, 4); break;
  case SIM_INT32:
    whole = v.v >= INT32_MAX ? INT32_MAX : v.v <= INT32_MIN ? INT32_MIN : (int32_t)v.v;
    memcpy(bits, &whole, 4);
    break;
  default: bits[0] = fp8_bits(v.v); break;
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
