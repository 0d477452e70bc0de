/* Options that shape a result. The table gives the names on the command line, in HTTP queries, in studies and in
 * result.json; see sw_option_set. */
#ifndef SW_BASE_OPTIONS_H
#define SW_BASE_OPTIONS_H

#include "base/json.h"

enum sw_profile { SW_PROFILE_BEST, SW_PROFILE_TORCH_SPYRE };
enum sw_solver_kind { SW_SOLVER_ILP, SW_SOLVER_ILP_FULL, SW_SOLVER_BEAM, SW_SOLVER_GREEDY };
enum sw_objective { SW_OBJECTIVE_TIME, SW_OBJECTIVE_ELEMENTS };
enum sw_precision { SW_PRECISION_DEVICE, SW_PRECISION_STRICT };
enum sw_lx_placer { SW_LX_EXACT, SW_LX_GREEDY, SW_LX_FIRSTFIT, SW_LX_BESTFIT, SW_LX_STACK };
enum sw_verify_mode { SW_VERIFY_AUTO, SW_VERIFY_ALWAYS, SW_VERIFY_NEVER };

struct sw_pin_text {
  const char *name, *layout; /* "order:1,0" or "device_size:4,128,64/stride_map:64,256,1" */
};

struct sw_texts {
  const char **v;
  int n, cap;
};

struct sw_options {
  enum sw_profile profile;
  enum sw_solver_kind solver;
  enum sw_objective objective;
  enum sw_precision precision;
  enum sw_lx_placer lx_placer;
  enum sw_verify_mode verify;
  bool sharing;      /* one copy may serve several readers */
  bool free_weights; /* parameters and constants may be laid out at load time */
  bool lx, pool;
  int64_t cores, lx_bytes, beam_width, budget;
  SW_VEC(struct sw_pin_text) pins;
  struct sw_texts dim_max; /* "s0=2048:64" */
  struct sw_texts tile;
  struct sw_texts splits; /* "mm=4,8,1" */
  struct sw_texts constants; /* "hbm=120" */
  bool given_sharing, given_free_weights, given_lx_placer, given_objective; /* else they follow the profile */
};

/* The defaults of profile `best`; sw_options_settle makes the rest follow the chosen profile. */
void sw_options_init(struct sw_options *o);
/* Sets one option from text. SW_USAGE with the legal values for a bad name or value. */
enum sw_rc sw_option_set(struct sw_job *job, struct sw_options *o, const char *name, const char *value);
/* Whether there is such an option, and whether it takes a value. */
bool sw_option_known(const char *name);
/* Whether it may be given more than once: each time one more pin, tile and the like. */
bool sw_option_repeats(const char *name);
void sw_options_settle(struct sw_options *o);
/* Pins from a JSON document {NAME: {device_size, stride_map}} or {NAME: "order:1,0"}. */
enum sw_rc sw_options_pin_file(struct sw_job *job, struct sw_options *o, const char *text, size_t len);
/* Constants of the time model from a JSON document {NAME: number}. */
enum sw_rc sw_options_machine_file(struct sw_job *job, struct sw_options *o, const char *text, size_t len);
/* Every effective value as a JSON object, in the table's order. */
void sw_options_write(const struct sw_options *o, struct sw_jw *w);
/* One line an option for help texts: name, values, default, meaning. */
void sw_options_help(struct sw_buf *out);

#endif
