/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles side by side for the report page: what 'sonde diff' says, by operator, node and
 * shape. */
#include <math.h>

#include "export/page.h"
#include "profile/compare.h"

static void put_change(sn_writer *w, const sn_compare_row *r)
{
    bool first = true;
    const sn_change *c = &r->change;
    sn_put(w, "{");
    sn_put_key_text(w, &first, "name", r->name);
    sn_put_key_text(w, &first, "op", r->op_type);
    sn_put_key_text(w, &first, "node", r->example);
    sn_put_key_number(w, &first, "old_ns", r->old_ns);
    sn_put_key_number(w, &first, "new_ns", r->new_ns);
    sn_put_key_number(w, &first, "old_share", r->old_share);
    sn_put_key_number(w, &first, "new_share", r->new_share);
    sn_put_key_number(w, &first, "old_calls", r->old_calls);
    sn_put_key_number(w, &first, "new_calls", r->new_calls);
    sn_put_key_number(w, &first, "old_median_ns", c->old_median);
    sn_put_key_number(w, &first, "new_median_ns", c->new_median);
    sn_put_key_number(w, &first, "ratio", c->ratio);
    sn_put_key_number(w, &first, "low", c->low > 0 ? c->low : NAN);
    sn_put_key_number(w, &first, "high", c->high);
    sn_put_key(w, &first, "p");
    sn_put_fixed(w, c->p, 9);
    sn_put_key_number(w, &first, "turns", (double)c->turns);
    sn_put_key_text(w, &first, "verdict", sn_verdict_name(c->verdict));
    sn_put(w, "}");
}

static sonde_status put_rows(sn_writer *w, const sn_profile *before, const sn_profile *now,
                             sn_prof_key key, const char *name, bool total, sonde_error *err)
{
    sn_comparison c;
    SN_TRY(sn_profile_compare(before, now, key, now->alloc, &c, err));
    if (total) {
        sn_put(w, ",\"total\":");
        put_change(w, &c.total);
        sn_put(w, ",\"rows\":{");
    } else {
        sn_put(w, ",");
    }
    sn_put_json(w, name);
    sn_put(w, ":[");
    for (size_t i = 0; i < c.rows.n; i++) {
        sn_put(w, i ? "," : "");
        put_change(w, &c.rows.data[i]);
    }
    sn_put(w, "]");
    sn_comparison_free(&c);
    return SONDE_OK;
}

sonde_status sn_page_comparison(const sn_profile *before, const sn_profile *now,
                                const sn_export_options *opt, sn_sink *sink, sonde_error *err)
{
    sn_writer w;
    bool first = true;
    sn_writer_init(&w, sink);
    sn_put(&w, "{");
    sn_put_key_text(&w, &first, "schema", "sonde.page.comparison/1");
    sn_put_key_text(&w, &first, "old", opt->before_title ? opt->before_title : "");
    sn_put_key_text(&w, &first, "new", opt->title ? opt->title : "");
    SN_TRY(put_rows(&w, before, now, SN_BY_OP, "op", true, err));
    SN_TRY(put_rows(&w, before, now, SN_BY_NODE, "node", false, err));
    SN_TRY(put_rows(&w, before, now, SN_BY_SHAPE, "shape", false, err));
    sn_put(&w, "}}\n");
    return sn_writer_finish(&w, err);
}
