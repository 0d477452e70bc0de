/* The tables of layouts.md: 1.3 (layouts), 1.5, 1.6 (identity, bytes), 3.2 (coordinates), 3.6 (moved sticks). */
#include "../unit.h"

#include "compiler/layout/stick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "4,128,64" to numbers; gives their count. */
static int numbers(const char *text, int64_t *out)
{
  int n = 0;
  for (char *end; *text; text = *end == ',' ? end + 1 : end)
    out[n++] = strtoll(text, &end, 10);
  return n;
}

static struct sw_layout layout_of(const char *device_size, const char *stride_map, enum sw_format f)
{
  struct sw_layout l = {.format = f};
  l.rank = numbers(device_size, l.device_size);
  assert_int_equal(l.rank, numbers(stride_map, l.stride_map));
  return l;
}

static struct sw_storage storage_of(const char *size)
{
  struct sw_storage s = {.dtype = SW_F16};
  s.rank = numbers(size, s.size);
  int64_t step = 1;
  for (int d = s.rank - 1; d >= 0; step *= s.size[d--])
    s.stride[d] = step;
  return s;
}

static void form_b_gives_the_layouts_of_the_table(void **state)
{
  (void)state;
  static const struct {
    const char *size, *order, *device_size, *stride_map;
    enum sw_dtype dtype;
  } rows[] = {
      {"", "", "1,64", "-1,-1", SW_F16},
      {"1", "0", "1,64", "-1,-1", SW_F16},
      {"120", "0", "2,64", "64,1", SW_F16},
      {"128", "0", "2,64", "64,1", SW_F16},
      {"512,240", "0,1", "4,512,64", "64,240,1", SW_F16},
      {"512,256", "0,1", "4,512,64", "64,256,1", SW_F16},
      {"512,256", "1,0", "8,256,64", "16384,1,256", SW_F16},
      {"512,256", "0,1,-1", "256,1,512,64", "1,-1,256,-1", SW_F16},
      {"512,1", "0,1", "1,512,64", "-1,1,-1", SW_F16},
      {"1,512", "0,1", "8,1,64", "64,-1,1", SW_F16},
      {"1,1", "0,1", "1,1,64", "-1,-1,-1", SW_F16},
      {"4,96", "0,1", "2,4,64", "64,96,1", SW_F16},
      {"4,96", "1,0", "1,96,64", "6144,1,96", SW_F16},
      {"512,1,256", "0,1,2", "1,4,512,64", "-1,64,256,1", SW_F16},
      {"5,100,150", "0,1,2", "100,3,5,64", "150,64,15000,1", SW_F16},
      {"5,100,150", "1,0,2", "5,3,100,64", "15000,64,150,1", SW_F16},
      {"50,10,200", "0,1,2", "10,4,50,64", "200,64,2000,1", SW_F16},
      {"512,8,240", "0,1,2", "8,4,512,64", "240,64,1920,1", SW_F16},
      {"512,8,256", "0,2,1", "256,1,512,64", "1,16384,2048,256", SW_F16},
      {"512,8,256", "1,0,2", "512,4,8,64", "2048,64,256,1", SW_F16},
      {"512,8,256", "1,2,0", "256,8,8,64", "1,131072,256,2048", SW_F16},
      {"512,8,256", "2,0,1", "512,1,256,64", "2048,16384,1,256", SW_F16},
      {"512,8,256", "2,1,0", "8,8,256,64", "256,131072,1,2048", SW_F16},
      {"1,4,128,64", "0,1,2,3", "4,128,1,1,64", "8192,64,64,-1,1", SW_F16},
      {"2,3,4,5,150", "0,1,2,3,4", "3,4,5,3,2,64", "3000,750,150,64,9000,1", SW_F16},
      {"2,3,4,5", "0,1,2,3,-1", "3,4,5,1,2,64", "20,5,1,-1,60,-1", SW_F16},
      {"5,100,150", "0,1,2", "100,5,5,32", "150,32,15000,1", SW_F32},
      {"4,96", "0,1", "3,4,32", "32,96,1", SW_F32},
      {"128,256", "0,1", "2,128,128", "128,256,1", SW_F8E4M3},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct sw_storage s = storage_of(rows[i].size);
    int64_t text[8];
    int order[8], n = numbers(rows[i].order, text);
    for (int d = 0; d < n; d++)
      order[d] = (int)text[d];
    enum sw_format f = sw_format_of(rows[i].dtype);
    struct sw_layout want = layout_of(rows[i].device_size, rows[i].stride_map, f), got;
    assert_true(sw_layout_make(&got, f, SW_EA_STANDARD, s.rank, s.size, s.stride, order, n));
    if (!sw_layout_equal(&got, &want))
      fail_msg("row %zu: size [%s] order [%s]", i, rows[i].size, rows[i].order);
  }
}

