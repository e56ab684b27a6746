/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the checks: figures with their units, names with their shares, the list of findings.
 * Names are handed on as they are: whoever prints or writes them escapes what he must. */
#include <math.h>

#include "findings/check.h"

const char *sn_say(sn_case *c, const char *made)
{
    c->failed |= !made;
    return made ? made : "";
}

const char *sn_say_time(sn_case *c, double ns)
{
    /* Borders lie where the last digit shown would round up to the next unit. */
    if (!(ns > 0) || (ns >= 999999.5 && ns < 1e10))
        return SN_SAY(c, "%.3f ms", ns / 1e6);
    if (ns >= 1e10)
        return SN_SAY(c, "%.3f s", ns / 1e9);
    return ns < 999.995 ? SN_SAY(c, "%.1f ns", ns) : SN_SAY(c, "%.2f \xC2\xB5s", ns / 1e3); /* µs */
}

const char *sn_say_bytes(sn_case *c, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    for (; bytes >= 1024 && unit < 4; unit++)
        bytes /= 1024;
    return SN_SAY(c, unit ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

void sn_found(sn_case *c, sonde_severity severity, double gain, const char *topic, const char *said,
              const char *evidence, const char *remedy)
{
    const sonde_finding f = {severity, topic, said, evidence, remedy};
    c->failed |= !sn_vec_push(&c->out->list, c->out->alloc, f) ||
                 !sn_vec_push(&c->out->gains, c->out->alloc, gain > 0 ? gain : 0.0);
}

void sn_few_add(sn_few *w, const char *name, double share)
{
    if (w->n < SN_FEW) {
        w->names[w->n] = *name ? name : "(unnamed)";
        w->shares[w->n] = share;
    }
    w->n++;
    w->share += share;
}

const char *sn_say_few(sn_case *c, const sn_few *w)
{
    const char *text = "";
    for (int i = 0; i < w->n && i < SN_FEW; i++)
        text = SN_SAY(c, "%s%s%s %.1f %%", text, i ? ", " : "", w->names[i], w->shares[i] * 100);
    return w->n > SN_FEW ? SN_SAY(c, "%s and more", text) : text;
}

const sn_prof_step *sn_row_step(const sn_case *c, const sn_prof_row *r)
{
    return r->step < c->p->steps.n ? &c->p->steps.data[r->step] : NULL;
}

const char *sn_row_node(const sn_prof_row *r)
{
    return *r->example ? r->example : r->name;
}

bool sn_is_foreign(const sn_profile *p)
{
    return isnan(p->record_ns);
}
