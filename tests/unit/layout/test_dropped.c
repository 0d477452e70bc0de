/* Layouts that are considered and left out: which, and why. What is expected is worked out in the comments. */
#include "../unit.h"

#include "base/options.h"
#include "compiler/layout/layout.h"

#include <string.h>

static const char *const reference[] = {"profile", "torch-spyre", "objective", "elements", NULL};
static const char *const best[] = {"objective", "elements", NULL};

struct run {
  struct sw_job job;
  struct sw_options o;
  struct sw_graph *g;
  struct sw_program *p;
  struct sw_choice *c;
  enum sw_rc rc;
};

static struct run choose(const char *text, const char *const *options)
{
  struct run r = {.job = unit_job()};
  sw_options_init(&r.o);
  for (; *options; options += 2)
    assert_int_equal(sw_option_set(&r.job, &r.o, options[0], options[1]), SW_OK);
  sw_options_settle(&r.o);
  assert_int_equal(sw_graph_read(&r.job, "test", text, strlen(text), NULL, &r.g), SW_OK);
  assert_int_equal(sw_lower(&r.job, &r.o, r.g, &r.p), SW_OK);
  r.rc = sw_choose_layouts(&r.job, &r.o, r.p, &r.c);
  return r;
}

static void done(struct run *r)
{
  sw_arena_free(r->job.arena);
}

/* A drop of this storage and stick (-1: one element a stick) by this op; NULL: none. */
static const struct sw_dropped *drop_of(const struct run *r, const char *storage, int stick, const char *op)
{
  for (int i = 0; i < r->c->dropped.n; i++) {
    const struct sw_dropped *d = &r->c->dropped.v[i];
    if (!strcmp(d->storage, storage) && d->stick == stick && !strcmp(d->op, op))
      return d;
  }
  return NULL;
}

static void expect(const struct run *r, const char *storage, int stick, const char *op, const char *kind, const char *reason,
                   const char *detail)
{
  const struct sw_dropped *d = drop_of(r, storage, stick, op);
  if (!d)
    fail_msg("nothing is said about stick %d of %s at %s", stick, storage, op);
  assert_string_equal(d->kind, kind);
  assert_string_equal(d->reason, reason);
  if (!strstr(d->detail, detail))
    fail_msg("%s stick %d: \"%s\" does not say \"%s\"", storage, stick, d->detail, detail);
}

/* 32 heads of 128 in a row of 4096. The heads of y are dim 0, whose stick would take column 128*head, one element each. */
#define HEADS \
  "%p : f16[64,4096] = input\n%v : f16[64,32,128] = aten.view(%p, [64,32,128])\n" \
  "%q : f16[32,64,128] = aten.permute(%v, [1,0,2])\n%y : f16[32,64,128] = aten.mul.Scalar(%q, 0.5)\nreturn %y\n"

/* The other way round: 64 heads of 128 that are read as a row of 8192. With the heads on the stick, element e of that row is
 * in lane e div 128 (mod 64 is not needed: there are 64), which is no loop. The numbers: h is [64 rows, 64 heads, 128]. */
#define ROWS_OF_HEADS \
  "%a : f16[64,64,128] = input\n%b : f16[64,64,128] = input\n%h : f16[64,64,128] = aten.add.Tensor(%a, %b)\n" \
  "%v : f16[64,8192] = aten.view(%h, [64,8192])\n%y : f16[64,8192] = aten.mul.Scalar(%v, 0.5)\n" \
  "%w : f16[8192,64] = input\n%z : f16[64,64] = aten.mm.default(%y, %w)\nreturn %z\n"

static void a_candidate_that_cannot_be_read_is_dropped_with_its_reason(void **state)
{
  (void)state; /* BR-09 */
  struct run r = choose(HEADS, reference);
  assert_int_equal(r.rc, SW_OK);
  assert_int_equal(r.c->cost, 0);
  /* one operand: the reference takes its stick, the 128, and tries no other */
  expect(&r, "y", 0, "y", "no-candidate", "not-offered", "in this profile");
  expect(&r, "y", 1, "y", "no-candidate", "not-offered", "in this profile");
  assert_null(drop_of(&r, "y", 2, "y"));
  done(&r);
  /* best offers heads and rows as sticks too; one element a stick it offers as well, but p's 128 neighbours would have to be
   * scattered over as many sticks */
  r = choose(HEADS, best);
  assert_int_equal(r.c->cost, 0);
  assert_null(drop_of(&r, "y", 0, "y"));
  assert_null(drop_of(&r, "y", 1, "y"));
  expect(&r, "y", -1, "y", "impossible", "scatter-sticks", "it is on d2 (128 elements), and y has one element a stick");
  done(&r);

  static const char lane[] = "its stick would be floor(d1/128) (d1 < 8192): it stays on each lane for 128 steps";
  r = choose(ROWS_OF_HEADS, reference);
  assert_int_equal(r.rc, SW_OK);
  expect(&r, "h", 1, "y", "impossible", "not-one-loop", lane);
  assert_string_equal(drop_of(&r, "h", 1, "y")->layout, "device_size:128,1,64,64/stride_map:1,8192,8192,128");
  assert_int_equal(drop_of(&r, "h", 1, "y")->operand, 0);
  assert_null(drop_of(&r, "h", 0, "y")); /* the rows are loop d0 of y */
  done(&r);
  r = choose(ROWS_OF_HEADS, best); /* moves the stick first */
  expect(&r, "h", 1, "y", "unread", "not-one-loop", lane);
  expect(&r, "z", 0, "z", "no-candidate", "matrix-result", "N");
  expect(&r, "y", -1, "z", "impossible", "gather-sticks", "dim 1 (8192 elements)"); /* K on the stick */
  done(&r);
}

