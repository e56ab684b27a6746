/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as it is kept: the native trace, which every later version reads back, compressed. A
 * long one loses runs at equal distances: what an entry is for, to be compared with others, needs a
 * few hundred of them. */
#include <stdlib.h>

#include "history/history.h"
#include "profile_readers/profile_readers.h"

#ifdef SONDE_HAVE_ZLIB
#include <zlib.h>
#endif

enum {
    MOST_SPANS = 100000,
    MOST_BYTES = 256 << 20 /* of a kept profile, not compressed */
};

/* ------------------------------------------------------------------ leaving out runs */

static int ascending(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

typedef SN_VEC(uint32_t) numbers;

static bool has(const numbers *sorted, uint32_t n)
{
    return sorted->n && bsearch(&n, sorted->data, sorted->n, sizeof n, ascending);
}

/* The numbers of the runs that are left out, sorted. */
static sonde_status choose(const sn_profile *p, numbers *out, sonde_error *err)
{
    sn_prof_runs runs;
    SN_TRY(sn_profile_runs(p, &runs, err));
    const size_t every = p->spans.n / MOST_SPANS + 1;
    bool fine = true;
    for (size_t i = 0; i < runs.all.n && fine; i++)
        if (i % every) {
            const uint32_t run = p->spans.data[runs.all.data[i].span].run;
            fine = !run || sn_vec_push(out, p->alloc, run);
        }
    sn_prof_runs_free(&runs);
    if (out->n)
        qsort(out->data, out->n, sizeof *out->data, ascending);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(uint32_t));
}

/* Spans of those runs, and what is inside of them, are left out. */
static sonde_status cut_spans(const sn_profile *p, const numbers *out, sn_profile *cut,
                              sonde_error *err)
{
    sn_prof_index index;
    SN_TRY(sn_prof_index_build(p, &index, err));
    bool *gone = sn_alloc_zero(p->alloc, p->spans.n);
    bool fine = gone && sn_vec_reserve(&cut->spans, p->alloc, p->spans.n);
    for (size_t i = 0; i < p->spans.n && fine; i++) {
        const sn_prof_span *s = &p->spans.data[i];
        const uint32_t parent = s->parent ? sn_prof_index_find(&index, s->parent) : UINT32_MAX;
        gone[i] = has(out, s->run) || (parent != UINT32_MAX && gone[parent]);
        if (!gone[i])
            cut->spans.data[cut->spans.n++] = *s;
    }
    sn_free(p->alloc, gone, p->spans.n);
    sn_prof_index_free(&index);
    return fine ? SONDE_OK : sn_fail_memory(err, p->spans.n * sizeof(sn_prof_span));
}

/* Counters are many with the memory profiler: as many are left out. */
static sonde_status cut_counters(const sn_profile *p, sn_profile *cut, sonde_error *err)
{
    const size_t every = p->counters.n / MOST_SPANS + 1;
    bool fine = true;
    for (size_t i = 0; i < p->counters.n && fine; i++)
        if (i / 2 % every == 0) /* used and allocated bytes come in pairs */
            fine = sn_vec_push(&cut->counters, p->alloc, p->counters.data[i]);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(sn_prof_counter));
}

/* ------------------------------------------------------------------ to bytes */

typedef struct byte_sink {
    sn_sink sink;
    sn_history_bytes *bytes;
    sn_allocator *alloc;
    bool no_memory;
} byte_sink;

static bool write_bytes(sn_sink *sink, const void *data, size_t bytes)
{
    byte_sink *b = sink->user;
    if (b->bytes->n + bytes <= MOST_BYTES && sn_vec_append(b->bytes, b->alloc, data, bytes))
        return true;
    b->no_memory = true;
    return false;
}

static sonde_status write_trace(const sn_profile *p, sn_history_bytes *out, sonde_error *err)
{
    const sn_export_options how = {.format = ".pftrace", .categories = SN_CATS_ALL};
    byte_sink b = {.sink = {.write = write_bytes}, .bytes = out, .alloc = p->alloc};
    b.sink.user = &b;
    const sonde_status st = sn_export_sink(p, &how, &b.sink, err);
    return st && b.no_memory ? sn_fail_memory(err, out->n) : st;
}

