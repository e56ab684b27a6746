/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a .pftrace: facts, threads, steps and lives, field by field. What is unknown is
 * skipped, what is missing stays 0 or "". */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "profile/left.h"
#include "profile_readers/pftrace_reader.h"

/* ------------------------------------------------------------------ facts */
static int number(uint64_t v)
{
    return v < INT32_MAX ? (int)v : INT32_MAX;
}

static void read_memory(sn_wire w, sn_prof_memory *m)
{
    uint64_t *const all[] = {&m->mapped,     &m->constants, &m->packed,   &m->arenas,
                             &m->workspaces, &m->outputs,   &m->held,     &m->held_peak,
                             &m->rss,        &m->rss_peak,  &m->rss_anon, &m->rss_file};
    uint64_t v;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && sn_wire_varint(&w, &v); i++)
        *all[i] = v;
}

static void read_usage(sn_wire w, sn_prof_usage *u)
{
    uint64_t *const all[] = {&u->cpu_ns, &u->minor_faults, &u->major_faults, &u->voluntary,
                             &u->involuntary};
    uint64_t v;
    u->known = true;
    for (size_t i = 0; i < sizeof all / sizeof all[0] && sn_wire_varint(&w, &v); i++)
        *all[i] = v;
}

/* A name of a later version is none. */
static sn_arithmetic read_arithmetic(const sn_field *f)
{
    return sn_arithmetic_named((const char *)f->body.at, sn_wire_bytes(&f->body));
}

static void read_peak(sn_wire w, sn_profile *p)
{
    sn_arithmetic a = SN_ARITH_NONE;
    double gops = 0;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(SN_PF_PEAK_ARITHMETIC))
            a = read_arithmetic(&f);
        else if (f.tag == SN_F64(SN_PF_PEAK_GOPS))
            gops = sn_pf_real(f.num);
    }
    if (a != SN_ARITH_NONE)
        p->peak_gops[a] = gops;
}

/* What is no label, such as one of a later version that allows more, is left out. */
static void read_label(sn_pf_reader *r, sn_wire w)
{
    const char *key = "", *value = "";
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(SN_PF_LABEL_KEY))
            key = sn_pf_text(r, &f);
        else if (f.tag == SN_LEN(SN_PF_LABEL_VALUE))
            value = sn_pf_text(r, &f);
    }
    r->b.failed |= sn_labels_put(&r->p->labels, key, value, NULL) == SONDE_OUT_OF_MEMORY;
}

sonde_status sn_pf_read_facts(sn_pf_reader *r, sn_wire w, sonde_error *err)
{
    sn_profile *p = r->p;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_FACTS_FORMAT):
            if (f.num != SN_PF_FORMAT && f.num != SN_PF_FORMAT_JOINED)
                return sn_fail(err, SONDE_UNSUPPORTED,
                               "its records have format version %" PRIu64
                               ", but this version reads %d and %d",
                               f.num, SN_PF_FORMAT, SN_PF_FORMAT_JOINED);
            break;
        case SN_LEN(SN_PF_FACTS_MODEL):
            p->model_name = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_VERSION):
            p->version = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_CPU):
            p->cpu_model = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_CPU_LEVEL):
            p->cpu_level = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_PEAK):
            read_peak(f.body, p);
            break;
        case SN_LEN(SN_PF_FACTS_PRECISION):
            p->precision = sn_pf_text(r, &f);
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
        case SN_INT(SN_PF_FACTS_TRACES):
            r->of = sn_pf_small(f.num);
            break;
        case SN_LEN(SN_PF_FACTS_NOTE):
            p->note = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_FACTS_LABEL):
            read_label(r, f.body);
            break;
        case SN_INT(SN_PF_FACTS_START_MONO_NS):
            p->start_mono_ns = f.num;
            break;
        case SN_LEN(SN_PF_FACTS_BOOT):
            p->boot = sn_pf_text(r, &f);
            break;
        case SN_INT(SN_PF_FACTS_WALL_ERROR_NS):
            p->wall_error_ns = f.num;
            break;
        case SN_F64(SN_PF_FACTS_RECORD_NS):
            p->record_ns = sn_pf_real(f.num);
            break;
        case SN_INT(SN_PF_FACTS_DROPPED):
            p->dropped = f.num;
            break;
        case SN_INT(SN_PF_FACTS_INSTANCE):
            p->instance = number(f.num);
            break;
        case SN_F64(SN_PF_FACTS_PEAK_GFLOPS):
            p->peak_gops[SN_ARITH_F32] = sn_pf_real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_PEAK_GBPS):
            p->peak_gbps = sn_pf_real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L2_BYTES):
            p->caches[0].bytes = sn_pf_real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L2_GBPS):
            p->caches[0].gbps = sn_pf_real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L3_BYTES):
            p->caches[1].bytes = sn_pf_real(f.num);
            break;
        case SN_F64(SN_PF_FACTS_L3_GBPS):
            p->caches[1].gbps = sn_pf_real(f.num);
            break;
        case SN_LEN(SN_PF_FACTS_MEMORY):
            read_memory(f.body, &p->memory);
            break;
        case SN_LEN(SN_PF_FACTS_USAGE):
            read_usage(f.body, &p->usage);
            break;
        case SN_LEN(SN_PF_FACTS_COUNTERS_NOTE):
            p->counters_note = sn_pf_text(r, &f);
            break;
        case SN_INT(SN_PF_FACTS_CATEGORIES):
            p->categories = (uint32_t)f.num & SN_CATS_ALL;
            break;
        default:
            break;
        }
    }
    r->facts = true;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ runs left out */
