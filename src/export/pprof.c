/* SPDX-License-Identifier: Apache-2.0 */
/* pprof's profile.proto, gzipped: what `go tool pprof`, speedscope and their like read. One sample
 * per step, totals over the measured runs, with the stack model ► operator ► node ► kernel; [Other]
 * and [Mem alloc/free] stand under the model, so the flat times add up to the wall time of every
 * other format. Messages are streamed: a string, function or location is written when it is first
 * needed, as the format allows. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "export/deflate.h"
#include "export/proto.h"
#include "export/text.h"
#include "export/writer.h"

/* Field numbers of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME_NANOS = 9,
    PROFILE_DURATION_NANOS = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
    TYPE_TYPE = 1,
    TYPE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_TEXT = 2,
    LOCATION_ID = 1,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4
};

enum { FLUSH_BYTES = 32768 };

typedef struct pprof {
    const sn_profile *p;
    sn_prof_summary steps;
    sn_proto out;
    sn_deflate gzip;
    sn_text text;
    sn_arena arena;   /* keys of the maps */
    sn_map strings;   /* text ► 1 + index in the string table */
    sn_map functions; /* kind and name ► id; a function and its one location share it */
    uint64_t n_strings, n_functions;
    bool failed; /* out of memory outside the buffer */
} pprof;

/* ------------------------------------------------------------------ tables */
/* Index in the string table. The text is kept by reference. */
static uint64_t string_of(pprof *c, const char *text)
{
    void *found = sn_map_get(&c->strings, text);
    if (found)
        return (uintptr_t)found - 1;
    const uint64_t index = c->n_strings++;
    c->failed |= !sn_map_put(&c->strings, text, (void *)(uintptr_t)(index + 1), NULL);
    sn_proto_text(&c->out, PROFILE_STRING, text);
    return index;
}

/* A frame. Its kind stands where a program's source file would: a node and an operator of the same
 * name stay two. */
static uint64_t frame(pprof *c, const char *kind, const char *name)
{
    sn_text_clear(&c->text);
    sn_text_add(&c->text, kind);
    sn_text_add(&c->text, " ");
    sn_text_add(&c->text, name);
    void *found = sn_map_get(&c->functions, sn_text_get(&c->text));
    if (found)
        return (uintptr_t)found;
    const char *key = sn_arena_strdup(&c->arena, sn_text_get(&c->text));
    if (!key) {
        c->failed = true;
        return 0;
    }
    const uint64_t id = ++c->n_functions, text = string_of(c, name), file = string_of(c, kind);
    c->failed |= !sn_map_put(&c->functions, key, (void *)(uintptr_t)id, NULL);
    size_t mark = sn_proto_begin(&c->out, PROFILE_FUNCTION);
    sn_proto_varint(&c->out, FUNCTION_ID, id);
    sn_proto_varint(&c->out, FUNCTION_NAME, text);
    sn_proto_varint(&c->out, FUNCTION_SYSTEM_NAME, text);
    sn_proto_varint(&c->out, FUNCTION_FILE, file);
    sn_proto_end(&c->out, mark);
    mark = sn_proto_begin(&c->out, PROFILE_LOCATION);
    sn_proto_varint(&c->out, LOCATION_ID, id);
    const size_t line = sn_proto_begin(&c->out, LOCATION_LINE);
    sn_proto_varint(&c->out, LINE_FUNCTION, id);
    sn_proto_end(&c->out, line);
    sn_proto_end(&c->out, mark);
    return id;
}

static void value_type(pprof *c, uint32_t field, const char *type, const char *unit)
{
    const uint64_t type_text = string_of(c, type), unit_text = string_of(c, unit);
    const size_t mark = sn_proto_begin(&c->out, field);
    sn_proto_varint(&c->out, TYPE_TYPE, type_text);
    sn_proto_varint(&c->out, TYPE_UNIT, unit_text);
    sn_proto_end(&c->out, mark);
}

/* ------------------------------------------------------------------ samples */
typedef struct label {
    uint64_t key, text;
} label;

/* The table of strings comes first: a message cannot be interrupted by another. */
static label label_of(pprof *c, const char *key, const char *text)
{
    return (label){string_of(c, key), string_of(c, text ? text : "")};
}

