/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of the user's own code: records, which label a stretch of inferences and may mark them as
 * warm-up, and scopes. While nothing is recorded both cost a look at the recorder's level. A
 * scope's name, category and text travel as one interned string; the profile takes them apart. */
#include <stdarg.h>
#include <stdio.h>

#include "api/internal.h"

static _Thread_local int warmup_depth; /* open warm-up records of this thread */

bool sn_api_in_warmup(void)
{
    return warmup_depth > 0;
}

static bool is_recording(const sonde_context *c)
{
#if SONDE_RECORDER
    return c && sn_trace_on(c->core.trace, 1);
#else
    (void)c;
    return false;
#endif
}

static void push(sonde_context *c, uint64_t begin, uint64_t end, const char *text, uint16_t flags)
{
    sn_records_enter(&c->records);
    sn_trace_ring *ring = sn_trace_ring_get(c->core.trace);
    const sn_trace_rec rec = {.t0 = begin,
                              .t1 = end,
                              .table = SN_TRACE_NONE,
                              .index = sn_trace_name(c->core.trace, text),
                              .kind = SN_TRACE_USER,
                              .flags = flags};
    if (ring && rec.index)
        sn_trace_push(ring, &rec);
    sn_records_leave(&c->records);
}

/* ------------------------------------------------------------------ records */
struct sonde_record {
    sonde_context *context;
    uint64_t begin;
    bool warm_up;
    size_t bytes; /* of this struct with its label */
    char label[];
};

sonde_status sonde_record_begin(sonde_context *context, const char *label, int warm_up,
                                sonde_record **record, sonde_error *err)
{
    SN_REQUIRE(label, err);
    SN_REQUIRE(record, err);
    *record = NULL;
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    const size_t n = strlen(label) + 1, bytes = sizeof(sonde_record) + n;
    sonde_record *r = sn_alloc_zero(&c->alloc, bytes);
    if (!r) {
        sonde_context_release(c);
        return sn_fail_memory(err, bytes);
    }
    r->context = c;
    r->warm_up = warm_up != 0;
    r->bytes = bytes;
    memcpy(r->label, label, n);
    r->begin = sn_ticks();
    warmup_depth += r->warm_up;
    *record = r;
    return SONDE_OK;
}

void sonde_record_end(sonde_record *r)
{
    if (!r)
        return;
    const uint64_t end = sn_ticks();
    sonde_context *c = r->context;
    if (is_recording(c))
        push(c, r->begin, end, r->label, r->warm_up ? SN_TRACE_WARMUP : 0);
    if (r->warm_up && warmup_depth > 0)
        warmup_depth--;
    sn_free(&c->alloc, r, r->bytes);
    sonde_context_release(c);
}

/* ------------------------------------------------------------------ scopes */
uint64_t sonde_scope_begin(sonde_context *context)
{
    return is_recording(sn_api_context_if_made(context)) ? sn_ticks() : 0;
}

/* A part of a scope's text, cut where it would leave no room for separators behind it. */
static size_t add_part(char *text, size_t n, size_t cap, const char *part)
{
    for (; *part && n + 4 < cap; part++)
        text[n++] = *part == SN_TRACE_SEPARATOR ? ' ' : *part;
    return n;
}

void sonde_scope_end(sonde_context *context, uint64_t begin, const char *name, const char *category,
                     const char *args)
{
    const uint64_t end = sn_ticks();
    sonde_context *c = sn_api_context_if_made(context);
    if (!begin || !name || !is_recording(c))
        return;
    char text[512];
    const bool user = !category || !*category || strcmp(category, "user") == 0;
    if (user && (!args || !*args)) {
        push(c, begin, end, name, 0);
        return;
    }
    size_t n = add_part(text, 0, sizeof text, name);
    text[n++] = SN_TRACE_SEPARATOR;
    n = add_part(text, n, sizeof text, user ? "" : category);
    text[n++] = SN_TRACE_SEPARATOR;
    snprintf(text + n, sizeof text - n, "%s", args ? args : "");
    push(c, begin, end, text, SN_TRACE_PARTED);
}

sonde_scope sonde_scope_enter(const char *name, const char *category, const char *fmt, ...)
{
    sonde_scope s = {.begin = sonde_scope_begin(NULL), .name = name, .category = category};
    if (s.begin && fmt) {
        va_list list;
        va_start(list, fmt);
        vsnprintf(s.args, sizeof s.args, fmt, list);
        va_end(list);
    }
    return s;
}

void sonde_scope_leave(sonde_scope *scope)
{
    if (scope && scope->begin)
        sonde_scope_end(NULL, scope->begin, scope->name, scope->category, scope->args);
}