/* Packed doubles; the next one. */
static bool next_double(sn_wire_iter *it, double *v)
{
    uint64_t bits;
    if (!sn_wire_iter_next(it, &bits))
        return false;
    memcpy(v, &bits, sizeof *v);
    *v = isfinite(*v) ? *v : 0;
    return true;
}

static void read_left_step(sn_pf_reader *r, sn_wire w)
{
    sn_prof_left_step s = {.step = 0};
    sn_wire_iter it;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_LEFT_STEP_STEP))
            s.step = sn_pf_small(f.num);
        else if (f.tag == SN_F64(SN_PF_LEFT_STEP_CALLS))
            s.calls = sn_pf_real(f.num);
        else if (f.tag == SN_F64(SN_PF_LEFT_STEP_TOTAL_NS))
            memcpy(&s.total_ns, &f.num, sizeof s.total_ns);
        else if (f.tag == SN_LEN(SN_PF_LEFT_STEP_POINTS)) {
            sn_wire_iter_start(&it, &f, SN_WIRE_FIXED64);
            for (size_t k = 0; k < SN_LEFT_POINTS && next_double(&it, &s.points[k]);)
                k++;
        }
    }
    r->b.failed |= !sn_vec_push(&r->p->left.steps, r->p->alloc, s);
}

void sn_pf_read_left(sn_pf_reader *r, sn_wire w)
{
    sn_prof_left *l = &r->p->left;
    sn_wire_iter it;
    sn_field f;
    double ns;
    l->wall_ns.n = l->steps.n = 0;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_LEFT_WARMUPS))
            l->warmups = f.num;
        else if (f.tag == SN_F64(SN_PF_LEFT_COST_NS))
            l->cost_ns = sn_pf_real(f.num);
        else if (f.tag == SN_INT(SN_PF_LEFT_FIRST_NS))
            l->first_ns = f.num;
        else if (f.tag == SN_INT(SN_PF_LEFT_LAST_NS))
            l->last_ns = f.num;
        else if (f.tag == SN_LEN(SN_PF_LEFT_STEP))
            read_left_step(r, f.body);
        else if (f.tag == SN_LEN(SN_PF_LEFT_WALL_NS)) {
            sn_wire_iter_start(&it, &f, SN_WIRE_FIXED64);
            while (next_double(&it, &ns))
                r->b.failed |= !sn_vec_push(&l->wall_ns, r->p->alloc, ns);
        }
    }
    sn_left_sort(r->p);
}

/* ------------------------------------------------------------------ tables */
void sn_pf_read_thread(sn_pf_reader *r, sn_wire w)
{
    sn_prof_thread thread = {.name = ""};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_THREAD_ID))
            thread.id = sn_pf_small(f.num);
        else if (f.tag == SN_INT(SN_PF_THREAD_OS_TID))
            thread.os_tid = (long)f.num;
        else if (f.tag == SN_LEN(SN_PF_THREAD_NAME))
            thread.name = sn_pf_text(r, &f);
    }
    r->b.failed |= !sn_vec_push(&r->p->threads_seen, r->p->alloc, thread);
}

/* What is left of a broken list is not used. */
static void read_dims(sn_pf_reader *r, const sn_field *f, const int64_t **to, int32_t *rank)
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
    *to = dims;
    *rank = (int32_t)n;
}

