/* Sample values of a model: inputs, the outputs that are expected and how far one may be from them. The form is
 * models/NAME.io.json: a JSON file that names files of raw elements beside it. */
#ifndef SW_EVAL_IO_H
#define SW_EVAL_IO_H

#include "compiler/eval/eval.h"

enum sw_io_role { SW_IO_INPUT, SW_IO_OUTPUT, SW_IO_BUFFER_AFTER, SW_IO_INPUT_AFTER };

struct sw_io_value {
  enum sw_io_role role;
  const char *name; /* of the input, or qualified name of the buffer; "0", "1", .. of outputs */
  int order;        /* of inputs and outputs */
  struct sw_evaluated value; /* unknown: None */
  double atol, rtol;
};

struct sw_io {
  const char *name;
  SW_VEC(struct sw_io_value) values; /* in the order of the file */
};

/* Reads the file and those that it names. */
enum sw_rc sw_io_read(struct sw_job *job, const char *path, struct sw_io **out);

/* Gives the inputs to an evaluator, in the order of the graph's user inputs. */
enum sw_rc sw_io_give_inputs(struct sw_job *job, const struct sw_io *io, struct sw_eval *e, const struct sw_graph *g);

/* How far `got` is from an expected value. |got - want| <= atol + rtol * |want| must hold everywhere; NaN and
 * infinities only agree with their like. */
struct sw_difference {
  int64_t elements, outside; /* outside the tolerance */
  double max_error;          /* largest |got - want| */
  double worst;              /* largest |got - want| / (atol + rtol * |want|); inf where the tolerance is 0 */
  int64_t worst_at;          /* row-major number of that element, -1: all exact */
  bool agrees;
  const char *why; /* another kind or size; else NULL */
};
void sw_io_compare(struct sw_arena *a, const struct sw_io_value *want, const struct sw_evaluated *got,
                   struct sw_difference *out);

#endif