/* Replaces the bytes by compressed ones. */
static sonde_status compress_bytes(sn_history_bytes *bytes, sn_allocator *alloc, const char **form,
                                   sonde_error *err)
{
#ifdef SONDE_HAVE_ZLIB
    uLongf n = compressBound((uLong)bytes->n);
    sn_history_bytes pressed = {0};
    if (!sn_vec_reserve(&pressed, alloc, n))
        return sn_fail_memory(err, n);
    if (compress2(pressed.data, &n, bytes->data, (uLong)bytes->n, 6) != Z_OK) {
        sn_vec_free(&pressed, alloc);
        return sn_fail_memory(err, bytes->n);
    }
    pressed.n = n;
    sn_vec_free(bytes, alloc);
    *bytes = pressed;
    *form = "pftrace.z";
#else
    (void)bytes, (void)alloc, (void)err;
    *form = "pftrace";
#endif
    return SONDE_OK;
}

sonde_status sn_history_press(const sn_profile *p, sn_history_bytes *out, const char **form,
                              sonde_error *err)
{
    numbers left_out = {0};
    sn_profile cut = *p; /* tables of its own where something is left out; all else is p's */
    cut.spans.data = NULL;
    cut.spans.n = cut.spans.cap = 0;
    cut.counters.data = NULL;
    cut.counters.n = cut.counters.cap = 0;
    *out = (sn_history_bytes){0};
    sonde_status st = choose(p, &left_out, err);
    if (st == SONDE_OK)
        st = cut_spans(p, &left_out, &cut, err);
    if (st == SONDE_OK)
        st = cut_counters(p, &cut, err);
    if (st == SONDE_OK)
        st = write_trace(&cut, out, err);
    sn_vec_free(&cut.spans, p->alloc);
    sn_vec_free(&cut.counters, p->alloc);
    sn_vec_free(&left_out, p->alloc);
    if (st == SONDE_OK)
        st = compress_bytes(out, p->alloc, form, err);
    if (st)
        sn_vec_free(out, p->alloc);
    return st;
}

/* ------------------------------------------------------------------ and back */

#ifdef SONDE_HAVE_ZLIB
/* Grows with what comes out: no number in the file says how much that is. */
static sonde_status inflate_bytes(const void *data, size_t bytes, sn_allocator *alloc,
                                  sn_history_bytes *out, sonde_error *err)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes};
    if (inflateInit(&z) != Z_OK)
        return sn_fail_memory(err, 0);
    sonde_status st = SONDE_OK;
    for (int rc = Z_OK; rc == Z_OK && st == SONDE_OK;) {
        const size_t room = out->n < 65536 ? 65536 : out->n;
        if (out->n + room > MOST_BYTES) {
            st = sn_fail(err, SONDE_LIMIT, "the profile of an entry has more than %d MB",
                         MOST_BYTES >> 20);
            break;
        }
        if (!sn_vec_reserve(out, alloc, room)) {
            st = sn_fail_memory(err, out->n + room);
            break;
        }
        z.next_out = out->data + out->n;
        z.avail_out = (uInt)room;
        rc = inflate(&z, Z_NO_FLUSH);
        out->n += room - z.avail_out;
        if (rc != Z_OK && rc != Z_STREAM_END)
            st = sn_fail(err, SONDE_INVALID_FORMAT, "the profile of an entry is damaged");
    }
    inflateEnd(&z);
    return st;
}
#endif

static sonde_status read_trace(const void *data, size_t bytes, sonde_context *context,
                               sonde_profile **profile, sonde_error *err)
{
    sn_profile *core = NULL;
    SN_TRY(
        sn_profile_read_bytes(data, bytes, "the profile of an entry", &context->alloc, &core, err));
    return sn_api_profile(context, core, profile, err);
}

sonde_status sn_history_unpress(const void *data, size_t bytes, const char *form,
                                sonde_context *context, sonde_profile **profile, sonde_error *err)
{
    if (strcmp(form, "pftrace") == 0)
        return read_trace(data, bytes, context, profile, err);
    if (strcmp(form, "pftrace.z") != 0)
        return sn_fail(err, SONDE_INVALID_FORMAT,
                       "the profile of an entry is of a form that is not known");
#ifdef SONDE_HAVE_ZLIB
    sn_history_bytes plain = {0};
    sonde_status st = inflate_bytes(data, bytes, &context->alloc, &plain, err);
    if (st == SONDE_OK)
        st = read_trace(plain.data, plain.n, context, profile, err);
    sn_vec_free(&plain, &context->alloc);
    return st;
#else
    (void)data, (void)bytes, (void)context, (void)profile;
    return sn_fail(err, SONDE_UNSUPPORTED,
                   "the profile of this entry is compressed, and this build of sonde has no zlib");
#endif
}
