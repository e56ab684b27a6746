/* SPDX-License-Identifier: Apache-2.0 */
/* sonde's own .pftrace: the records beside Perfetto's events hold everything (pftrace_fields.h).
 * The bytes may end anywhere: what is complete up to there is the profile, and a note says so. A
 * joined file is read trace by trace. */
#include "profile_readers/pftrace_reader.h"
#include "profile_readers/reader.h"

/* ------------------------------------------------------------------ events */
static const char *name_of(const sn_pf_reader *r, uint64_t id)
{
    return id >= 1 && id <= r->names.n ? r->names.data[id - 1] : "";
}

static void read_span(sn_pf_reader *r, sn_wire w, uint64_t at)
{
    sn_prof_span *s = sn_build_span(&r->b, SN_CAT_MODEL);
    if (!s)
        return;
    s->start_ns = at;
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        switch (f.tag) {
        case SN_INT(SN_PF_SPAN_ID):
            s->id = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_PARENT):
            s->parent = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_CAT):
            s->cat = f.num < SN_CAT_COUNT ? (sn_prof_cat)f.num : SN_CAT_USER;
            break;
        case SN_INT(SN_PF_SPAN_THREAD):
            s->thread = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_DUR_NS):
            s->dur_ns = f.num;
            break;
        case SN_INT(SN_PF_SPAN_STEP):
            s->step = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_RUN):
            s->run = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_ITERATION):
            s->iteration = sn_pf_small(f.num);
            break;
        case SN_INT(SN_PF_SPAN_WARMUP):
            s->warmup = f.num != 0;
            break;
        case SN_INT(SN_PF_SPAN_BOUND):
            s->bound = f.num != 0;
            break;
        case SN_INT(SN_PF_SPAN_NAME_ID):
            s->name = name_of(r, f.num);
            break;
        case SN_LEN(SN_PF_SPAN_NAME):
            s->name = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_SPAN_CATEGORY):
            s->category = sn_pf_text(r, &f);
            break;
        case SN_LEN(SN_PF_SPAN_ARGS):
            s->args = sn_pf_text(r, &f);
            break;
        case SN_INT(SN_PF_SPAN_INSTANCE):
            s->instance = sn_pf_small(f.num);
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

static void read_counter(sn_pf_reader *r, sn_wire w, uint64_t at)
{
    sn_prof_counter c = {.at_ns = at, .name = "", .step = UINT32_MAX};
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_COUNTER_NAME_ID))
            c.name = name_of(r, f.num);
        else if (f.tag == SN_LEN(SN_PF_COUNTER_NAME))
            c.name = sn_pf_text(r, &f);
        else if (f.tag == SN_F64(SN_PF_COUNTER_VALUE))
            c.value = sn_pf_real(f.num);
        else if (f.tag == SN_INT(SN_PF_COUNTER_STEP))
            c.step = sn_pf_small(f.num);
    }
    r->b.failed |= !sn_vec_push(&r->p->counters, r->p->alloc, c);
}

/* ------------------------------------------------------------------ packets */
/* Names are numbered in the order they appear; one out of order is not ours and is left out. */
static void read_names(sn_pf_reader *r, sn_wire data)
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
                name = sn_pf_text(r, &part);
        }
        if (id == r->names.n + 1)
            r->b.failed |= !sn_vec_push(&r->names, r->p->alloc, name);
    }
}

