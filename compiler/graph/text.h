/* What reader and writer of the text form share. */
#ifndef SW_GRAPH_TEXT_H
#define SW_GRAPH_TEXT_H

#include "compiler/graph/build.h"
#include "compiler/graph/expr.h"

enum { SW_TEXT_MAX_NESTING = 32 }; /* lists in lists, graphs in graphs */

/* A block `graph @name { .. }`. It stands for one argument: shared ones could make a small file endless. */
struct sw_text_block {
  struct sw_graph *graph;
  bool used;
};

struct sw_text_mention {
  int line;    /* where its name was first seen */
  bool placed; /* strides or offset are stated */
};

/* One graph that is being read: the top one or a block. */
struct sw_text_scope {
  struct sw_names names;
  SW_VEC(struct sw_text_mention) mentions; /* a value each */
  struct sw_map blocks_by_name;
  SW_VEC(struct sw_text_block) blocks;
  bool returned;
};

struct sw_text {
  struct sw_job *job;
  const char *s;
  int line, brackets, nesting;
  struct sw_text_scope *scope;
};

struct sw_text_args {
  SW_VEC(struct sw_written) list;
};

/* -- tokens, types and arguments (text_parse.c). All skip blanks first; false, NULL or -1 after a fault. -- */

/* Records a fault with the line; gives false. */
bool sw_text__fail(struct sw_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sw_text__blanks(struct sw_text *t);
bool sw_text__skip(struct sw_text *t, char c); /* whether it stood here */
bool sw_text__expect(struct sw_text *t, char c);
bool sw_text__at(struct sw_text *t, const char *w); /* whether this word stands here; not passed */
const char *sw_text__here(struct sw_text *t);       /* what stands here, for messages */
char *sw_text__string(struct sw_text *t);
char *sw_text__name(struct sw_text *t, const char *what); /* a bare word or a string */
bool sw_text__integer(struct sw_text *t, int64_t *out);
bool sw_text__integers(struct sw_text *t, int64_t *out, int max, int *n);
int sw_text__value(struct sw_text *t);         /* %name: its number, made undefined when new */
bool sw_text__type(struct sw_text *t, int id); /* into that value */
bool sw_text__argument(struct sw_text *t, struct sw_arg *out);
bool sw_text__arguments(struct sw_text *t, struct sw_text_args *out); /* ( .. ) */

/* -- names -- */

enum sw_text_table { SW_TEXT_LAYOUTS, SW_TEXT_MEMORY_FORMATS };

/* torch's names for numbers of layouts and memory formats (pt2.md section 5): "strided", "channels_last". -1 and NULL
 * when there is none. */
int64_t sw_text__number_of(enum sw_text_table table, const char *name);
const char *sw_text__name_of(enum sw_text_table table, int64_t number);

/* Characters of bare words: names with others stand in quotes. */
bool sw_text__in_word(char c);

#endif
