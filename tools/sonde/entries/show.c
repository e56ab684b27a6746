/* SPDX-License-Identifier: Apache-2.0 */
/* One entry: its facts, and its profile as `report` shows and saves one. */
#include <stdlib.h>
#include <string.h>

#include "comparison.h"
#include "entries/parts.h"

static void print_fact(const char *name, const char *value)
{
    char *shown = printable(value);
    if (*shown)
        printf("%-10s %s\n", name, shown);
    free(shown);
}

static void print_facts(const sonde_history_entry *e)
{
    char *date = entry_date(e->at_ms), *options = entry_options(e->options);
    printf("entry      #%lld of %s, %llu runs\n", (long long)e->id, date,
           (unsigned long long)e->runs);
    print_fact("kind", e->kind);
    print_fact("model", e->model);
    print_fact("content", e->model_hash);
    if (strcmp(e->runtime, "sonde") != 0)
        print_fact("runtime", e->runtime);
    print_fact("version", e->version);
    print_fact("commit", e->commit);
    print_fact("note", e->note);
    print_fact("options", options);
    print_fact("host", e->host);
    char *cpu =
        text_of("%s%s%s, %d cores", e->cpu, *e->cpu_level ? ", " : "", e->cpu_level, e->cores);
    print_fact("processor", cpu);
    printf("median     %s", time_text(e->median_ns / 1e6));
    if (e->high_ns > e->low_ns) {
        printf(" (95 %%: %s", time_text(e->low_ns / 1e6));
        printf(" to %s)", time_text(e->high_ns / 1e6));
    }
    printf("\nmean       %s", time_text(e->mean_ns / 1e6));
    printf(", p95 %s", time_text(e->p95_ns / 1e6));
    printf(", p99 %s", time_text(e->p99_ns / 1e6));
    printf(", min %s", time_text(e->min_ns / 1e6));
    printf(", max %s\n", time_text(e->max_ns / 1e6));
    if (e->peak_bytes)
        printf("memory     %s\n", bytes_text(e->peak_bytes));
    free(cpu);
    free(date);
    free(options);
}

static int save_json(const sonde_history_record *r, const sonde_history_entry *e, const char *path)
{
    text t = {.n = 0};
    sonde_history_operator op = SONDE_INIT(sonde_history_operator);
    size_t n;
    const double *samples = sonde_history_record_samples(r, &n);
    entry_json(&t, e);
    text_add(&t, ",\n \"operators\": [");
    for (size_t i = 0; sonde_history_record_operator(r, i, &op, NULL) == SONDE_OK; i++) {
        text_add(&t, "%s{\"name\": ", i ? ",\n  " : "\n  ");
        text_json(&t, op.name);
        add_number(&t, "calls", op.calls);
        add_number(&t, "mean_ns", op.mean_ns);
        text_add(&t, "}");
    }
    text_add(&t, "],\n \"samples_ns\": [");
    for (size_t i = 0; i < n; i++)
        text_add(&t, "%s%.0f", i ? "," : "", samples[i]);
    text_add(&t, "]}\n");
    const int code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}

static int show_kept_profile(const sonde_history_record *r, const history_options *o, bool quiet)
{
    sonde_profile *profile = NULL;
    sonde_profile_summary facts = SONDE_INIT(sonde_profile_summary);
    sonde_error err;
    table_options how = o->table;
    how.json = NULL; /* which has the entry */
    if (sonde_history_record_profile(r, &profile, &err))
        return fail("%s", err.message);
    if (!quiet)
        printf("\n");
    if (!sonde_profile_summary_get(profile, &facts, NULL) && *facts.note && !quiet)
        warn("%s", facts.note);
    const common_options common = {.quiet = quiet};
    const int code = show_profile(profile, &how, &common);
    sonde_profile_release(profile);
    return code;
}

int history_show(history_options *o, sonde_history *h, const char *reference, bool quiet)
{
    sonde_history_record *r = NULL;
    sonde_history_entry e;
    const char *json = o->table.json;
    int code = show_check(&o->table);
    if (code >= 0)
        return code;
    code = entry_get(h, reference, &o->filter, &r, &e);
    quiet |= o->common.quiet || (json && strcmp(json, "-") == 0);
    if (!code && !quiet)
        print_facts(&e);
    if (!code && json)
        code = save_json(r, &e, json);
    const bool wanted = !quiet || o->table.outputs.n;
    if (!code && e.profile_bytes && wanted)
        code = show_kept_profile(r, o, quiet);
    else if (!code && o->table.outputs.n)
        code = fail("entry #%lld has no profile that could be saved", (long long)e.id);
    sonde_history_record_release(r);
    return code;
}
