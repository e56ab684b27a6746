/* SPDX-License-Identifier: Apache-2.0 */
/* sonde's own .pftrace: the records beside Perfetto's events hold everything (pftrace_fields.h).
 * The bytes may end anywhere: what is complete up to there is the profile, and a note says so. */
#include <inttypes.h>
#include <string.h>

#include "base/wire.h"
#include "import/build.h"
#include "import/import.h"
#include "profile/pftrace_fields.h"

typedef struct reader {
    sn_build b;
    sn_profile *p;
    SN_VEC(const char *) names; /* by their number, from 1 */
    bool facts, whole;
} reader;

static const char *text(reader *r, const sn_field *f)
{
    const char *bytes = (const char *)f->body.at;
    size_t n = sn_wire_bytes(&f->body);
    return sn_build_text(&r->b, (sn_json_text){bytes, n ? strnlen(bytes, n) : 0});
}

static double real(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v == v ? v : 0;
}

static uint32_t small(uint64_t v)
{
    return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

static int number(uint64_t v)
{
    return v < INT32_MAX ? (int)v : INT32_MAX;
}

/* ------------------------------------------------------------------ facts */
static void read_memory(sn_wire w, sn_prof_memory *m)
{
    uint64_t *const all[] = {&m->mapped,     &m->constants, &m->packed,   &m->arenas,
                             &m->workspaces, &m->outputs,   &m->held,     &m->held_peak,
                             &m->rss,        &m->rss_peak,  &m->rss_anon, &m->rss_file};
    uint64_t v;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && sn_wire_varint(&w, &v); i++)
        *all[i] = v;
}

static sonde_status read_facts(reader *r, sn_wire w, sonde_error *err)
{
    sn_profile *p = r->p;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_FACTS_FORMAT):
            if (f.num != SN_PF_FORMAT)
                return sn_fail(err, SONDE_UNSUPPORTED,
                               "its records have the format %" PRIu64 ", this version reads %d",
                               f.num, SN_PF_FORMAT);
            break;
        case SN_LEN(SN_PF_FACTS_MODEL):
            p->model_name = text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_VERSION):
            p->version = text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_CPU):
            p->cpu_model = text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_CPU_LEVEL):
            p->cpu_level = text(r, &f);
            break;
        case SN_INT(SN_PF_FACTS_CORES):
            p->cores = number(f.num);
            break;
        case SN_INT(SN_PF_FACTS_THREADS):
            p->threads = number(f.num);
            break;
        case SN_INT(SN_PF_FACTS_LEVEL):
            p->level = number(f.num);
            break;
        case SN_INT(SN_PF_FACTS_PID):
            p->pid = (int64_t)f.num;
            break;
        case SN_INT(SN_PF_FACTS_START_WALL_NS):
            p->start_wall_ns = f.num;
            break;
        case SN_F64(SN_PF_FACTS_RECORD_NS):
            p->record_ns = real(f.num);
            break;
        case SN_INT(SN_PF_FACTS_DROPPED):
            p->dropped = f.num;
            break;
        case SN_INT(SN_PF_FACTS_INSTANCE):
            p->instance = number(f.num);
            break;
        case SN_F64(SN_PF_FACTS_PEAK_GFLOPS):
            p->peak_gflops = real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_PEAK_GBPS):
            p->peak_gbps = real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L2_BYTES):
            p->caches[0].bytes = real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L2_GBPS):
            p->caches[0].gbps = real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L3_BYTES):
            p->caches[1].bytes = real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L3_GBPS):
            p->caches[1].gbps = real(f.num);
            break;
        case SN_LEN(SN_PF_FACTS_MEMORY):
            read_memory(f.body, &p->memory);
            break;
        default:
            break;
        }
    }
    r->facts = true;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ tables */
static void read_thread(reader *r, sn_wire w)
{
    sn_prof_thread thread = {.name = ""};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_THREAD_ID))
            thread.id = small(f.num);
        else if (f.tag == SN_INT(SN_PF_THREAD_OS_TID))
            thread.os_tid = (long)f.num;
        else if (f.tag == SN_LEN(SN_PF_THREAD_NAME))
            thread.name = text(r, &f);
    }
    r->b.failed |= !sn_vec_push(&r->p->threads_seen, r->p->alloc, thread);
}

