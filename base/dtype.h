/* Torch's dtypes: names in text graphs and in results, bytes per element on the host, number in a .pt2
 * (reference: pt2.md section 5; these are not c10's numbers). */
#ifndef SW_BASE_DTYPE_H
#define SW_BASE_DTYPE_H

#include <stdbool.h>

/* X(id, text name, torch name, bytes, number in .pt2) */
#define SW_DTYPES(X)                               \
  X(U8, "u8", "uint8", 1, 1)                       \
  X(I8, "i8", "int8", 1, 2)                        \
  X(I16, "i16", "int16", 2, 3)                     \
  X(I32, "i32", "int32", 4, 4)                     \
  X(I64, "i64", "int64", 8, 5)                     \
  X(F16, "f16", "float16", 2, 6)                   \
  X(F32, "f32", "float32", 4, 7)                   \
  X(F64, "f64", "float64", 8, 8)                   \
  X(C32, "c32", "complex32", 4, 9)                 \
  X(C64, "c64", "complex64", 8, 10)                \
  X(C128, "c128", "complex128", 16, 11)            \
  X(BOOL, "bool", "bool", 1, 12)                   \
  X(BF16, "bf16", "bfloat16", 2, 13)               \
  X(U16, "u16", "uint16", 2, 28)                   \
  X(F8E4M3, "f8e4m3", "float8_e4m3fn", 1, 29)      \
  X(F8E5M2, "f8e5m2", "float8_e5m2", 1, 30)        \
  X(F8E4M3Z, "f8e4m3z", "float8_e4m3fnuz", 1, 31)  \
  X(F8E5M2Z, "f8e5m2z", "float8_e5m2fnuz", 1, 32)  \
  X(F8E8M0, "f8e8m0", "float8_e8m0fnu", 1, 33)     \
  X(U32, "u32", "uint32", 4, 34)                   \
  X(U64, "u64", "uint64", 8, 35)

enum sw_dtype {
#define X(id, text, torch, bytes, number) SW_##id,
  SW_DTYPES(X)
#undef X
  SW_N_DTYPES
};

const char *sw_dtype_text(enum sw_dtype t);  /* "f16" */
const char *sw_dtype_torch(enum sw_dtype t); /* "float16" */
int sw_dtype_bytes(enum sw_dtype t);
bool sw_dtype_is_float(enum sw_dtype t);
bool sw_dtype_is_integer(enum sw_dtype t); /* bool is not */
bool sw_dtype_is_complex(enum sw_dtype t);
/* SW_N_DTYPES when unknown. */
enum sw_dtype sw_dtype_from_text(const char *name); /* either name */
enum sw_dtype sw_dtype_from_number(int number_in_pt2);

#endif
