/* Reading a graph: which form it has, its digest, and what follows for all forms. */
#include "compiler/graph/infer.h"

#include <openssl/evp.h>
#include <string.h>

enum form { ARCHIVE, PROGRAM, TEXT };

static enum form form_of(const char *bytes, size_t len)
{
  if (len >= 4 && (!memcmp(bytes, "PK\003\004", 4) || !memcmp(bytes, "PK\005\006", 4)))
    return ARCHIVE;
  size_t i = 0;
  while (i < len && strchr(" \t\r\n", bytes[i]) && bytes[i])
    i++;
  return i < len && bytes[i] == '{' ? PROGRAM : TEXT;
}

static void digest(const char *bytes, size_t len, char out[65])
{
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int n = 0;
  if (!EVP_Digest(bytes, len, hash, &n, EVP_sha256(), NULL))
    n = 0;
  for (unsigned int i = 0; i < n; i++) {
    out[2 * i] = "0123456789abcdef"[hash[i] >> 4];
    out[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
  }
  out[2 * n] = 0;
}

/* Whether faults were added since there were `n` of them; then the worst of those. */
static enum sw_rc faults_since(const struct sw_job *job, int n)
{
  enum sw_rc worst = SW_OK;
  for (int i = n; i < job->faults.n; i++)
    if (job->faults.v[i].rc > worst)
      worst = job->faults.v[i].rc;
  return worst;
}

enum sw_rc sw_graph_programs(struct sw_job *job, const char *bytes, size_t len, struct sw_programs *out)
{
  int n_faults = job->faults.n;
  if (form_of(bytes, len) == ARCHIVE)
    sw_graph__list_programs(job, bytes, len, out);
  else
    *SW_PUSH(job->arena, &out->names) = "";
  return faults_since(job, n_faults);
}

enum sw_rc sw_graph_read(struct sw_job *job, const char *name, const char *bytes, size_t len, const char *program,
                         struct sw_graph **out)
{
  int n_faults = job->faults.n, n_left_out = job->faults_left_out;
  struct sw_graph *g = NULL;
  switch (form_of(bytes, len)) {
  case ARCHIVE:
    g = sw_graph__read_archive(job, bytes, len, program);
    break;
  case PROGRAM:
    g = sw_graph__read_program(job, bytes, len, NULL);
    break;
  case TEXT:
    g = sw_graph__read_text(job, bytes, len);
    break;
  }
  enum sw_rc rc = faults_since(job, n_faults);
  if (rc != SW_OK || job->faults_left_out > n_left_out || !g)
    return rc != SW_OK ? rc : SW_INVALID;
  const char *slash = strrchr(name, '/');
  g->name = sw_arena_strdup(job->arena, slash ? slash + 1 : name);
  digest(bytes, len, g->digest);
  sw_graph__verify(job, g);
  rc = faults_since(job, n_faults);
  if (rc != SW_OK)
    return rc;
  sw_graph__census(job, g);
  g = sw_graph__inline(job, g);
  if (faults_since(job, n_faults) == SW_OK)
    sw_graph__check_shapes(job, g);
  rc = faults_since(job, n_faults);
  if (rc == SW_OK)
    *out = g;
  return rc;
}
