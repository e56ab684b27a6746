/* SPDX-License-Identifier: Apache-2.0 */
/* A measurement as text, for the caches: a line of figures, one of when and where, one of ratios,
 * then a line for each step. Fields are separated by tabs, which no operator's name and no shape
 * contains. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/text.h"
#include "whatif/whatif.h"

enum { MAX_STEPS = 4000000, MAX_SAMPLES = 1000000, FIELD = 48 };

/* ------------------------------------------------------------------ writing */
SONDE_PRINTF(2, 3) static void put(sn_text *t, const char *fmt, ...)
{
    char text[128];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    sn_text_add(t, text);
}

/* The bits of a double: exactly what was measured, in every locale. */
static void put_real(sn_text *t, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    put(t, "\t%016" PRIx64, bits);
}

sonde_status sn_measured_write(const sn_measured *m, sn_text *t, sonde_error *err)
{
    put(t, "figures\t%" PRIu64 "\t%" PRIu64 "\t%lld\t%zu", m->weight_bytes, m->peak_bytes,
        (long long)m->changed, m->runs);
    put_real(t, m->now_ns);
    put(t, "\nmeasured\t%lld\t", (long long)m->at_s);
    sn_text_add(t, m->host);
    sn_text_add(t, "\nratios");
    for (size_t i = 0; i < m->ratios.n; i++)
        put_real(t, m->ratios.data[i]);
    sn_text_add(t, "\n");
    for (size_t i = 0; i < m->steps.n; i++) {
        const sn_whatif_step *s = &m->steps.data[i];
        sn_text_add(t, s->added ? "added" : s->sparse ? "sparse" : "step");
        put_real(t, s->ns);
        const char *const texts[] = {s->name, s->op_type, s->shapes, s->weight, s->how};
        for (int k = 0; k < 5; k++) {
            sn_text_add(t, "\t");
            sn_text_add(t, texts[k]);
        }
        for (uint32_t k = 0; k < s->n_nodes; k++)
            put(t, "\t%" PRIu32, s->nodes[k]);
        sn_text_add(t, "\n");
    }
    return t->failed ? sn_fail_memory(err, t->b.n) : SONDE_OK;
}

/* ------------------------------------------------------------------ reading */
typedef struct reader {
    char *at;   /* of the open line; NULL: it has ended */
    char *next; /* line */
    bool no_memory;
} reader;

static bool next_line(reader *r)
{
    if (!r->next || !*r->next)
        return false;
    char *end = strchr(r->next, '\n');
    if (!end)
        return false;
    *end = 0;
    r->at = r->next;
    r->next = end + 1;
    return true;
}

static char *field(reader *r)
{
    char *found = r->at;
    char *tab = found ? strchr(found, '\t') : NULL;
    if (tab)
        *tab = 0;
    r->at = tab ? tab + 1 : NULL;
    return found;
}

static bool number(reader *r, long long *v)
{
    const char *text = field(r);
    char *end = NULL;
    errno = 0;
    *v = text ? strtoll(text, &end, 10) : -1;
    return text && end != text && !*end && !errno && *v >= 0;
}

static bool real(reader *r, double *v)
{
    const char *text = field(r);
    char *end = NULL;
    errno = 0;
    const uint64_t bits = text ? strtoull(text, &end, 16) : 0;
    memcpy(v, &bits, sizeof bits);
    return text && end != text && !*end && !errno && isfinite(*v) && *v >= 0;
}

static bool keep(reader *r, const void *made)
{
    r->no_memory = r->no_memory || !made;
    return made != NULL;
}

static bool read_figures(sn_measured *m, reader *r)
{
    long long v[4];
    const char *word = next_line(r) ? field(r) : NULL;
    if (!word || strcmp(word, "figures") != 0)
        return false;
    for (int i = 0; i < 4; i++)
        if (!number(r, &v[i]))
            return false;
    m->weight_bytes = (uint64_t)v[0];
    m->peak_bytes = (uint64_t)v[1];
    m->changed = v[2];
    m->runs = (size_t)v[3];
    return real(r, &m->now_ns) && m->now_ns > 0;
}

static bool read_origin(sn_measured *m, reader *r)
{
    long long at;
    const char *word = next_line(r) ? field(r) : NULL;
    if (!word || strcmp(word, "measured") != 0 || !number(r, &at))
        return false;
    const char *host = field(r);
    m->at_s = at;
    m->host = host ? sn_arena_strdup(&m->arena, host) : NULL;
    return host && keep(r, m->host);
}

static bool read_ratios(sn_measured *m, reader *r)
{
    const char *word = next_line(r) ? field(r) : NULL;
    if (!word || strcmp(word, "ratios") != 0)
        return false;
    while (r->at) {
        double ratio;
        if (!real(r, &ratio) || m->ratios.n == MAX_SAMPLES)
            return false;
        if (!sn_vec_push(&m->ratios, m->alloc, ratio))
            return keep(r, NULL);
    }
    return m->ratios.n > 0;
}

static bool read_nodes(sn_measured *m, reader *r, sn_whatif_step *s)
{
    size_t most = r->at ? 1 : 0;
    for (const char *c = r->at; c && *c; c++)
        most += *c == '\t';
    uint32_t *nodes = SN_NEW_N(&m->arena, uint32_t, most + 1);
    if (!keep(r, nodes))
        return false;
    while (r->at) {
        long long v;
        if (!number(r, &v) || v > UINT32_MAX)
            return false;
        nodes[s->n_nodes++] = (uint32_t)v;
    }
    s->nodes = nodes;
    return true;
}

static bool read_step(sn_measured *m, reader *r)
{
    const char *word = field(r);
    sn_whatif_step s = {.added = word && strcmp(word, "added") == 0,
                        .sparse = word && strcmp(word, "sparse") == 0};
    const char **const texts[] = {&s.name, &s.op_type, &s.shapes, &s.weight, &s.how};
    if (!word || (!s.added && !s.sparse && strcmp(word, "step") != 0) || !real(r, &s.ns) ||
        m->steps.n == MAX_STEPS)
        return false;
    for (int k = 0; k < 5; k++) {
        const char *text = field(r);
        if (!text)
            return false;
        *texts[k] = sn_arena_strdup(&m->arena, text);
        if (!keep(r, *texts[k]))
            return false;
    }
    if (!read_nodes(m, r, &s))
        return false;
    m->total_ns += s.ns;
    return sn_vec_push(&m->steps, m->alloc, s) || keep(r, NULL);
}

bool sn_measured_read(sn_measured *m, const char *text, size_t bytes, bool *no_memory)
{
    reader r = {.next = sn_arena_strndup(&m->arena, text, bytes)};
    bool fine = keep(&r, r.next) && read_figures(m, &r) && read_origin(m, &r) && read_ratios(m, &r);
    while (fine && next_line(&r))
        fine = read_step(m, &r);
    *no_memory = r.no_memory;
    return fine && m->steps.n > 0 && r.next && !*r.next;
}
