/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks, "model;operator;node;kernel nanoseconds" a line: what flame-graph tools and
 * speedscope read. One line per row of the summary by node, totals over the measured runs, so the
 * widths of a flame graph add up to the same wall time as every other format. */
#include <math.h>

#include "export/writer.h"

/* A frame: what separates frames or ends the stack inside a name is replaced. */
static void put_frame(sn_writer *w, const char *name, const char *otherwise)
{
    for (const char *s = name && *name ? name : otherwise; *s;) {
        const bool control = (unsigned char)*s <= ' ' || *s == 0x7f;
        if (*s == ';' || control)
            sn_put(w, control ? "_" : ":");
        s += *s == ';' || control ? 1 : sn_put_char(w, s);
    }
}

static void put_stack(sn_writer *w, const sn_profile *p, const sn_prof_row *r, double ns)
{
    put_frame(w, p->model_name, "model");
    sn_put(w, ";");
    put_frame(w, r->bracket ? r->name : r->op_type, "operator");
    if (!r->bracket) {
        sn_put(w, ";");
        put_frame(w, r->example, r->name);
        if (r->kernel && *r->kernel) {
            sn_put(w, ";");
            put_frame(w, r->kernel, "");
        }
    }
    sn_put(w, " ");
    sn_put_u64(w, ns < 9e18 ? (uint64_t)llround(ns) : (uint64_t)9e18);
    sn_put(w, "\n");
}

static sonde_status write_folded(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_NODE, &s, err));
    sn_writer w;
    sn_writer_init(&w, sink);
    for (size_t i = 0; i < s.rows.n; i++) {
        const double ns = s.rows.data[i].mean_ns * (double)s.iterations;
        if (ns >= 0.5) /* folded nodes took no time and have no width */
            put_stack(&w, p, &s.rows.data[i], ns);
    }
    sn_prof_summary_free(&s);
    return sn_writer_finish(&w, err);
}

const sn_exporter sn_exporter_folded = {.suffix = ".folded",
                                        .name = "folded",
                                        .summary = "Folded stacks for flame graphs, nanoseconds",
                                        .write = write_folded};
