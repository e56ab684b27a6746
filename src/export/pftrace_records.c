/* SPDX-License-Identifier: Apache-2.0 */
/* What a profile has and a viewer does not need, as messages of our own. Fields that are 0 or empty
 * are left out, as protobuf does: their absence says the same. Texts are bytes: nothing is lost. */
#include <string.h>

#include "export/pftrace_writer.h"

static void put_text(sn_proto *p, uint32_t field, const char *text)
{
    if (text && *text)
        sn_proto_bytes(p, field, text, strlen(text));
}

static void put_number(sn_proto *p, uint32_t field, uint64_t v)
{
    if (v)
        sn_proto_varint(p, field, v);
}

static void put_double(sn_proto *p, uint32_t field, double v)
{
    if (v != 0)
        sn_proto_double(p, field, v);
}

typedef struct marks {
    size_t outer, inner;
} marks;

static marks begin(sn_proto *p, uint32_t record)
{
    marks m;
    m.outer = sn_proto_begin(p, SN_PF_PACKET_RECORD);
    m.inner = sn_proto_begin(p, record);
    return m;
}

static void end(sn_proto *p, marks m)
{
    sn_proto_end(p, m.inner);
    sn_proto_end(p, m.outer);
}

static void put_memory(sn_proto *p, const sn_prof_memory *m)
{
    const uint64_t all[] = {m->mapped,     m->constants, m->packed,   m->arenas,
                            m->workspaces, m->outputs,   m->held,     m->held_peak,
                            m->rss,        m->rss_peak,  m->rss_anon, m->rss_file};
    size_t mark = sn_proto_begin(p, SN_PF_FACTS_MEMORY);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sn_proto_packed(p, all[i]);
    sn_proto_end(p, mark);
}

static void put_usage(sn_proto *p, const sn_prof_usage *u)
{
    const uint64_t all[] = {u->cpu_ns, u->minor_faults, u->major_faults, u->voluntary,
                            u->involuntary};
    if (!u->known)
        return;
    size_t mark = sn_proto_begin(p, SN_PF_FACTS_USAGE);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sn_proto_packed(p, all[i]);
    sn_proto_end(p, mark);
}

static void put_peaks(sn_proto *p, const sn_profile *f)
{
    for (int a = 0; a < SN_ARITH_COUNT; a++) {
        if (a == SN_ARITH_F32 || !(f->peak_gops[a] > 0))
            continue;
        size_t mark = sn_proto_begin(p, SN_PF_FACTS_PEAK);
        put_text(p, SN_PF_PEAK_ARITHMETIC, sn_arithmetic_name((sn_arithmetic)a));
        put_double(p, SN_PF_PEAK_GOPS, f->peak_gops[a]);
        sn_proto_end(p, mark);
    }
}

static void put_labels(sn_proto *p, const sn_labels *labels)
{
    for (size_t i = 0; i < labels->list.n; i++) {
        size_t mark = sn_proto_begin(p, SN_PF_FACTS_LABEL);
        put_text(p, SN_PF_LABEL_KEY, labels->list.data[i].key);
        put_text(p, SN_PF_LABEL_VALUE, labels->list.data[i].value);
        sn_proto_end(p, mark);
    }
}

void sn_pf_record_facts(sn_proto *p, const sn_profile *f, uint32_t of)
{
    marks m = begin(p, SN_PF_RECORD_FACTS);
    sn_proto_varint(p, SN_PF_FACTS_FORMAT, of ? SN_PF_FORMAT_JOINED : SN_PF_FORMAT);
    put_text(p, SN_PF_FACTS_MODEL, f->model_name);
    put_text(p, SN_PF_FACTS_VERSION, f->version);
    put_text(p, SN_PF_FACTS_CPU, f->cpu_model);
    put_text(p, SN_PF_FACTS_CPU_LEVEL, f->cpu_level);
    put_number(p, SN_PF_FACTS_CORES, (uint64_t)f->cores);
    put_number(p, SN_PF_FACTS_THREADS, (uint64_t)f->threads);
    put_number(p, SN_PF_FACTS_LEVEL, (uint64_t)f->level);
    put_number(p, SN_PF_FACTS_PID, (uint64_t)f->pid);
    put_number(p, SN_PF_FACTS_START_WALL_NS, f->start_wall_ns);
    put_double(p, SN_PF_FACTS_RECORD_NS, f->record_ns);
    put_number(p, SN_PF_FACTS_DROPPED, f->dropped);
    put_number(p, SN_PF_FACTS_INSTANCE, (uint64_t)f->instance);
    put_double(p, SN_PF_FACTS_PEAK_GFLOPS, f->peak_gops[SN_ARITH_F32]);
    put_double(p, SN_PF_FACTS_PEAK_GBPS, f->peak_gbps);
    put_memory(p, &f->memory);
    put_double(p, SN_PF_FACTS_L2_BYTES, f->caches[0].bytes);
    put_double(p, SN_PF_FACTS_L2_GBPS, f->caches[0].gbps);
    put_double(p, SN_PF_FACTS_L3_BYTES, f->caches[1].bytes);
    put_double(p, SN_PF_FACTS_L3_GBPS, f->caches[1].gbps);
    put_usage(p, &f->usage);
    put_text(p, SN_PF_FACTS_COUNTERS_NOTE, f->counters_note);
    put_number(p, SN_PF_FACTS_CATEGORIES, f->categories);
    put_text(p, SN_PF_FACTS_PRECISION, f->precision);
    put_peaks(p, f);
    put_labels(p, &f->labels);
    put_number(p, SN_PF_FACTS_START_MONO_NS, f->start_mono_ns);
    put_text(p, SN_PF_FACTS_BOOT, f->boot);
    put_number(p, SN_PF_FACTS_WALL_ERROR_NS, f->wall_error_ns);
    if (of || f->note_stays)
        put_text(p, SN_PF_FACTS_NOTE, f->note);
    put_number(p, SN_PF_FACTS_TRACES, of);
    end(p, m);
}

