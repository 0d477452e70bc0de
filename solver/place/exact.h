#ifndef SW_PLACE_EXACT_H
#define SW_PLACE_EXACT_H

#include "solver/place/model.h"

/* Improves r, which may hold a plan already. */
void sw_place_exact(struct sw_job *job, const struct sw_model *model, const struct sw_place_options *o,
                    struct sw_place_result *r);

/* Takes a plan into r if it is legal and better than what r holds: more value, then a lower peak. */
void sw_exact_offer(struct sw_job *job, const struct sw_place_problem *p, struct sw_place_result *r,
                    const int64_t *address, const char *by);

#endif