static sonde_status read_record(sn_pf_reader *r, sn_wire w, uint64_t at, sonde_error *err)
{
    sn_field f;
    while (sn_wire_next(&w, &f) == SN_WIRE_FIELD) {
        if (r->facts_only && f.tag != SN_LEN(SN_PF_RECORD_FACTS) &&
            f.tag != SN_LEN(SN_PF_RECORD_END))
            continue;
        switch (f.tag) {
        case SN_LEN(SN_PF_RECORD_FACTS):
            SN_TRY(sn_pf_read_facts(r, f.body, err));
            break;
        case SN_LEN(SN_PF_RECORD_STEP):
            sn_pf_read_step(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_LIFE):
            sn_pf_read_life(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_THREAD):
            sn_pf_read_thread(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_SPAN):
            read_span(r, f.body, at);
            break;
        case SN_LEN(SN_PF_RECORD_COUNTER):
            read_counter(r, f.body, at);
            break;
        case SN_LEN(SN_PF_RECORD_COUNTS):
            sn_pf_read_counts(r, f.body);
            break;
        case SN_LEN(SN_PF_RECORD_LEFT):
            sn_pf_read_left(r, f.body);
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

static sonde_status read_packet(sn_pf_reader *r, sn_wire packet, sonde_error *err)
{
    sn_wire record = {NULL, NULL};
    uint64_t at = 0;
    sn_field f;
    while (sn_wire_next(&packet, &f) == SN_WIRE_FIELD) {
        if (f.tag == SN_INT(SN_PF_PACKET_TIMESTAMP))
            at = f.num;
        else if (f.tag == SN_LEN(SN_PF_PACKET_RECORD))
            record = f.body;
        else if (f.tag == SN_LEN(SN_PF_PACKET_INTERNED_DATA))
            read_names(r, f.body);
        else if (f.tag == SN_INT(SN_PF_PACKET_SEQUENCE_FLAGS) && f.num & SN_PF_SEQUENCE_CLEARED) {
            r->next = r->facts;
            if (r->next) /* it is the next trace's; the flags stand before the names */
                return SONDE_OK;
            r->names.n = 0;
        }
    }
    return record.at ? read_record(r, record, at, err) : SONDE_OK;
}

/* `good`: where the last packet of this trace ends. */
static sonde_status read_packets(sn_pf_reader *r, sn_wire trace, const uint8_t *start, size_t *good,
                                 sonde_error *err)
{
    sn_wire_status st = SN_WIRE_FIELD;
    sn_field f;
    while (!r->b.failed && (st = sn_wire_next(&trace, &f)) == SN_WIRE_FIELD) {
        if (f.tag == SN_LEN(SN_PF_TRACE_PACKET))
            SN_TRY(read_packet(r, f.body, err));
        if (r->next)
            break;
        *good = (size_t)(trace.at - start);
    }
    return r->b.failed ? sn_fail_memory(err, sizeof(sn_prof_span)) : SONDE_OK;
}

/* What is missing here, beside what was missing when the trace was joined to others. */
static sonde_status note_end(sn_pf_reader *r, size_t good, sonde_error *err)
{
    sn_profile *p = r->p;
    if (r->whole)
        return SONDE_OK;
    p->note = sn_arena_printf(&p->arena,
                              "%s%sthe trace ends at byte %zu without its last record: it was "
                              "truncated or is still being written; the part before is used",
                              p->note, *p->note ? "; " : "", good);
    return p->note ? SONDE_OK : sn_fail_memory(err, 1);
}

static sonde_status read_pftrace(sn_profile_part *part, const void *data, size_t bytes,
                                 sn_profile *p, sonde_error *err)
{
    const uint8_t *start = data;
    sn_pf_reader r = {.p = p, .facts_only = part->facts_only};
    size_t good = part->from;
    sn_build_init(&r.b, p);
    sonde_status st =
        read_packets(&r, sn_wire_of(start + part->from, bytes - part->from), start, &good, err);
    part->to = r.next ? good : bytes;
    part->of = r.of;
    part->empty = st == SONDE_OK && !r.facts;
    if (part->empty)
        st = sn_fail(err, SONDE_INVALID_ARGUMENT,
                     "it has no record of sonde up to byte %zu: it was written by another "
                     "program, or truncated",
                     good);
    if (st == SONDE_OK)
        st = note_end(&r, good, err);
    if (st == SONDE_OK)
        st = sn_build_finish(&r.b, SN_BUILD_GIVEN, false, err);
    sn_vec_free(&r.names, p->alloc);
    sn_build_free(&r.b);
    return st;
}

/* A packet first, and in it or behind it the names every trace of ours begins with. */
static bool sniff_pftrace(const char *head, size_t bytes)
{
    return bytes && head[0] == '\n' && sn_profile_sniff_has(head, bytes, "input_tensor_name") &&
           sn_profile_sniff_has(head, bytes, "sonde");
}

const sn_profile_reader sn_profile_reader_pftrace = {
    .name = "a Perfetto trace of sonde", .sniff = sniff_pftrace, .read_part = read_pftrace};