void sn_pf_record_thread(sn_proto *p, const sn_prof_thread *thread)
{
    marks m = begin(p, SN_PF_RECORD_THREAD);
    put_number(p, SN_PF_THREAD_ID, thread->id);
    put_number(p, SN_PF_THREAD_OS_TID, (uint64_t)thread->os_tid);
    put_text(p, SN_PF_THREAD_NAME, thread->name);
    end(p, m);
}

static void put_dims(sn_proto *p, uint32_t field, const int64_t *dims, int32_t rank)
{
    const size_t mark = sn_proto_begin(p, field);
    for (int32_t d = 0; d < rank; d++)
        sn_proto_packed(p, (uint64_t)dims[d]);
    sn_proto_end(p, mark);
}

static void put_tensors(sn_proto *p, uint32_t field, const sn_prof_tensor *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const sn_prof_tensor *x = &list[i];
        size_t mark = sn_proto_begin(p, field);
        put_text(p, SN_PF_TENSOR_NAME, x->name);
        put_text(p, SN_PF_TENSOR_DTYPE, x->dtype);
        if (x->rank >= 0)
            put_dims(p, SN_PF_TENSOR_DIMS, x->dims, x->rank);
        put_text(p, SN_PF_TENSOR_TEXT, x->text);
        put_number(p, SN_PF_TENSOR_CONSTANT, x->constant);
        put_double(p, SN_PF_TENSOR_ZEROS, x->zeros);
        put_number(p, SN_PF_TENSOR_VALUE, x->value);
        put_text(p, SN_PF_TENSOR_PORT, x->port);
        if (x->port_dims)
            put_dims(p, SN_PF_TENSOR_PORT_DIMS, x->port_dims, x->port_rank);
        sn_proto_end(p, mark);
    }
}

static void put_counts(sn_proto *p, uint32_t field, const sn_prof_hw *hw)
{
    if (!(hw->calls > 0))
        return;
    size_t mark = sn_proto_begin(p, field);
    put_double(p, SN_PF_HW_CALLS, hw->calls);
    put_double(p, SN_PF_HW_CYCLES, hw->cycles);
    put_double(p, SN_PF_HW_INSTRUCTIONS, hw->instructions);
    put_double(p, SN_PF_HW_CACHE_MISSES, hw->cache_misses);
    put_double(p, SN_PF_HW_BRANCH_MISSES, hw->branch_misses);
    sn_proto_end(p, mark);
}

void sn_pf_record_step(sn_proto *p, const sn_prof_step *s)
{
    marks m = begin(p, SN_PF_RECORD_STEP);
    put_number(p, SN_PF_STEP_TABLE, s->table);
    put_number(p, SN_PF_STEP_INDEX, s->index);
    put_text(p, SN_PF_STEP_OP_TYPE, s->op_type);
    put_text(p, SN_PF_STEP_NAME, s->name);
    put_text(p, SN_PF_STEP_POST_OP, s->post_op);
    for (uint32_t i = 0; i < s->n_origins; i++) {
        size_t mark = sn_proto_begin(p, SN_PF_STEP_ORIGIN);
        put_text(p, SN_PF_ORIGIN_NAME, s->origins[i].name);
        put_text(p, SN_PF_ORIGIN_OP_TYPE, s->origins[i].op_type);
        sn_proto_end(p, mark);
    }
    put_tensors(p, SN_PF_STEP_INPUT, s->inputs, s->n_inputs);
    put_tensors(p, SN_PF_STEP_OUTPUT, s->outputs, s->n_outputs);
    put_text(p, SN_PF_STEP_KERNEL, s->kernel);
    put_text(p, SN_PF_STEP_ATTRIBUTES, s->attributes);
    put_number(p, SN_PF_STEP_FLOPS, s->flops);
    put_number(p, SN_PF_STEP_BYTES, s->bytes);
    put_number(p, SN_PF_STEP_BIND_NS, s->bind_ns);
    put_number(p, SN_PF_STEP_FLAGS,
               (s->folded ? SN_PF_STEP_FOLDED : 0u) | (s->dynamic ? SN_PF_STEP_DYNAMIC : 0u) |
                   (s->control ? SN_PF_STEP_CONTROL : 0u));
    put_counts(p, SN_PF_STEP_COUNTS, &s->hw);
    put_text(p, SN_PF_STEP_ARITHMETIC, sn_arithmetic_name(s->arithmetic));
    put_number(p, SN_PF_STEP_THREADS, s->threads);
    end(p, m);
}

