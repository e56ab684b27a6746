/* SPDX-License-Identifier: Apache-2.0 */
/* The two formats differ in little: OpenMetrics names a counter's family without "_total", states
 * units, writes bounds as floating-point numbers and ends with a line that says so. */
#include "export/prom_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void sn_prom_begin(sn_prom *p, sn_sink *sink, bool openmetrics)
{
    sn_writer_init(&p->w, sink);
    p->openmetrics = openmetrics;
    p->family = "";
}

sonde_status sn_prom_end(sn_prom *p, sonde_error *err)
{
    if (p->openmetrics)
        sn_put(&p->w, "# EOF\n");
    return sn_writer_finish(&p->w, err);
}

static void put_line(sn_prom *p, const char *what, const char *suffix, const char *text)
{
    sn_put(&p->w, what);
    sn_put(&p->w, p->family);
    sn_put(&p->w, suffix);
    sn_put(&p->w, " ");
    sn_put(&p->w, text);
    sn_put(&p->w, "\n");
}

void sn_prom_family(sn_prom *p, const char *name, sn_prom_kind kind, const char *unit,
                    const char *help)
{
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const char *suffix = kind == SN_PROM_COUNTER && !p->openmetrics ? "_total" : "";
    p->family = name;
    put_line(p, "# HELP ", suffix, help);
    put_line(p, "# TYPE ", suffix, kinds[kind]);
    if (p->openmetrics && *unit)
        put_line(p, "# UNIT ", suffix, unit);
}

/* A quote, a backslash and the end of a line are escaped; what is no UTF-8 becomes U+FFFD. */
static void put_value(sn_prom *p, const char *s)
{
    while (s && *s) {
        if (*s == '"' || *s == '\\' || *s == '\n') {
            sn_put(&p->w, *s == '\n' ? "\\n" : *s == '"' ? "\\\"" : "\\\\");
            s++;
        } else {
            s += sn_put_char(&p->w, s);
        }
    }
}

static void put_labels(sn_prom *p, const sn_prom_label *labels, const char *le)
{
    const char *before = "{";
    for (; labels && labels->key; labels++) {
        sn_put(&p->w, before);
        sn_put(&p->w, labels->key);
        sn_put(&p->w, "=\"");
        put_value(p, labels->value);
        sn_put(&p->w, "\"");
        before = ",";
    }
    if (le) {
        sn_put(&p->w, before);
        sn_put(&p->w, "le=\"");
        sn_put(&p->w, le);
        sn_put(&p->w, p->openmetrics && !strpbrk(le, ".I") ? ".0\"" : "\"");
        before = ",";
    }
    sn_put(&p->w, *before == ',' ? "} " : " ");
}

static void put_name(sn_prom *p, const char *suffix, const sn_prom_label *labels, const char *le)
{
    sn_put(&p->w, p->family);
    sn_put(&p->w, suffix);
    put_labels(p, labels, le);
}

static const char *suffix_of(sn_prom_kind kind)
{
    return kind == SN_PROM_COUNTER ? "_total" : "";
}

void sn_prom_u64(sn_prom *p, sn_prom_kind kind, const sn_prom_label *labels, uint64_t value)
{
    put_name(p, suffix_of(kind), labels, NULL);
    sn_put_u64(&p->w, value);
    sn_put(&p->w, "\n");
}

void sn_prom_real(sn_prom *p, sn_prom_kind kind, const sn_prom_label *labels, double value)
{
    put_name(p, suffix_of(kind), labels, NULL);
    if (value == value)
        sn_put_number(&p->w, value);
    else
        sn_put(&p->w, "NaN");
    sn_put(&p->w, "\n");
}

static void put_seconds(sn_prom *p, uint64_t ns)
{
    char text[40];
    snprintf(text, sizeof text, "%" PRIu64 ".%09u\n", ns / 1000000000u,
             (unsigned)(ns % 1000000000u));
    sn_put(&p->w, text);
}

void sn_prom_seconds(sn_prom *p, sn_prom_kind kind, const sn_prom_label *labels, uint64_t ns)
{
    put_name(p, suffix_of(kind), labels, NULL);
    put_seconds(p, ns);
}

void sn_prom_buckets(sn_prom *p, const sn_prom_label *labels, const sn_prom_histogram *h)
{
    uint64_t n = 0;
    for (size_t k = 0; k < SN_LATENCY_BUCKETS; k++) {
        n += h->buckets[k];
        put_name(p, "_bucket", labels, sn_latency_bound_text(k));
        sn_put_u64(&p->w, n);
        sn_put(&p->w, "\n");
    }
    put_name(p, "_sum", labels, NULL);
    put_seconds(p, h->sum_ns);
    put_name(p, "_count", labels, NULL);
    sn_put_u64(&p->w, n);
    sn_put(&p->w, "\n");
}
