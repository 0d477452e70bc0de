/* What a host step costs: its transfers. Reference: cost-model.md 1 (launch), 10.6 and row 18 of section 12 (link).
 *
 * A tensor that has a layout on the card goes over the link, there for a result, back for an argument: bytes / 28 GB/s.
 * A step that touches the card at all waits once for the host's start of a transfer, 7 us, and so does a run of
 * kernels behind one, but for the first run. What the host computes is not priced (there is no measurement), nor are steps on host memory
 * alone. argmax over f16 [16,1024]: 7000 + 32768 / 28 = 8170 ns. */
#include "compiler/plan/cost.h"
#include "compiler/plan/parts.h"

static double bytes_of(const struct sw_program *p, const struct sw_view *v)
{
  const struct sw_storage *s = v->storage >= 0 ? &p->storages.v[v->storage] : NULL;
  if (!s || s->host_only || !s->layout || s->kind == SW_STORAGE_SCALAR)
    return 0;
  double bytes = sw_dtype_bytes(s->dtype);
  for (int d = 0; d < v->rank; d++)
    bytes *= (double)v->size[d];
  return bytes;
}

static double argument_bytes(const struct sw_program *p, const struct sw_host_arg *args, int n)
{
  double bytes = 0;
  for (int i = 0; i < n; i++) {
    if (args[i].kind == SW_HOST_VIEW)
      bytes += bytes_of(p, &args[i].view);
    bytes += argument_bytes(p, args[i].list, args[i].n_list);
  }
  return bytes;
}

double sw_host_step_ns(const struct sw_program *p, const struct sw_host_step *h)
{
  double bytes = argument_bytes(p, h->args.v, h->args.n);
  for (int i = 0; i < h->results.n; i++)
    bytes += bytes_of(p, &h->results.v[i]);
  const struct sw_machine *m = sw_machine_or_spyre(p->machine);
  return bytes > 0 ? m->launch + bytes / m->link : 0;
}