/* Dims of a tensor; what is left of a broken list is not used. */
static void read_dims(reader *r, const sn_field *f, sn_prof_tensor *x)
{
    size_t n = 0;
    if (!sn_wire_count(f, SN_WIRE_VARINT, &n) || n > INT32_MAX)
        return;
    int64_t *dims = SN_NEW_N(&r->p->arena, int64_t, n ? n : 1);
    if (!dims) {
        r->b.failed = true;
        return;
    }
    sn_wire_iter it;
    sn_wire_iter_start(&it, f, SN_WIRE_VARINT);
    uint64_t v;
    for (size_t i = 0; i < n && sn_wire_iter_next(&it, &v); i++)
        dims[i] = (int64_t)v;
    x->dims = dims;
    x->rank = (int32_t)n;
}

static sn_prof_tensor read_tensor(reader *r, sn_wire w)
{
    sn_prof_tensor x = {.name = "", .dtype = "", .rank = -1};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(SN_PF_TENSOR_NAME):
            x.name = text(r, &f);
            break;
        case SN_LEN(SN_PF_TENSOR_DTYPE):
            x.dtype = text(r, &f);
            break;
        case SN_LEN(SN_PF_TENSOR_DIMS):
            read_dims(r, &f, &x);
            break;
        case SN_LEN(SN_PF_TENSOR_TEXT):
            x.text = text(r, &f);
            break;
        case SN_INT(SN_PF_TENSOR_CONSTANT):
            x.constant = f.num != 0;
            break;
        case SN_F64(SN_PF_TENSOR_ZEROS):
            x.zeros = real(f.num);
            break;
        default:
            break;
        }
    }
    return x;
}

static sn_prof_origin read_origin(reader *r, sn_wire w)
{
    sn_prof_origin o = {"", ""};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(SN_PF_ORIGIN_NAME))
            o.name = text(r, &f);
        else if (f.tag == SN_LEN(SN_PF_ORIGIN_OP_TYPE))
            o.op_type = text(r, &f);
    }
    return o;
}

/* The lists of a step: counted first, so that each is one block. */
static bool make_lists(reader *r, sn_wire w, sn_prof_origin **origins, sn_prof_tensor **inputs,
                       sn_prof_tensor **outputs)
{
    size_t n[3] = {1, 1, 1};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        n[0] += f.tag == SN_LEN(SN_PF_STEP_ORIGIN);
        n[1] += f.tag == SN_LEN(SN_PF_STEP_INPUT);
        n[2] += f.tag == SN_LEN(SN_PF_STEP_OUTPUT);
    }
    *origins = SN_NEW_N(&r->p->arena, sn_prof_origin, n[0]);
    *inputs = SN_NEW_N(&r->p->arena, sn_prof_tensor, n[1]);
    *outputs = SN_NEW_N(&r->p->arena, sn_prof_tensor, n[2]);
    return *origins && *inputs && *outputs;
}

static void read_step(reader *r, sn_wire w)
{
    sn_prof_step s = {.op_type = "", .name = "", .post_op = "", .kernel = "", .attributes = ""};
    sn_prof_origin *origins;
    sn_prof_tensor *inputs, *outputs;
    if (!make_lists(r, w, &origins, &inputs, &outputs)) {
        r->b.failed = true;
        return;
    }
    s.origins = origins;
    s.inputs = inputs;
    s.outputs = outputs;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_STEP_TABLE):
            s.table = small(f.num);
            break;
        case SN_INT(SN_PF_STEP_INDEX):
            s.index = small(f.num);
            break;
        case SN_LEN(SN_PF_STEP_OP_TYPE):
            s.op_type = text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_NAME):
            s.name = text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_POST_OP):
            s.post_op = text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_ORIGIN):
            origins[s.n_origins++] = read_origin(r, f.body);
            break;
        case SN_LEN(SN_PF_STEP_INPUT):
            inputs[s.n_inputs++] = read_tensor(r, f.body);
            break;
        case SN_LEN(SN_PF_STEP_OUTPUT):
            outputs[s.n_outputs++] = read_tensor(r, f.body);
            break;
        case SN_LEN(SN_PF_STEP_KERNEL):
            s.kernel = text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_ATTRIBUTES):
            s.attributes = text(r, &f);
            break;
        case SN_INT(SN_PF_STEP_FLOPS):
            s.flops = f.num;
            break;
        case SN_INT(SN_PF_STEP_BYTES):
            s.bytes = f.num;
            break;
        case SN_INT(SN_PF_STEP_BIND_NS):
            s.bind_ns = f.num;
            break;
        case SN_INT(SN_PF_STEP_FLAGS):
            s.folded = f.num & SN_PF_STEP_FOLDED;
            s.dynamic = f.num & SN_PF_STEP_DYNAMIC;
            s.control = f.num & SN_PF_STEP_CONTROL;
            break;
        default:
            break;
        }
    }
    r->b.failed |= !sn_vec_push(&r->p->steps, r->p->alloc, s);
}