void sn_pf_record_counts(sn_proto *p, uint32_t step, const sn_prof_hw *hw)
{
    marks m = begin(p, SN_PF_RECORD_COUNTS);
    put_number(p, SN_PF_COUNTS_STEP, step);
    put_counts(p, SN_PF_COUNTS_COUNTS, hw);
    end(p, m);
}

void sn_pf_record_life(sn_proto *p, const sn_prof_life *life)
{
    marks m = begin(p, SN_PF_RECORD_LIFE);
    put_number(p, SN_PF_LIFE_TABLE, life->table);
    put_number(p, SN_PF_LIFE_FIRST, life->first);
    put_number(p, SN_PF_LIFE_LAST, life->last);
    put_text(p, SN_PF_LIFE_NAME, life->name);
    put_number(p, SN_PF_LIFE_OFFSET, life->offset);
    put_number(p, SN_PF_LIFE_BYTES, life->bytes);
    put_number(p, SN_PF_LIFE_PLACE, (uint64_t)life->place);
    end(p, m);
}

/* Doubles as they lie on a machine that is little-endian, as protobuf has them. */
static void put_doubles(sn_proto *p, uint32_t field, const double *all, size_t n)
{
    if (n)
        sn_proto_bytes(p, field, all, n * sizeof *all);
}

void sn_pf_record_left(sn_proto *p, const sn_prof_left *left)
{
    marks m = begin(p, SN_PF_RECORD_LEFT);
    put_number(p, SN_PF_LEFT_WARMUPS, left->warmups);
    put_double(p, SN_PF_LEFT_COST_NS, left->cost_ns);
    put_number(p, SN_PF_LEFT_FIRST_NS, left->first_ns);
    put_number(p, SN_PF_LEFT_LAST_NS, left->last_ns);
    put_doubles(p, SN_PF_LEFT_WALL_NS, left->wall_ns.data, left->wall_ns.n);
    for (size_t i = 0; i < left->steps.n; i++) {
        const sn_prof_left_step *s = &left->steps.data[i];
        const size_t mark = sn_proto_begin(p, SN_PF_LEFT_STEP);
        put_number(p, SN_PF_LEFT_STEP_STEP, s->step);
        put_double(p, SN_PF_LEFT_STEP_CALLS, s->calls);
        put_double(p, SN_PF_LEFT_STEP_TOTAL_NS, s->total_ns);
        put_doubles(p, SN_PF_LEFT_STEP_POINTS, s->points, SN_LEFT_POINTS);
        sn_proto_end(p, mark);
    }
    end(p, m);
}

void sn_pf_record_span(sn_proto *p, const sn_prof_span *s, uint32_t name_id, const char *name)
{
    marks m = begin(p, SN_PF_RECORD_SPAN);
    put_number(p, SN_PF_SPAN_ID, s->id);
    put_number(p, SN_PF_SPAN_PARENT, s->parent);
    put_number(p, SN_PF_SPAN_CAT, (uint64_t)s->cat);
    put_number(p, SN_PF_SPAN_THREAD, s->thread);
    put_number(p, SN_PF_SPAN_DUR_NS, s->dur_ns);
    if (s->step != UINT32_MAX)
        sn_proto_varint(p, SN_PF_SPAN_STEP, s->step);
    put_number(p, SN_PF_SPAN_RUN, s->run);
    put_number(p, SN_PF_SPAN_ITERATION, s->iteration);
    put_number(p, SN_PF_SPAN_WARMUP, s->warmup);
    put_number(p, SN_PF_SPAN_BOUND, s->bound);
    put_number(p, SN_PF_SPAN_NAME_ID, name_id);
    if (!name_id)
        put_text(p, SN_PF_SPAN_NAME, name);
    put_text(p, SN_PF_SPAN_ARGS, s->args);
    put_number(p, SN_PF_SPAN_INSTANCE, s->instance);
    put_text(p, SN_PF_SPAN_CATEGORY, s->category);
    end(p, m);
}

void sn_pf_record_counter(sn_proto *p, const sn_prof_counter *c, uint32_t name_id)
{
    marks m = begin(p, SN_PF_RECORD_COUNTER);
    put_number(p, SN_PF_COUNTER_NAME_ID, name_id);
    if (!name_id)
        put_text(p, SN_PF_COUNTER_NAME, c->name);
    sn_proto_double(p, SN_PF_COUNTER_VALUE, c->value);
    if (c->step != UINT32_MAX)
        sn_proto_varint(p, SN_PF_COUNTER_STEP, c->step);
    end(p, m);
}

void sn_pf_record_end(sn_proto *p)
{
    end(p, begin(p, SN_PF_RECORD_END));
}
