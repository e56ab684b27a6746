/* SPDX-License-Identifier: Apache-2.0 */
/* A measurement as text, for the caches: a line of figures, a line of samples, then a line for each
 * step. Fields are separated by tabs, which no operator's name and no shape contains. */
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

/* Thousandths of a nanosecond: independent of the locale. */
static void put_ns(sn_text *t, double ns)
{
    put(t, "\t%lld", (long long)llround(ns * 1000));
}

sonde_status sn_measured_write(const sn_measured *m, sn_text *t, sonde_error *err)
{
    put(t, "figures\t%" PRIu64 "\t%" PRIu64 "\t%lld\n", m->weight_bytes, m->peak_bytes,
        (long long)m->changed);
    sn_text_add(t, "runs");
    for (size_t i = 0; i < m->walls.n; i++)
        put_ns(t, m->walls.data[i]);
    sn_text_add(t, "\n");
    for (size_t i = 0; i < m->steps.n; i++) {
        const sn_whatif_step *s = &m->steps.data[i];
        put(t, "%s", s->added ? "added" : "step");
        put_ns(t, s->ns);
        const char *const texts[] = {s->name, s->op_type, s->shapes, s->weight};
        for (int k = 0; k < 4; k++) {
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

static bool keep(reader *r, const void *made)
{
    r->no_memory = r->no_memory || !made;
    return made != NULL;
}

static bool read_figures(sn_measured *m, reader *r)
{
    long long v[3];
    const char *word = next_line(r) ? field(r) : NULL;
    if (!word || strcmp(word, "figures") != 0)
        return false;
    for (int i = 0; i < 3; i++)
        if (!number(r, &v[i]))
            return false;
    m->weight_bytes = (uint64_t)v[0];
    m->peak_bytes = (uint64_t)v[1];
    m->changed = v[2];
    return true;
}

static bool read_runs(sn_measured *m, reader *r)
{
    const char *word = next_line(r) ? field(r) : NULL;
    if (!word || strcmp(word, "runs") != 0)
        return false;
    while (r->at) {
        long long thousandths;
        if (!number(r, &thousandths) || m->walls.n == MAX_SAMPLES)
            return false;
        if (!sn_vec_push(&m->walls, m->alloc, (double)thousandths / 1000))
            return keep(r, NULL);
    }
    return m->walls.n > 0;
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
    sn_whatif_step s = {.added = word && strcmp(word, "added") == 0};
    const char **const texts[] = {&s.name, &s.op_type, &s.shapes, &s.weight};
    long long thousandths;
    if (!word || (!s.added && strcmp(word, "step") != 0) || !number(r, &thousandths) ||
        m->steps.n == MAX_STEPS)
        return false;
    s.ns = (double)thousandths / 1000;
    for (int k = 0; k < 4; k++) {
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
    bool fine = keep(&r, r.next) && read_figures(m, &r) && read_runs(m, &r);
    while (fine && next_line(&r))
        fine = read_step(m, &r);
    *no_memory = r.no_memory;
    return fine && m->steps.n > 0 && r.next && !*r.next;
}
