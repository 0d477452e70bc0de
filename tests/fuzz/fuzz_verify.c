/* Written bundles on any bytes: bundle.mlir, then sdsc_0.json, sdsc_1.json .., cut apart by lines of "----". The simulated
 * card runs them on a few small arguments, or says what is wrong with them. */
#include "compiler/verify/bundle.h"
#include "fuzz.h"

#include <stdio.h>

enum { MAX_FILES = 8, N_ARGUMENTS = 3, ARGUMENT_BYTES = 1 << 18 };

struct piece {
  const char *text;
  size_t len;
};
struct pieces {
  struct piece v[MAX_FILES];
  int n;
};

static bool read_piece(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  const struct pieces *all = ctx;
  int k = 0;
  if (strcmp(name, "bundle.mlir") && (sscanf(name, "sdsc_%d.json", &k) != 1 || ++k < 1))
    k = all->n;
  if (k >= all->n) {
    sw_fault(job, SW_NO_INPUT, name, "no such piece");
    return false;
  }
  *text = all->v[k].text;
  *len = all->v[k].len;
  return true;
}

/* NUL-terminated copies of the pieces: files are read that way too. */
static void cut(struct fuzz *f, struct pieces *out)
{
  static const char mark[] = "\n----\n";
  const char *at = sw_arena_strndup(f->job.arena, f->bytes, f->len), *next;
  do {
    next = strstr(at, mark);
    size_t len = next ? (size_t)(next - at) : strlen(at);
    out->v[out->n++] = (struct piece){sw_arena_strndup(f->job.arena, at, len), len};
    at = next ? next + sizeof mark - 1 : NULL;
  } while (at && out->n < MAX_FILES);
}

static void run(struct fuzz *f)
{
  struct pieces pieces = {0};
  struct sim_argument args[N_ARGUMENTS] = {0};
  cut(f, &pieces);
  for (int i = 0; i < N_ARGUMENTS; i++) {
    args[i].memory = sim_memory_new(f->job.arena, "argument", ARGUMENT_BYTES, true);
    memset(args[i].memory->defined, 1, ARGUMENT_BYTES);
    memset(args[i].memory->bytes, 0, ARGUMENT_BYTES);
  }
  sim_run_bundle(&f->job, &(struct sim_files){read_piece, &pieces}, SIM_LX_BYTES, args, N_ARGUMENTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  return fuzz_run(data, size, (size_t)512 << 20, run);
}
