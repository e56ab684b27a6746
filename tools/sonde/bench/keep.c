/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a bench as entries of the history: one for each runtime that worked. */
#include <stdlib.h>

#include "bench/parts.h"
#include "entries/parts.h"

/* What decides how long an inference takes. A variant of a runtime is part of its label. */
static void describe(const bench_result *r, const bench_options *o, text *t)
{
    const input_options *in = &o->setup.inputs;
    text_add(t, "{\"threads\": %d, \"batch\": %lld", r->threads, (long long)r->batch);
    if (r->instances > 1)
        text_add(t, ", \"instances\": %d", r->instances);
    if (in->seq_len)
        text_add(t, ", \"seq_len\": %lld", (long long)in->seq_len);
    for (size_t i = 0; i < in->sizes.n; i++) {
        text_add(t, i ? ", " : ", \"sizes\": [");
        text_json(t, in->sizes.items[i]);
        text_add(t, i + 1 < in->sizes.n ? "" : "]");
    }
    if (o->no_pin)
        text_add(t, ", \"pinned\": false");
    text_add(t, "}");
}

static int keep(const bench_result *r, const bench_options *o)
{
    text options = {.n = 0};
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    double *ns = need(malloc((r->latency.n + 1) * sizeof *ns));
    for (size_t i = 0; i < r->latency.n; i++)
        ns[i] = r->latency.value[i] * 1e6;
    describe(r, o, &options);
    what.kind = "bench";
    what.runtime = r->runtime;
    what.version = r->version;
    what.model_hash = r->hashes[0];
    what.model_form = r->hashes[1];
    what.options = options.data;
    what.samples_ns = ns;
    what.sample_count = r->latency.n;
    what.peak_bytes = (uint64_t)r->peak_rss_bytes;
    const int code = history_save(&o->keep, &o->setup.common, r->model, &what);
    text_free(&options);
    free(ns);
    return code;
}

int bench_keep(const bench_results *r, const bench_options *o)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < r->n && !code; i++)
        if (!r->items[i].state && r->items[i].latency.n)
            code = keep(&r->items[i], o);
    return code;
}