static void form_b_keeps_the_strides_of_the_host(void **state)
{
  (void)state;
  struct sw_layout got, want = layout_of("2,256,64", "64,128,1", SW_FORMAT_FP16);
  int64_t size[] = {128, 256}, stride[] = {1, 128};
  assert_true(sw_layout_make(&got, SW_FORMAT_FP16, SW_EA_STANDARD, 2, size, stride, (int[]){1, 0}, 2));
  assert_true(sw_layout_equal(&got, &want));
}

static void seven_dense_dims_are_too_many(void **state)
{
  (void)state;
  struct sw_layout got;
  struct sw_storage s = storage_of("2,2,2,2,2,2,64");
  assert_false(sw_layout_make(&got, SW_FORMAT_FP16, SW_EA_STANDARD, 7, s.size, s.stride, (int[]){0, 1, 2, 3, 4, 5, 6}, 7));
  assert_false(sw_layout_make(&got, SW_FORMAT_FP16, SW_EA_STANDARD, 7, s.size, s.stride,
                              (int[]){0, 1, 2, 3, 4, 5, 6, -1}, 8));
  assert_true(sw_layout_make(&got, SW_FORMAT_FP16, SW_EA_STANDARD, 6, s.size, s.stride,
                             (int[]){0, 1, 2, 3, 4, 5, -1}, 7));
}

static void sizes_that_cannot_be_counted_are_refused(void **state)
{
  (void)state;
  struct sw_layout got;
  int64_t size[] = {(int64_t)1 << 40, (int64_t)1 << 20}, stride[] = {(int64_t)1 << 20, 1};
  assert_false(sw_layout_make(&got, SW_FORMAT_FP16, SW_EA_STANDARD, 2, size, stride, (int[]){0, 1, -1}, 3));
}

static void bytes_count_whole_sticks(void **state)
{
  (void)state;
  struct sw_layout l = layout_of("100,3,5,64", "150,64,15000,1", SW_FORMAT_FP16);
  assert_int_equal(sw_layout_bytes(&l), 192000);
  l = layout_of("256,1,512,64", "1,-1,256,-1", SW_FORMAT_FP16);
  assert_int_equal(sw_layout_bytes(&l), 16777216);
  assert_int_equal(sw_layout_elements(&l), 8388608);
}

/* "128*d0+d1+64" with ranges "256,128" to an op with one access. */
static struct sw_op op_of(const char *ranges, const char *steps, int64_t offset)
{
  struct sw_op op = {.n_in = 1};
  op.n_loops = op.n_written = numbers(ranges, op.range);
  numbers(steps, op.in[0].step);
  op.in[0].offset = offset;
  op.in[0].index_input = op.out.index_input = -1;
  return op;
}

static const char *coord_text(char *at, const struct sw_coord *c)
{
  char *p = at;
  for (int t = 0; t < c->n; t++) {
    const struct sw_term *m = &c->term[t];
    p += sprintf(p, "%s", t ? "+" : "");
    if (m->num != 1)
      p += sprintf(p, "%d*", (int)m->num);
    p += m->mod ? sprintf(p, "(d%d%%%d)", m->loop, (int)m->mod) : sprintf(p, "d%d", m->loop);
    if (m->den != 1)
      p += sprintf(p, "/%d", (int)m->den);
  }
  if (c->index)
    p += sprintf(p, "%si", c->n ? "+" : "");
  if (c->constant || !(c->n || c->index))
    sprintf(p, "%s%d", c->n || c->index ? "+" : "", (int)c->constant);
  return at;
}

