#include "compiler/cli/verb.h"

#include "base/options.h"

#include <stdio.h>
#include <string.h>

/* The entry of `known` for a long name or (len 1) a letter: its text behind the letter, or NULL. */
static const char *lookup(const char *const *known, const char *name, size_t len, bool is_letter)
{
  for (; known && *known; known++) {
    const char *k = *known;
    bool has_letter = k[1] == ':';
    const char *rest = has_letter ? k + 2 : k;
    size_t n = strcspn(rest, "=");
    if (is_letter ? has_letter && k[0] == *name : n == len && !memcmp(rest, name, n))
      return rest;
  }
  return NULL;
}

bool sw_cli_parse(struct sw_job *job, int argc, char **argv, const char *const *known, struct sw_options *options,
                  struct sw_cli_args *out)
{
  bool only_operands = false;
  for (int i = 0; i < argc; i++) {
    const char *s = argv[i];
    if (only_operands || s[0] != '-' || !s[1]) {
      *SW_PUSH(job->arena, &out->operands) = s;
      continue;
    }
    if (!strcmp(s, "--")) {
      only_operands = true;
      continue;
    }
    bool is_letter = s[1] != '-';
    const char *name = s + (is_letter ? 1 : 2);
    size_t len = is_letter ? 1 : strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : is_letter && name[1] ? name + 1 : NULL;
    const char *k = lookup(known, name, len, is_letter);
    char *copy = sw_arena_strndup(job->arena, name, len);
    bool is_option = !k && !is_letter && options && sw_option_known(copy);
    if (!k && !is_option) {
      sw_fault(job, SW_USAGE, "there is no option %s", s)->advice = "`stickwright help VERB` lists what there is";
      return false;
    }
    bool wants_value = is_option || k[strcspn(k, "=")] == '=';
    if (wants_value && !value) {
      if (++i >= argc) {
        sw_fail(job, SW_USAGE, "option %s needs a value", s);
        return false;
      }
      value = argv[i];
    } else if (!wants_value && value) {
      sw_fail(job, SW_USAGE, "option %s takes no value", s);
      return false;
    }
    if (is_option) {
      if (sw_option_set(job, options, copy, value) != SW_OK)
        return false;
    } else {
      struct sw_cli_arg *a = SW_PUSH(job->arena, &out->flags);
      a->name = sw_arena_strndup(job->arena, k, strcspn(k, "="));
      a->value = value ? value : "";
    }
  }
  return true;
}

const char *sw_cli_flag(const struct sw_cli_args *args, const char *name)
{
  for (int i = args->flags.n - 1; i >= 0; i--)
    if (!strcmp(args->flags.v[i].name, name))
      return args->flags.v[i].value;
  return NULL;
}

int sw_cli_print(struct sw_job *job, const char *text, size_t len)
{
  if (fwrite(text, 1, len, stdout) != len || fflush(stdout))
    return sw_rc_exit(sw_fail(job, SW_IO, "stdout can't be written"));
  return 0;
}

enum sw_rc sw_cli_read(struct sw_job *job, const char *path, const char **bytes, size_t *len)
{
  return sw_file_read(job, path, (size_t)SW_MAX_INPUT_MB << 20, bytes, len);
}
