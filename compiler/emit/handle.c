#include "compiler/emit/handle.h"

#include "base/json.h"

#include <openssl/sha.h>

#include <stdlib.h>
#include <string.h>

/* Where an op comes from, in the form of superdsc.md 8.2. Its id is a hash of the rest, so that equal origins have equal
 * ids in every build: the first 8 bytes of SHA-256 of the compact text with sorted keys, without the last bit. */

static const char *id_of(struct sw_job *job, const json_t *handle)
{
  json_t *ids = json_array(), *text = json_object();
  size_t i;
  json_t *part;
  json_array_foreach (json_object_get(handle, "fused_from"), i, part)
    json_array_append(ids, json_object_get(part, "id"));
  json_object_set(text, "aten_op", json_object_get(handle, "aten_op"));
  json_object_set_new(text, "fused_from", ids);
  json_object_set(text, "ir_chain", json_object_get(handle, "ir_chain"));
  json_object_set(text, "source", json_object_get(handle, "source"));
  json_object_set_new(text, "version", json_integer(2));
  char *bytes = json_dumps(text, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENSURE_ASCII);
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256((const unsigned char *)bytes, strlen(bytes), hash);
  free(bytes);
  json_decref(text);
  uint64_t id = 0;
  for (int k = 0; k < 8; k++)
    id = id << 8 | hash[k];
  return sw_arena_printf(job->arena, "%llu", (unsigned long long)(id >> 1));
}

/* "model.py:12" */
static json_t *source_of(const char *source)
{
  const char *colon = source ? strrchr(source, ':') : NULL;
  if (!colon)
    return json_null();
  return json_pack("{s:s%, s:I, s:i, s:n, s:n}", "file", source, (size_t)(colon - source), "start_line",
                   (json_int_t)strtoll(colon + 1, NULL, 10), "start_col", 0, "end_line", "end_col");
}

/* Takes chain, fused and history. */
static json_t *handle(struct sw_job *job, const char *source, const char *aten, json_t *chain, json_t *fused, json_t *history)
{
  json_t *h = json_object();
  json_object_set_new(h, "id", json_null());
  json_object_set_new(h, "source", source_of(source));
  json_object_set_new(h, "aten_op", aten ? json_string(aten) : json_null());
  json_object_set_new(h, "ir_chain", chain);
  json_object_set_new(h, "fused_from", fused);
  json_object_set_new(h, "transform_history", history);
  json_object_set_new(h, "id", json_string(id_of(job, h)));
  return h;
}

static void release(void *p)
{
  json_decref(p);
}

const json_t *sw_debug_handle(struct sw_job *job, const struct sw_program *p, const struct sw_op *op)
{
  json_t *chain = json_array(), *fused = json_array(), *history = json_array();
  const char *aten = NULL;
  for (int i = 0; i < op->nodes.n; i++) {
    const struct sw_node *node = &p->graph->nodes.v[op->nodes.v[i]];
    aten = node->target;
    json_array_append_new(chain, json_string(node->name));
    if (op->nodes.n > 1)
      json_array_append_new(fused, handle(job, node->source, node->target, json_pack("[s]", node->name), json_array(),
                                          json_array()));
  }
  json_array_append_new(chain, json_string(op->name));
  if (!op->nodes.n)
    json_array_append_new(history, json_pack("{s:s, s:s, s:n}", "kind", "insert", "pass_name", "choose", "reason"));
  json_t *h = handle(job, op->source, op->nodes.n == 1 ? aten : NULL, chain, fused, history);
  sw_arena_defer(job->arena, release, h);
  return h;
}
