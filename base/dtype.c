#include "base/dtype.h"

#include <string.h>

static const struct {
  const char *text, *torch;
  int bytes, number;
} dtypes[] = {
#define X(id, text, torch, bytes, number) {text, torch, bytes, number},
    SW_DTYPES(X)
#undef X
};

const char *sw_dtype_text(enum sw_dtype t)
{
  return dtypes[t].text;
}

const char *sw_dtype_torch(enum sw_dtype t)
{
  return dtypes[t].torch;
}

int sw_dtype_bytes(enum sw_dtype t)
{
  return dtypes[t].bytes;
}

bool sw_dtype_is_float(enum sw_dtype t)
{
  return dtypes[t].text[0] == 'f' || t == SW_BF16;
}

bool sw_dtype_is_integer(enum sw_dtype t)
{
  return dtypes[t].text[0] == 'i' || dtypes[t].text[0] == 'u';
}

bool sw_dtype_is_complex(enum sw_dtype t)
{
  return dtypes[t].text[0] == 'c';
}

enum sw_dtype sw_dtype_from_text(const char *name)
{
  for (int t = 0; t < SW_N_DTYPES; t++)
    if (!strcmp(name, dtypes[t].text) || !strcmp(name, dtypes[t].torch))
      return (enum sw_dtype)t;
  return SW_N_DTYPES;
}

enum sw_dtype sw_dtype_from_number(int number_in_pt2)
{
  for (int t = 0; t < SW_N_DTYPES; t++)
    if (dtypes[t].number == number_in_pt2)
      return (enum sw_dtype)t;
  return SW_N_DTYPES;
}