static void coordinates_are_those_of_the_table(void **state)
{
  (void)state;
  static const struct {
    const char *device_size, *stride_map, *ranges, *steps;
    int64_t offset;
    const char *coords;
    enum sw_stick_class class;
  } rows[] = {
      {"2,256,64", "64,128,1", "256,128", "128,1", 0, "d1/64, d0, (d1%64)", SW_STICK_LOOP},
      {"2,256,64", "64,128,1", "128,256", "1,128", 0, "d0/64, d1, (d0%64)", SW_STICK_LOOP},
      {"2,256,64", "64,128,1", "32768", "1", 0, "(d0%128)/64, d0/128, (d0%64)", SW_STICK_LOOP},
      {"1,256,64", "64,64,1", "256,64", "64,1", 0, "0, d0, d1", SW_STICK_LOOP},
      {"4,128,64", "64,256,1", "128,48", "256,1", 0, "0, d0, d1", SW_STICK_LOOP},
      {"4,128,64", "64,256,1", "128,64", "256,1", 64, "1, d0, d1", SW_STICK_LOOP},
      {"4,128,64", "64,256,1", "128,64", "256,1", 32, "0, d0, d1+32", SW_STICK_OFFSET},
      {"4,128,64", "64,256,1", "128,128", "256,1", 32, "d1/64, d0, (d1%64)+32", SW_STICK_OFFSET},
      {"2,4,64", "64,100,1", "3,100", "100,1", 100, "d1/64, d0+1, (d1%64)", SW_STICK_LOOP}, /* reference: +36 */
      {"4,128,64", "64,256,1", "128,128", "256,2", 0, "d1/32, d0, 2*(d1%32)", SW_STICK_OTHER},
      {"256,1,512,64", "1,-1,256,-1", "512,256", "256,1", 0, "d1, 0, d0, 0", SW_STICK_ZERO},
      {"1,512,64", "-1,1,-1", "512", "1", 0, "0, d0, 0", SW_STICK_ZERO},
      {"256,64,2,64", "4096,64,1048576,1", "2,32,256,128", "1048576,128,4096,1", 0,
       "d2, 2*d1+d3/64, d0, (d3%64)", SW_STICK_LOOP},
      {"4,4,64", "64,256,1", "4,8,32", "256,32,1", 0, "d1/2, d0, 32*(d1%2)+d2", SW_STICK_OTHER},
      /* section 8.8: a granite projection */
      {"512,128,1,1,64", "4096,1,8192,-1,128", "512,4096,4096", "4096,0,1", 0, "d0, (d2%128), 0, 0, d2/128",
       SW_STICK_OTHER},
      {"64,512,64", "64,4096,1", "512,4096,4096", "4096,0,1", 0, "d2/64, d0, (d2%64)", SW_STICK_LOOP},
      /* fault report 21: rows 1, 3, 5, 7 of nine */
      {"2,9,64", "64,128,1", "4,128", "256,1", 128, "d1/64, 2*d0+1, (d1%64)", SW_STICK_LOOP},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct sw_layout l = layout_of(rows[i].device_size, rows[i].stride_map, SW_FORMAT_FP16);
    struct sw_op op = op_of(rows[i].ranges, rows[i].steps, rows[i].offset);
    struct sw_coord c[SW_MAX_DEVICE_RANK];
    if (!sw_layout_coords(&l, &op, &op.in[0], c))
      fail_msg("row %zu has no coordinates", i);
    char text[400] = "", one[100];
    for (int j = 0; j < l.rank; j++)
      sprintf(text + strlen(text), "%s%s", j ? ", " : "", coord_text(one, &c[j]));
    assert_string_equal(text, rows[i].coords);
    assert_int_equal(sw_layout__stick(&l, c).class, rows[i].class);
  }
}

static void the_reference_sees_an_offset_in_a_row_slice(void **state)
{
  (void)state;
  struct sw_layout l = layout_of("2,4,64", "64,100,1", SW_FORMAT_FP16);
  struct sw_op op = op_of("3,100", "100,1", 100);
  struct sw_coord c[SW_MAX_DEVICE_RANK];
  assert_true(sw_layout__coords(&l, &op, &op.in[0], SW_OFFSET_REFERENCE, c));
  assert_int_equal(c[2].constant, 36);
  assert_int_equal(sw_layout__stick(&l, c).class, SW_STICK_OFFSET);
}

static void what_would_be_read_wrongly_has_no_coordinates(void **state)
{
  (void)state;
  struct sw_coord c[SW_MAX_DEVICE_RANK];
  struct sw_layout padded = layout_of("2,4,64", "64,100,1", SW_FORMAT_FP16);
  struct sw_op flat = op_of("400", "1", 0), back = op_of("4,64", "-64,1", 192), over = op_of("4,100", "100,1", 60);
  assert_false(sw_layout_coords(&padded, &flat, &flat.in[0], c)); /* (d mod 100) mod 64 is not d mod 64 */
  assert_false(sw_layout_coords(&padded, &over, &over.in[0], c)); /* runs past the row */
  struct sw_layout small = layout_of("1,4,64", "64,64,1", SW_FORMAT_FP16);
  assert_false(sw_layout_coords(&small, &back, &back.in[0], c)); /* reversed */
}

