/* Recorded bundles of the reference, run on the simulated card; data/superdsc holds copies of its golden directories. */
#ifndef SW_TESTS_GOLDEN_H
#define SW_TESTS_GOLDEN_H

#include "../unit.h"

#include "base/buf.h"
#include "base/files.h"
#include "compiler/verify/bundle.h"
#include "compiler/verify/image.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct golden {
  struct sw_job job;
  const char *folder;
  struct sim_argument args[6];
  int n_args;
  struct image image[6];
  struct image_host host[6];
  const char *in; /* a file that is changed: in each line texts for others; lines with `drop` vanish */
  const char *change[2][2], *drop;
};

static inline const char *replaced(struct sw_arena *a, const char *text, const char *from, const char *to)
{
  struct sw_buf b = {.arena = a};
  for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
    sw_buf_add(&b, text, (size_t)(at - text));
    sw_buf_puts(&b, to);
  }
  sw_buf_puts(&b, text);
  return sw_buf_text(&b);
}

static inline const char *changed(struct sw_arena *a, const char *text, const struct golden *g)
{
  struct sw_buf b = {.arena = a};
  for (const char *end; *text; text = end) {
    end = strchr(text, '\n');
    end = end ? end + 1 : text + strlen(text);
    const char *line = sw_arena_strndup(a, text, (size_t)(end - text));
    if (g->drop && strstr(line, g->drop))
      continue;
    for (int i = 0; i < 2 && g->change[i][0]; i++)
      line = replaced(a, line, g->change[i][0], g->change[i][1]);
    sw_buf_puts(&b, line);
  }
  return sw_buf_text(&b);
}

static inline bool read_file(void *ctx, struct sw_job *job, const char *name, const char **text, size_t *len)
{
  struct golden *g = ctx;
  char path[512];
  snprintf(path, sizeof path, SW_SOURCE_DIR "/tests/data/superdsc/%s/%s", g->folder, name);
  if (sw_file_read(job, path, 1 << 24, text, len) != SW_OK)
    return false;
  if (g->in && !strcmp(g->in, name)) {
    *text = changed(job->arena, *text, g);
    *len = strlen(*text);
  }
  return true;
}

/* A fixed sequence of halves with few bits, so that sums are exact whatever their order. */
static inline double value(int i)
{
  return (((unsigned)i * 2654435761u) >> 20) % 33 / 8.0 - 2;
}

/* Adds an argument: a row-major host tensor on a device layout. */
static inline struct image_host *add(struct golden *g, int rank, const int64_t *size, int device_rank,
                              const int64_t *device_size, const int64_t *stride_map, enum sim_format f)
{
  int n = g->n_args++;
  struct image *im = &g->image[n];
  im->rank = rank;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    im->size[d] = size[d];
    im->stride[d] = stride;
    stride *= size[d];
  }
  im->layout = (struct image_layout){.rank = device_rank, .format = f, .arrangement = "STANDARD"};
  memcpy(im->layout.device_size, device_size, (size_t)device_rank * 8);
  memcpy(im->layout.stride_map, stride_map, (size_t)device_rank * 8);
  struct image_host *h = &g->host[n];
  *h = (struct image_host){stride, SW_NEW_N(g->job.arena, double, stride), SW_NEW_N(g->job.arena, bool, stride)};
  for (int i = 0; i < stride; i++)
    h->v[i] = value(i + 1000 * n);
  g->args[n].memory = sim_memory_new(g->job.arena, "argument", (size_t)image_bytes(im), true);
  return h;
}

static inline struct image_host *add_2d(struct golden *g, int64_t a, int64_t b)
{
  int64_t sticks = (b + 63) / 64;
  return add(g, 2, (int64_t[]){a, b}, 3, (int64_t[]){sticks, a, 64}, (int64_t[]){64, b, 1}, SIM_FP16);
}

/* An argument as its memory lies: element i is lane i mod e of stick i div e. */
static inline struct image_host *add_flat(struct golden *g, int64_t n, enum sim_format f)
{
  int64_t e = 128 / sim_format_bytes(f);
  return add(g, 1, (int64_t[]){n}, 2, (int64_t[]){n / e, e}, (int64_t[]){e, 1}, f);
}

/* Uploads all arguments but the last (the output), runs, downloads the output into host[n_args - 1]. */
static inline enum sw_rc run(struct golden *g)
{
  struct sim_files files = {read_file, g};
  int out = g->n_args - 1;
  for (int i = 0; i < out; i++)
    assert_true(image_upload(g->job.arena, &g->image[i], &g->host[i], false, 0, g->args[i].memory));
  enum sw_rc rc = sim_run_bundle(&g->job, &files, SIM_LX_BYTES, g->args, g->n_args);
  assert_true(image_download(g->job.arena, &g->image[out], g->args[out].memory, &g->host[out]));
  return rc;
}

static inline struct golden begin(const char *folder)
{
  return (struct golden){.job = unit_job(), .folder = folder};
}

static inline void expect(struct golden *g, int64_t i, double want, double tolerance)
{
  const struct image_host *h = &g->host[g->n_args - 1];
  assert_false(h->undefined[i]);
  if (fabs(h->v[i] - want) > tolerance)
    fail_msg("%s: element %d is %g, %g expected", g->folder, (int)i, h->v[i], want);
}

#endif