static sn_prof_tensor read_tensor(sn_pf_reader *r, sn_wire w)
{
    sn_prof_tensor x = {.name = "", .dtype = "", .rank = -1};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_LEN(SN_PF_TENSOR_NAME):
            x.name = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_TENSOR_DTYPE):
            x.dtype = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_TENSOR_DIMS):
            read_dims(r, &f, &x.dims, &x.rank);
            break;
        case SN_LEN(SN_PF_TENSOR_TEXT):
            x.text = sn_pf_text(r, &f);
            x.text = *x.text ? x.text : NULL;
            break;
        case SN_INT(SN_PF_TENSOR_CONSTANT):
            x.constant = f.num != 0;
            break;
        case SN_F64(SN_PF_TENSOR_ZEROS):
            x.zeros = sn_pf_real(f.num);
            x.zeros = x.zeros >= 0 && x.zeros <= 1 ? x.zeros : -1;
            break;
        case SN_INT(SN_PF_TENSOR_VALUE):
            x.value = f.num <= UINT32_MAX ? (uint32_t)f.num : 0;
            break;
        case SN_LEN(SN_PF_TENSOR_PORT):
            x.port = sn_pf_text(r, &f);
            x.port = *x.port ? x.port : NULL;
            break;
        case SN_LEN(SN_PF_TENSOR_PORT_DIMS):
            read_dims(r, &f, &x.port_dims, &x.port_rank);
            break;
        default:
            break;
        }
    }
    return x;
}

static sn_prof_origin read_origin(sn_pf_reader *r, sn_wire w)
{
    sn_prof_origin o = {"", ""};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(SN_PF_ORIGIN_NAME))
            o.name = sn_pf_text(r, &f);
        else if (f.tag == SN_LEN(SN_PF_ORIGIN_OP_TYPE))
            o.op_type = sn_pf_text(r, &f);
    }
    return o;
}

/* The lists of a step: counted first, so that each is one block. */
static bool make_lists(sn_pf_reader *r, sn_wire w, sn_prof_origin **origins,
                       sn_prof_tensor **inputs, sn_prof_tensor **outputs)
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

static sn_prof_hw read_counts(sn_wire w)
{
    sn_prof_hw hw = {0};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        double *to = f.tag == SN_F64(SN_PF_HW_CALLS)           ? &hw.calls
                     : f.tag == SN_F64(SN_PF_HW_CYCLES)        ? &hw.cycles
                     : f.tag == SN_F64(SN_PF_HW_INSTRUCTIONS)  ? &hw.instructions
                     : f.tag == SN_F64(SN_PF_HW_CACHE_MISSES)  ? &hw.cache_misses
                     : f.tag == SN_F64(SN_PF_HW_BRANCH_MISSES) ? &hw.branch_misses
                                                               : NULL;
        if (to)
            *to = sn_pf_real(f.num);
    }
    return hw;
}

/* What was counted after the step had been told. */
void sn_pf_read_counts(sn_pf_reader *r, sn_wire w)
{
    uint32_t step = 0;
    sn_prof_hw hw = {0};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_COUNTS_STEP))
            step = sn_pf_small(f.num);
        else if (f.tag == SN_LEN(SN_PF_COUNTS_COUNTS))
            hw = read_counts(f.body);
    }
    if (step < r->p->steps.n)
        r->p->steps.data[step].hw = hw;
}

void sn_pf_read_step(sn_pf_reader *r, sn_wire w)
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
            s.table = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_STEP_INDEX):
            s.index = sn_pf_small(f.num);
            break;
        case SN_LEN(SN_PF_STEP_OP_TYPE):
            s.op_type = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_NAME):
            s.name = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_POST_OP):
            s.post_op = sn_pf_text(r, &f);
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
            s.kernel = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_STEP_ARITHMETIC):
            s.arithmetic = read_arithmetic(&f);
            break;
        case SN_LEN(SN_PF_STEP_ATTRIBUTES):
            s.attributes = sn_pf_text(r, &f);
            break;
        case SN_INT(SN_PF_STEP_FLOPS):
            s.flops = f.num;
            break;
        case SN_INT(SN_PF_STEP_BYTES):
            s.bytes = f.num;
            break;
        case SN_INT(SN_PF_STEP_THREADS):
            s.threads = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_STEP_BIND_NS):
            s.bind_ns = f.num;
            break;
        case SN_INT(SN_PF_STEP_FLAGS):
            s.folded = f.num & SN_PF_STEP_FOLDED;
            s.dynamic = f.num & SN_PF_STEP_DYNAMIC;
            s.control = f.num & SN_PF_STEP_CONTROL;
            break;
        case SN_LEN(SN_PF_STEP_COUNTS):
            s.hw = read_counts(f.body);
            break;
        default:
            break;
        }
    }
    r->b.failed |= !sn_vec_push(&r->p->steps, r->p->alloc, s);
}

void sn_pf_read_life(sn_pf_reader *r, sn_wire w)
{
    sn_prof_life life = {.name = ""};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_LIFE_TABLE):
            life.table = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_LIFE_FIRST):
            life.first = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_LIFE_LAST):
            life.last = sn_pf_small(f.num);
            break;
        case SN_LEN(SN_PF_LIFE_NAME):
            life.name = sn_pf_text(r, &f);
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