static void a_dim_that_is_no_whole_sticks_is_named_with_its_size(void **state)
{
  (void)state; /* the row b makes the operands unlike, so the reference tries every dim of whole sticks: 96 and 4 are not */
  const char *g = "%x : f16[4,96,128] = input\n%b : f16[128] = input\n%y : f16[4,96,128] = aten.add.Tensor(%x, %b)\nreturn %y\n";
  struct run r = choose(g, reference);
  assert_int_equal(r.rc, SW_OK);
  expect(&r, "y", 0, "y", "no-candidate", "partial-stick", "dim 0 has 4 elements, not whole sticks of 64");
  expect(&r, "y", 1, "y", "no-candidate", "partial-stick", "dim 1 has 96 elements, not whole sticks of 64");
  done(&r);
  r = choose(g, best); /* takes them */
  assert_null(drop_of(&r, "y", 0, "y"));
  assert_null(drop_of(&r, "y", 1, "y"));
  done(&r);
}

static void a_refusal_lists_the_candidates_that_cannot_be_read(void **state)
{
  (void)state; /* 32 of 1024: column 32*d1 + d2, in a stick of 64 lane 32*(d1 mod 2) + d2 */
  struct run r = choose("%x : f16[8,1024] = input\n%v : f16[8,32,32] = aten.view(%x, [8,32,32])\n"
                        "%y : f16[8,32,32] = aten.mul.Scalar(%v, 2.0)\nreturn %y\n",
                        reference);
  assert_int_equal(r.rc, SW_UNSUPPORTED);
  const char *said = r.job.faults.v[0].detail;
  if (!strstr(said, "all 1 candidates of operand 0 (x) unreadable: its stick would be 32*Mod(d1,2) + d2 (d1 < 32, d2 < 32): it mixes "
                    "loops (device_size:16,8,64/stride_map:64,1024,1)"))
    fail_msg("%s", said);
  done(&r);
}

/* Every stick of what an op writes is a candidate, or one is told why not. */
static void nothing_is_left_out_in_silence(void **state)
{
  (void)state;
  static const char *const graphs[] = {
      HEADS,
      ROWS_OF_HEADS,
      "%x : f16[3,100,200] = input\n%s : f16[3,200] = aten.sum.dim_IntList(%x, [1], keepdim=False)\n"
      "%e : f16[3,200] = aten.exp(%s)\nreturn %e\n",
      "%x : f16[8,128] = input\n%f : f32[8,128] = aten._to_copy(%x, dtype=f32)\n%g : f32[8,128] = aten.mul.Tensor(%f, %f)\n"
      "%y : f16[8,128] = aten._to_copy(%g, dtype=f16)\nreturn %y\n",
      "%x : f16[64,128] = input\n%y : f16[64,128] = aten.softmax.int(%x, 1)\nreturn %y\n",
  };
  for (size_t g = 0; g < 2 * sizeof graphs / sizeof *graphs; g++) {
    struct run r = choose(graphs[g / 2], g % 2 ? best : reference);
    assert_int_equal(r.rc, SW_OK);
    for (int s = 0; s < r.c->n_candidates; s++) {
      const struct sw_storage *t = &r.p->storages.v[s];
      if (t->kind != SW_STORAGE_TEMPORARY || !r.c->candidates[s].n)
        continue;
      int sticks = 1, known = 0; /* none, and each dim of more than one element */
      for (int d = 0; d < t->rank; d++)
        sticks += t->size[d] > 1;
      bool seen[SW_MAX_RANK + 1] = {false};
      for (int i = 0; i < r.c->dropped.n; i++) {
        const struct sw_dropped *d = &r.c->dropped.v[i];
        if (!strcmp(d->storage, t->name) && !strcmp(d->kind, "no-candidate") && !seen[d->stick + 1]) {
          seen[d->stick + 1] = true;
          known++;
        }
      }
      for (int i = 0; i < r.c->candidates[s].n; i++) { /* the lanes' step is that of the dim; -1: none */
        const struct sw_layout *l = &r.c->candidates[s].v[i];
        int stick = -1;
        for (int d = 0; d < t->rank; d++)
          if (t->size[d] > 1 && t->stride[d] == l->stride_map[l->rank - 1])
            stick = d;
        known += !seen[stick + 1];
        seen[stick + 1] = true;
      }
      if (known != sticks)
        fail_msg("%s of graph %d: %d sticks, %d known", t->name, (int)(g / 2), sticks, known);
    }
    done(&r);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_candidate_that_cannot_be_read_is_dropped_with_its_reason),
      cmocka_unit_test(a_dim_that_is_no_whole_sticks_is_named_with_its_size),
      cmocka_unit_test(a_refusal_lists_the_candidates_that_cannot_be_read),
      cmocka_unit_test(nothing_is_left_out_in_silence),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