static void a_row_number_lands_on_one_dim_or_nowhere(void **state)
{
  (void)state;
  struct sw_op op = op_of("5,256", "0,1", 0);
  op.in[0].index_input = 1;
  op.in[0].index_step = 256;
  op.in[0].index_range = 20;
  struct sw_coord c[SW_MAX_DEVICE_RANK];
  char text[100];
  struct sw_layout rows = layout_of("20,4,64", "256,64,1", SW_FORMAT_FP16);
  assert_true(sw_layout_coords(&rows, &op, &op.in[0], c));
  assert_string_equal(coord_text(text, &c[0]), "i");
  assert_string_equal(coord_text(text, &c[1]), "d1/64");
  op.in[0].index_range = 128; /* 128 rows on two tiles of a stick */
  struct sw_layout on_stick = layout_of("2,256,64", "16384,1,256", SW_FORMAT_FP16);
  assert_false(sw_layout_coords(&on_stick, &op, &op.in[0], c));
}

static void compatibility_looks_at_loops_only(void **state)
{
  (void)state;
  /* x[128,128] - amax(x, -1, keepdim) as in fault report 4, then dense + sparse along the same dim as in 7 */
  struct sw_layout dense = layout_of("2,128,64", "64,128,1", SW_FORMAT_FP16),
                   sparse = layout_of("1,128,64", "-1,1,-1", SW_FORMAT_FP16);
  struct sw_op rows = op_of("128,128", "1,0", 0), cols = op_of("128,128", "0,1", 0), both = op_of("128,128", "128,1", 0);
  struct sw_seen m = sw_layout__see(&sparse, &rows, &rows.in[0], SW_OFFSET_EXACT),
                 n = sw_layout__see(&sparse, &cols, &cols.in[0], SW_OFFSET_EXACT),
                 x = sw_layout__see(&dense, &both, &both.in[0], SW_OFFSET_EXACT);
  assert_true(sw_layout__compatible(&x, &m));
  assert_false(sw_layout__compatible(&x, &n));
  assert_true(sw_layout__compatible(&m, &m));
}

static void moved_sticks_are_those_of_the_table(void **state)
{
  (void)state;
  static const struct {
    const char *size, *device_size, *stride_map;
    int from, to;
    const char *to_size, *to_map; /* NULL: none */
  } rows[] = {
      {"256,128", "2,256,64", "64,128,1", 1, 0, "4,128,64", "8192,1,128"},
      {"10,20", "1,10,64", "64,20,1", 1, 0, "1,20,64", "1280,1,20"},
      {"64,129", "3,64,64", "64,129,1", 1, 0, "1,129,64", "8256,1,129"},
      {"129,64", "1,129,64", "64,64,1", 1, 0, "3,64,64", "4096,1,64"},
      {"2,256,128", "256,2,2,64", "128,64,32768,1", 2, 1, "128,4,2,64", "1,8192,32768,128"},
      {"2,256,128", "256,2,2,64", "128,64,32768,1", 2, 0, "256,1,128,64", "128,2097152,1,32768"},
      {"64,64,64,64", "64,64,1,64,64", "4096,64,64,262144,1", 3, 0, "64,64,1,64,64", "4096,64,16777216,1,262144"},
      {"1,4,128,64", "4,128,1,1,64", "8192,64,64,-1,1", 3, 2, "4,64,2,1,64", "8192,1,4096,-1,64"},
      {"128,256", "256,1,128,64", "1,-1,256,-1", -1, 1, NULL, NULL},
      {"256,128", "2,256,64", "64,128,1", 1, 1, NULL, NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct sw_storage s = storage_of(rows[i].size);
    struct sw_layout l = layout_of(rows[i].device_size, rows[i].stride_map, SW_FORMAT_FP16), got;
    assert_int_equal(sw_layout__stick_dim(&s, &l), rows[i].from);
    bool moved = sw_layout__move_stick(&s, &l, rows[i].to, &got);
    assert_int_equal(moved, rows[i].to_size != NULL);
    if (!moved)
      continue;
    struct sw_layout want = layout_of(rows[i].to_size, rows[i].to_map, SW_FORMAT_FP16);
    if (!sw_layout_equal(&got, &want))
      fail_msg("row %zu: %s", i, rows[i].size);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(form_b_gives_the_layouts_of_the_table),
      cmocka_unit_test(form_b_keeps_the_strides_of_the_host),
      cmocka_unit_test(seven_dense_dims_are_too_many),
      cmocka_unit_test(sizes_that_cannot_be_counted_are_refused),
      cmocka_unit_test(bytes_count_whole_sticks),
      cmocka_unit_test(coordinates_are_those_of_the_table),
      cmocka_unit_test(the_reference_sees_an_offset_in_a_row_slice),
      cmocka_unit_test(what_would_be_read_wrongly_has_no_coordinates),
      cmocka_unit_test(a_row_number_lands_on_one_dim_or_nowhere),
      cmocka_unit_test(compatibility_looks_at_loops_only),
      cmocka_unit_test(moved_sticks_are_those_of_the_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