static void read_life(reader *r, sn_wire w)
{
    sn_prof_life life = {.name = ""};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_LIFE_TABLE):
            life.table = small(f.num);
            break;
        case SN_INT(SN_PF_LIFE_FIRST):
            life.first = small(f.num);
            break;
        case SN_INT(SN_PF_LIFE_LAST):
            life.last = small(f.num);
            break;
        case SN_LEN(SN_PF_LIFE_NAME):
            life.name = text(r, &f);
            break;
        case SN_INT(SN_PF_LIFE_OFFSET):
            life.offset = f.num;
            break;
        case SN_INT(SN_PF_LIFE_BYTES):
            life.bytes = f.num;
            break;
        case SN_INT(SN_PF_LIFE_PLACE):
            life.place = f.num <= SN_LIFE_DYNAMIC ? (sn_prof_place)f.num : SN_LIFE_DYNAMIC;
            break;
        default:
            break;
        }
    }
    r->b.failed |= !sn_vec_push(&r->p->lives, r->p->alloc, life);
}

/* ------------------------------------------------------------------ events */
static const char *name_of(const reader *r, uint64_t id)
{
    return id >= 1 && id <= r->names.n ? r->names.data[id - 1] : "";
}

static void read_span(reader *r, sn_wire w, uint64_t at)
{
    sn_prof_span *s = sn_build_span(&r->b, SN_CAT_MODEL);
    if (!s)
        return;
    s->start_ns = at;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_SPAN_ID):
            s->id = small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_PARENT):
            s->parent = small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_CAT):
            s->cat = f.num < SN_CAT_COUNT ? (sn_prof_cat)f.num : SN_CAT_USER;
            break;
        case SN_INT(SN_PF_SPAN_THREAD):
            s->thread = small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_DUR_NS):
            s->dur_ns = f.num;
            break;
        case SN_INT(SN_PF_SPAN_STEP):
            s->step = small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_RUN):
            s->run = small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_ITERATION):
            s->iteration = small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_WARMUP):
            s->warmup = f.num != 0;
            break;
        case SN_INT(SN_PF_SPAN_NAME_ID):
            s->name = name_of(r, f.num);
            break;
        case SN_LEN(SN_PF_SPAN_NAME):
            s->name = text(r, &f);
            break;
        case SN_LEN(SN_PF_SPAN_ARGS):
            s->args = text(r, &f);
            break;
        default:
            break;
        }
    }
    if (!*s->name && s->cat == SN_CAT_OPERATOR && s->step < r->p->steps.n)
        s->name = r->p->steps.data[s->step].op_type;
    if (!*s->name && s->cat == SN_CAT_MODEL)
        s->name = r->p->model_name;
}

static void read_counter(reader *r, sn_wire w, uint64_t at)
{
    sn_prof_counter c = {.at_ns = at, .name = "", .step = UINT32_MAX};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_COUNTER_NAME_ID))
            c.name = name_of(r, f.num);
        else if (f.tag == SN_LEN(SN_PF_COUNTER_NAME))
            c.name = text(r, &f);
        else if (f.tag == SN_F64(SN_PF_COUNTER_VALUE))
            c.value = real(f.num);
        else if (f.tag == SN_INT(SN_PF_COUNTER_STEP))
            c.step = small(f.num);
    }
    r->b.failed |= !sn_vec_push(&r->p->counters, r->p->alloc, c);
}

