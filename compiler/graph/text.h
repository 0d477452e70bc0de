/* What reader and writer of the text form share. */
#ifndef SW_GRAPH_TEXT_H
#define SW_GRAPH_TEXT_H

#include "compiler/graph/build.h"
#include "compiler/graph/expr.h"

enum sw_text_table { SW_TEXT_LAYOUTS, SW_TEXT_MEMORY_FORMATS };

/* torch's names for numbers of layouts and memory formats (pt2.md section 5): "strided", "channels_last". -1 and NULL
 * when there is none. */
int64_t sw_text__number_of(enum sw_text_table table, const char *name);
const char *sw_text__name_of(enum sw_text_table table, int64_t number);

/* Characters of bare words: names with others stand in quotes. */
bool sw_text__in_word(char c);

#endif