static const char *or_else(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

/* From the leaf up, as the format wants it. Returns how many. */
static int stack_of(pprof *c, const sn_prof_row *row, uint64_t *stack)
{
    int n = 0;
    if (!row->bracket) {
        if (row->kernel && *row->kernel)
            stack[n++] = frame(c, "kernel", row->kernel);
        stack[n++] = frame(c, "node", or_else(row->example, row->name));
    }
    stack[n++] = frame(c, "operator", or_else(row->bracket ? row->name : row->op_type, "operator"));
    stack[n++] = frame(c, "model", or_else(c->p->model_name, "model"));
    return n;
}

/* "1x3x224x224;64x3x7x7" of the inputs. */
static const char *shapes_of(pprof *c, const sn_prof_step *step)
{
    sn_text_clear(&c->text);
    sn_text_shapes(&c->text, step->inputs, step->n_inputs);
    const char *kept = sn_arena_strdup(&c->arena, sn_text_get(&c->text));
    c->failed |= !kept;
    return kept;
}

static int64_t total(double mean, double iterations)
{
    const double v = mean * iterations;
    return v < 9e18 && v > -9e18 ? llround(v) : 0;
}

static void put_sample(pprof *c, const sn_prof_row *row)
{
    const sn_prof_step *step = row->step < c->p->steps.n ? &c->p->steps.data[row->step] : NULL;
    const double runs = (double)c->steps.iterations;
    const int64_t values[] = {total(row->mean_ns, runs), total(row->calls, runs),
                              total(row->flops, runs), total(row->bytes, runs)};
    uint64_t stack[4];
    label labels[3];
    const int depth = stack_of(c, row, stack);
    int n_labels = 0;
    if (step && step->n_inputs)
        labels[n_labels++] = label_of(c, "shape", shapes_of(c, step));
    if (step && step->post_op && *step->post_op)
        labels[n_labels++] = label_of(c, "post_op", step->post_op);
    if (step && step->arithmetic != SN_ARITH_NONE)
        labels[n_labels++] = label_of(c, "arithmetic", sn_arithmetic_name(step->arithmetic));
    const size_t sample = sn_proto_begin(&c->out, PROFILE_SAMPLE);
    size_t mark = sn_proto_begin(&c->out, SAMPLE_LOCATION);
    for (int i = 0; i < depth; i++)
        sn_proto_packed(&c->out, stack[i]);
    sn_proto_end(&c->out, mark);
    mark = sn_proto_begin(&c->out, SAMPLE_VALUE);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        sn_proto_packed(&c->out, (uint64_t)values[i]);
    sn_proto_end(&c->out, mark);
    for (int i = 0; i < n_labels; i++) {
        mark = sn_proto_begin(&c->out, SAMPLE_LABEL);
        sn_proto_varint(&c->out, LABEL_KEY, labels[i].key);
        sn_proto_varint(&c->out, LABEL_TEXT, labels[i].text);
        sn_proto_end(&c->out, mark);
    }
    sn_proto_end(&c->out, sample);
}

/* ------------------------------------------------------------------ the file */
SONDE_PRINTF(2, 3) static void comment(pprof *c, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *kept = sn_arena_strdup(&c->arena, text);
    if (!kept) {
        c->failed = true;
        return;
    }
    const uint64_t index = string_of(c, kept);
    sn_proto_varint(&c->out, PROFILE_COMMENT, index);
}

static void put_head(pprof *c)
{
    const sn_profile *p = c->p;
    const sn_prof_summary *s = &c->steps;
    string_of(c, ""); /* number 0 by definition */
    value_type(c, PROFILE_SAMPLE_TYPE, "wall", "nanoseconds");
    value_type(c, PROFILE_SAMPLE_TYPE, "calls", "count");
    value_type(c, PROFILE_SAMPLE_TYPE, "flops", "count");
    value_type(c, PROFILE_SAMPLE_TYPE, "bytes", "bytes");
    value_type(c, PROFILE_PERIOD_TYPE, "wall", "nanoseconds");
    sn_proto_varint(&c->out, PROFILE_PERIOD, 1);
    sn_proto_varint(&c->out, PROFILE_DEFAULT_TYPE, string_of(c, "wall"));
    sn_proto_int64(&c->out, PROFILE_TIME_NANOS, (int64_t)p->start_wall_ns);
    sn_proto_int64(&c->out, PROFILE_DURATION_NANOS, total(s->wall_ns.mean, (double)s->iterations));
    comment(c, "sonde %s, model %s", or_else(p->version, ""), or_else(p->model_name, ""));
    comment(c, "%s (%s), %d threads of %d cores", or_else(p->cpu_model, "unknown CPU"),
            or_else(p->cpu_level, ""), p->threads, p->cores);
    if (*p->precision)
        comment(c, "precision %s", p->precision);
    comment(c, "totals over %" PRIu64 " measured runs; %" PRIu64 " warm-up runs left out",
            s->iterations, s->warmups);
    if (p->dropped)
        comment(c, "%" PRIu64 " records were dropped", p->dropped);
}

static void flush(pprof *c)
{
    sn_sink_write(&c->gzip.sink, c->out.bytes.data, c->out.bytes.n);
    sn_proto_reset(&c->out);
}

static sonde_status write_pprof(const sn_profile *p, sn_sink *sink, sonde_error *err)
{
    pprof c = {.p = p};
    SN_TRY(sn_profile_summarise(p, SN_BY_STEP, &c.steps, err));
    sn_proto_init(&c.out, p->alloc);
    sn_text_init(&c.text, p->alloc);
    sn_arena_init(&c.arena, p->alloc);
    sn_map_init(&c.strings, p->alloc);
    sn_map_init(&c.functions, p->alloc);
    sn_gzip_init(&c.gzip, sink);
    put_head(&c);
    for (size_t i = 0; i < c.steps.rows.n && !c.failed && !c.out.failed && !sink->failed; i++) {
        if (c.steps.rows.data[i].calls > 0 || c.steps.rows.data[i].mean_ns > 0)
            put_sample(&c, &c.steps.rows.data[i]); /* not what was folded away */
        if (c.out.bytes.n >= FLUSH_BYTES)
            flush(&c);
    }
    flush(&c);
    sn_gzip_finish(&c.gzip);
    const bool out_of_memory = c.failed || c.text.failed || c.out.failed;
    sn_map_free(&c.functions);
    sn_map_free(&c.strings);
    sn_arena_free(&c.arena);
    sn_text_free(&c.text);
    sn_proto_free(&c.out);
    sn_prof_summary_free(&c.steps);
    if (out_of_memory)
        return sn_fail(err, SONDE_OUT_OF_MEMORY, "cannot allocate the tables of a pprof profile");
    return sink->failed ? sn_fail(err, SONDE_IO, "writing the profile failed") : SONDE_OK;
}

const sn_exporter sn_exporter_pprof = {.suffix = ".pb.gz",
                                       .name = "pprof",
                                       .summary = "Profile for pprof and speedscope",
                                       .write = write_pprof};
