/* SPDX-License-Identifier: Apache-2.0 */
/* Results of a bench as entries of the history: one for each runtime that worked. */
#include <stdlib.h>
#include <string.h>

#include "bench/parts.h"
#include "entries/parts.h"

/* ------------------------------------------------------------------ options of a runtime */
/* What does not change how long an inference takes, and what `profile` says in other words. */
static const struct word {
    const char *option, *said; /* NULL: nothing */
} words[] = {{"no-mmap", NULL},
             {"max-memory", NULL},
             {"numa=off", NULL},
             {"no-optimize", "\"optimize\": false"},
             {"no-prepack", "\"prepack\": false"},
             {"flush-denormals", "\"flush_denormals\": true"},
             {"tune", "\"tune\": true"}};

static const struct word *find_word(const char *option)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i].option);
        if (strncmp(option, words[i].option, n) == 0 && (!option[n] || option[n] == '='))
            return &words[i];
    }
    return NULL;
}

static void add_member(text *t, const char *key, size_t n, const char *value)
{
    char *name = text_of("%.*s", (int)n, key);
    text_add(t, ", ");
    text_json(t, name);
    text_add(t, ": ");
    if (value)
        text_json(t, value);
    else
        text_add(t, "true");
    free(name);
}

/* Passes that were taken out are one list. */
static void add_disabled(text *t, const runtime *r)
{
    static const char key[] = "disable-pass=";
    size_t n = 0;
    for (size_t i = 0; i < r->options.n; i++) {
        if (strncmp(r->options.items[i], key, sizeof key - 1) != 0)
            continue;
        text_add(t, n++ ? ", " : ", \"disabled\": [");
        text_json(t, r->options.items[i] + sizeof key - 1);
    }
    text_add(t, n ? "]" : "");
}

char *bench_options_said(const runtime *r)
{
    text t = {.n = 0};
    bool numa = false, cpu = false;
    text_add(&t, "%s", "");
    for (size_t i = 0; i < r->options.n; i++) {
        const char *option = r->options.items[i];
        const struct word *w = find_word(option);
        const size_t key = strcspn(option, "=");
        numa |= strncmp(option, "numa=", 5) == 0;
        cpu |= strncmp(option, "cpu=", 4) == 0;
        if (w)
            text_add(&t, "%s%s", w->said ? ", " : "", w->said ? w->said : "");
        else if (strncmp(option, "disable-pass=", 13) != 0)
            add_member(&t, option, key, option[key] ? option + key + 1 : NULL);
    }
    add_disabled(&t, r);
    const bool ours = strcmp(r->name, "sonde") == 0;
    const char *nodes = getenv("SONDE_NUMA"), *level = getenv("SONDE_CPU");
    if (ours && !cpu && level && *level)
        add_member(&t, "cpu", 3, level);
    if (ours && !numa && nodes && *nodes && strcmp(nodes, "off") != 0)
        add_member(&t, "numa", 4, nodes);
    return t.data;
}

/* ------------------------------------------------------------------ entries */
/* What decides how long an inference takes. */
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
    text_add(t, "%s}", r->options);
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
