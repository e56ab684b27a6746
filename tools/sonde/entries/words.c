/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in words and as JSON. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comparison.h"
#include "entries/parts.h"

char *entry_date(int64_t at_ms)
{
    const time_t at = (time_t)(at_ms / 1000);
    struct tm parts;
    char buf[64];
    if (!localtime_r(&at, &parts) || !strftime(buf, sizeof buf, "%Y-%m-%d %H:%M", &parts))
        return text_of("?");
    return text_of("%s", buf);
}

char *short_commit(const char *commit)
{
    char *raw = text_of("%.8s", commit), *shown = printable(raw);
    free(raw);
    return shown;
}

/* The canonical form has no spaces outside of texts, so `"key":value` pairs can be told apart by
 * looking for quotes and brackets alone. */
static const char *end_of_value(const char *p)
{
    int depth = 0;
    for (bool quoted = false; *p; p++) {
        if (quoted && *p == '\\' && p[1])
            p++;
        else if (*p == '"')
            quoted = !quoted;
        else if (!quoted && (*p == '{' || *p == '['))
            depth++;
        else if (!quoted && (*p == '}' || *p == ']') && depth-- == 0)
            return p;
        else if (!quoted && *p == ',' && depth == 0)
            return p;
    }
    return p;
}

static void add_option(text *t, const char *key, int key_n, const char *value, int n)
{
    const bool is_text = n > 1 && value[0] == '"';
    value += is_text;
    n -= is_text ? 2 : 0;
    if (key_n == 9 && memcmp(key, "precision", 9) == 0 && n == 4 && memcmp(value, "file", 4) == 0)
        return; /* the usual */
    text_add(t, "%s", t->n ? ", " : "");
    if (key_n == 7 && memcmp(key, "threads", 7) == 0)
        text_add(t, "%.*s thread%s", n, value, n == 1 && *value == '1' ? "" : "s");
    else if ((key_n == 9 && memcmp(key, "precision", 9) == 0) ||
             (key_n == 6 && memcmp(key, "inputs", 6) == 0))
        text_add(t, "%.*s", n, value);
    else
        text_add(t, "%.*s %.*s", key_n, key, n, value);
}

char *entry_options(const char *json)
{
    text t = {.n = 0};
    for (const char *p = json; *p && t.n < 1000;) {
        const char *key = strchr(p, '"'), *colon = key ? strstr(key + 1, "\":") : NULL;
        if (!colon)
            break;
        const char *value = colon + 2, *end = end_of_value(value);
        add_option(&t, key + 1, (int)(colon - key - 1), value, (int)(end - value));
        p = *end ? end + 1 : end;
    }
    char *shown = printable(t.n ? t.data : "");
    text_free(&t);
    return shown;
}

static void add_text(text *t, const char *key, const char *value)
{
    text_add(t, ", \"%s\": ", key);
    text_json(t, value);
}

void entry_json(text *t, const sonde_history_entry *e)
{
    text_add(t, "{\"id\": %lld, \"at_ms\": %lld", (long long)e->id, (long long)e->at_ms);
    add_text(t, "kind", e->kind);
    add_text(t, "model", e->model);
    add_text(t, "model_hash", e->model_hash);
    add_text(t, "model_form", e->model_form);
    add_text(t, "runtime", e->runtime);
    add_text(t, "version", e->version);
    add_text(t, "commit", e->commit);
    add_text(t, "note", e->note);
    add_text(t, "host", e->host);
    add_text(t, "cpu", e->cpu);
    add_text(t, "cpu_level", e->cpu_level);
    text_add(t, ", \"cores\": %d, \"options\": %s, \"series\": %llu, \"runs\": %llu", e->cores,
             e->options, (unsigned long long)e->series, (unsigned long long)e->runs);
    add_number(t, "median_ns", e->median_ns);
    add_number(t, "low_ns", e->low_ns);
    add_number(t, "high_ns", e->high_ns);
    add_number(t, "mean_ns", e->mean_ns);
    add_number(t, "stddev_ns", e->stddev_ns);
    add_number(t, "min_ns", e->min_ns);
    add_number(t, "max_ns", e->max_ns);
    add_number(t, "p95_ns", e->p95_ns);
    add_number(t, "p99_ns", e->p99_ns);
    text_add(t, ", \"peak_bytes\": %llu, \"profile_bytes\": %llu",
             (unsigned long long)e->peak_bytes, (unsigned long long)e->profile_bytes);
}

int entry_get(sonde_history *h, const char *reference, const sonde_history_filter *f,
              sonde_history_record **record, sonde_history_entry *e)
{
    sonde_error err;
    int64_t id;
    sonde_status st = sonde_history_find(h, reference, f, &id, &err);
    if (!st)
        st = sonde_history_get(h, id, record, &err);
    e->struct_size = sizeof *e;
    if (!st)
        st = sonde_history_record_entry(*record, e, &err);
    return !st                            ? EXIT_OK
           : st == SONDE_INVALID_ARGUMENT ? fail_usage("%s", err.message)
                                          : fail("%s", err.message);
}