/* ------------------------------------------------------------------ packets */
/* Names are numbered in the order they appear; one out of order is not ours and is left out. */
static void read_names(reader *r, sn_wire data)
{
    sn_field f, part;
    while (sn_wire_next(&data, &f) == SN_WIRE_FIELD) {
        if (f.tag != SN_LEN(SN_PF_INTERNED_NAMES))
            continue;
        const char *name = "";
        uint64_t id = 0;
        sn_wire w = f.body;
        while (sn_wire_next(&w, &part) == SN_WIRE_FIELD) {
            if (part.tag == SN_INT(SN_PF_ENTRY_ID))
                id = part.num;
            else if (part.tag == SN_LEN(SN_PF_ENTRY_TEXT))
                name = text(r, &part);
        }
        if (id == r->names.n + 1)
            r->b.failed |= !sn_vec_push(&r->names, r->p->alloc, name);
    }
}

static sonde_status read_record(reader *r, sn_wire w, uint64_t at, sonde_error *err)
{
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(SN_PF_RECORD_FACTS):
            SN_TRY(read_facts(r, f.body, err));
            break;
        case SN_LEN(SN_PF_RECORD_STEP):
            read_step(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_LIFE):
            read_life(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_THREAD):
            read_thread(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_SPAN):
            read_span(r, f.body, at);
            break;
        case SN_LEN(SN_PF_RECORD_COUNTER):
            read_counter(r, f.body, at);
            break;
        case SN_LEN(SN_PF_RECORD_END):
            r->whole = true;
            break;
        default:
            break;
        }
    }
    return SONDE_OK;
}

static sonde_status read_packet(reader *r, sn_wire packet, sonde_error *err)
{
    sn_wire record = {NULL, NULL};
    uint64_t at = 0;
    sn_field f;
    while (sn_wire_next(&packet, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_PACKET_TIMESTAMP))
            at = f.num;
        else if (f.tag == SN_LEN(SN_PF_PACKET_INTERNED_DATA))
            read_names(r, f.body);
        else if (f.tag == SN_LEN(SN_PF_PACKET_RECORD))
            record = f.body;
    }
    return record.at ? read_record(r, record, at, err) : SONDE_OK;
}

static sonde_status read_packets(reader *r, sn_wire trace, sonde_error *err)
{
    const uint8_t *start = trace.at;
    sn_wire_status st = SN_WIRE_FIELD;
    size_t good = 0;
    sn_field f;
    while (!r->b.failed && (st = sn_wire_next(&trace, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(SN_PF_TRACE_PACKET))
            SN_TRY(read_packet(r, f.body, err));
        good = (size_t)(trace.at - start);
    }
    if (r->b.failed)
        return sn_fail_memory(err, sizeof(sn_prof_span));
    if (!r->facts)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "it holds no record of sonde's up to byte %zu: written by another program, "
                       "or cut off at once",
                       good);
    if (!r->whole) {
        const char *note = sn_arena_printf(
            &r->p->arena,
            "the trace ends at byte %zu without its last record: it was cut off, or "
            "is still being written; what came before is used",
            good);
        if (!note)
            return sn_fail_memory(err, 1);
        r->p->note = note;
    }
    return SONDE_OK;
}

static sonde_status read_pftrace(const void *data, size_t bytes, sn_profile *p, sonde_error *err)
{
    reader r = {.p = p};
    sn_build_init(&r.b, p);
    sonde_status st = read_packets(&r, sn_wire_of(data, bytes), err);
    if (st == SONDE_OK)
        st = sn_build_finish(&r.b, SN_BUILD_GIVEN, false, err);
    sn_vec_free(&r.names, p->alloc);
    sn_build_free(&r.b);
    return st;
}

/* A packet first, and in it or behind it the names every trace of ours begins with. */
static bool sniff_pftrace(const char *head, size_t bytes)
{
    return bytes && head[0] == '\n' && sn_import_has(head, bytes, "input_tensor_name") &&
           sn_import_has(head, bytes, "sonde");
}

const sn_importer sn_importer_pftrace = {"a Perfetto trace of sonde", sniff_pftrace, read_pftrace};
