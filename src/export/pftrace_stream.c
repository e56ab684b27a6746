/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, steps and counters. The first packet sets the clock (ns 0 is a moment of the wall clock),
 * categories and the names of annotations; other texts are interned as they appear, in a packet
 * before the first that uses them. The arguments of a step are encoded once, so a slice is
 * a copy of them and a few numbers. */
#include "export/pftrace_stream.h"

#include <math.h>
#include <string.h>

#include "export/pftrace_writer.h"
#include "export/step_text.h"
#include "export/writer.h"

enum { CLOCK_REALTIME_ID = 1, CLOCK_OWN_ID = 64 };
enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIME = 2 };
enum { DEFAULTS_CLOCK = 58 };
enum {
    NOTE_NAME_ID = 1,
    NOTE_BOOL = 2,
    NOTE_UINT = 3,
    NOTE_DOUBLE = 5,
    NOTE_STRING = 6,
    NOTE_NAME = 10,
    NOTE_ARRAY = 12,
    NOTE_STRING_ID = 17
};

#define MODEL_TITLE "model_inference"

static uint32_t intern_name(sn_pftrace *t, const char *name)
{
    return sn_pf_intern(t, &t->names, &t->n_names, SN_PF_INTERNED_NAMES, name);
}

/* ------------------------------------------------------------------ annotations */
static size_t begin_note(sn_proto *p, uint32_t note)
{
    size_t mark = sn_proto_begin(p, SN_PF_EVENT_ANNOTATIONS);
    sn_proto_varint(p, NOTE_NAME_ID, note);
    return mark;
}

static void note_text(sn_proto *p, uint32_t note, const char *text)
{
    size_t mark = begin_note(p, note);
    sn_proto_text(p, NOTE_STRING, text);
    sn_proto_end(p, mark);
}

static void note_number(sn_proto *p, uint32_t note, uint64_t v)
{
    size_t mark = begin_note(p, note);
    sn_proto_varint(p, NOTE_UINT, v);
    sn_proto_end(p, mark);
}

/* A text that many events carry: interned, or written out when there are too many. */
static void note_interned(sn_pftrace *t, uint32_t note, const char *text)
{
    uint32_t id = sn_pf_intern(t, &t->strings, &t->n_strings, SN_PF_INTERNED_STRINGS, text);
    if (!id) {
        note_text(&t->scratch, note, text);
        return;
    }
    size_t mark = begin_note(&t->scratch, note);
    sn_proto_varint(&t->scratch, NOTE_STRING_ID, id);
    sn_proto_end(&t->scratch, mark);
}

static void note_nodes(sn_pftrace *t, const sn_prof_step *s)
{
    size_t mark = begin_note(&t->scratch, SN_PF_NOTE_nodes);
    for (uint32_t i = 0; i < s->n_origins; i++) {
        size_t item = sn_proto_begin(&t->scratch, NOTE_ARRAY);
        sn_proto_text(&t->scratch, NOTE_STRING, s->origins[i].name);
        sn_proto_end(&t->scratch, item);
    }
    sn_proto_end(&t->scratch, mark);
}

/* ------------------------------------------------------------------ opening */
static void put_clock(sn_proto *p, uint32_t id, uint64_t time)
{
    size_t mark = sn_proto_begin(p, SNAPSHOT_CLOCKS);
    sn_proto_varint(p, CLOCK_ID, id);
    sn_proto_varint(p, CLOCK_TIME, time);
    sn_proto_end(p, mark);
}

static void first_packet(sn_pftrace *t, const sn_profile *facts)
{
    static const char *const notes[] = {
#define X(name) #name,
        SN_PF_ANNOTATIONS(X)
#undef X
    };
    sn_proto *p = &t->out;
    size_t packet = sn_pf_packet(t);
    sn_proto_varint(p, SN_PF_PACKET_SEQUENCE_FLAGS, SN_PF_SEQUENCE_CLEARED);
    sn_proto_varint(p, SN_PF_PACKET_FIRST, 1);
    size_t defaults = sn_proto_begin(p, SN_PF_PACKET_DEFAULTS);
    sn_proto_varint(p, DEFAULTS_CLOCK, CLOCK_OWN_ID);
    sn_proto_end(p, defaults);
    size_t snapshot = sn_proto_begin(p, SN_PF_PACKET_CLOCK_SNAPSHOT);
    put_clock(p, CLOCK_REALTIME_ID, facts->start_wall_ns);
    put_clock(p, CLOCK_OWN_ID, 0);
    sn_proto_varint(p, SNAPSHOT_PRIMARY, CLOCK_REALTIME_ID);
    sn_proto_end(p, snapshot);
    size_t data = sn_proto_begin(p, SN_PF_PACKET_INTERNED_DATA);
    for (uint32_t c = 0; c < SN_CAT_COUNT; c++)
        sn_pf_put_entry(p, SN_PF_INTERNED_CATEGORIES, c + 1, sn_prof_cat_name((sn_prof_cat)c));
    for (uint32_t k = 0; k < sizeof notes / sizeof notes[0]; k++)
        sn_pf_put_entry(p, SN_PF_INTERNED_ANNOTATIONS, k + 1, notes[k]);
    sn_proto_end(p, data);
    sn_pf_packet_end(t, packet);
}

/* Named by the user: not among the names that have numbers. */
static void note_labels(sn_pftrace *t, const sn_labels *labels)
{
    for (size_t i = 0; i < labels->list.n; i++) {
        const char *name = sn_arena_printf(&t->arena, "label.%s", labels->list.data[i].key);
        size_t mark = sn_proto_begin(&t->out, SN_PF_EVENT_ANNOTATIONS);
        sn_proto_text(&t->out, NOTE_NAME, name);
        sn_proto_text(&t->out, NOTE_STRING, labels->list.data[i].value);
        sn_proto_end(&t->out, mark);
        t->failed |= !name;
    }
}

/* The facts where a person finds them, on the process, and for readers. */
static void show_facts(sn_pftrace *t, const sn_profile *f)
{
    sn_proto *p = &t->out;
    size_t packet = sn_pf_packet_at(t, 0);
    size_t event = sn_proto_begin(p, SN_PF_PACKET_TRACK_EVENT);
    sn_proto_varint(p, SN_PF_EVENT_TYPE, SN_PF_INSTANT);
    sn_proto_varint(p, SN_PF_EVENT_TRACK, t->process);
    sn_proto_varint(p, SN_PF_EVENT_CATEGORY_IDS, SN_CAT_MODEL + 1);
    sn_proto_text(p, SN_PF_EVENT_NAME, "sonde.profile");
    note_text(p, SN_PF_NOTE_model, f->model_name);
    note_text(p, SN_PF_NOTE_version, f->version);
    note_text(p, SN_PF_NOTE_cpu, f->cpu_model);
    note_text(p, SN_PF_NOTE_cpu_level, f->cpu_level);
    note_number(p, SN_PF_NOTE_cores, (uint64_t)f->cores);
    note_number(p, SN_PF_NOTE_threads, (uint64_t)f->threads);
    if (*f->precision)
        note_text(p, SN_PF_NOTE_precision, f->precision);
    note_number(p, SN_PF_NOTE_level, (uint64_t)f->level);
    note_number(p, SN_PF_NOTE_start_time_ns, f->start_wall_ns);
    note_labels(t, &f->labels);
    if (!isnan(f->record_ns)) {
        size_t mark = begin_note(p, SN_PF_NOTE_profiler_ns_per_record);
        sn_proto_double(p, NOTE_DOUBLE, f->record_ns);
        sn_proto_end(p, mark);
    }
    sn_proto_end(p, event);
    sn_pf_record_facts(p, f, t->of);
    sn_pf_packet_end(t, packet);
}

sonde_status sn_pftrace_open(sn_pftrace **out, sn_sink *sink, const sn_profile *facts,
                             sn_allocator *alloc, sonde_error *err)
{
    return sn_pftrace_open_section(out, sink, facts, NULL, alloc, err);
}

/* Traces of several processes may be put together: their tracks must not be the same. */
static uint64_t choose_uuids(const sn_profile *facts, const sn_pftrace_section *section)
{
    const uint64_t who[] = {(uint64_t)facts->pid, facts->start_wall_ns, (uint64_t)facts->instance};
    if (section)
        return (uint64_t)section->number << 36;
    return (sn_hash(who, sizeof who, 1) | 1) >> 32 << 20;
}

sonde_status sn_pftrace_open_section(sn_pftrace **out, sn_sink *sink, const sn_profile *facts,
                                     const sn_pftrace_section *section, sn_allocator *alloc,
                                     sonde_error *err)
{
    *out = NULL;
    sn_pftrace *t = sn_alloc_zero(alloc, sizeof *t);
    if (!t)
        return sn_fail_memory(err, sizeof *t);
    t->alloc = alloc;
    t->sink = sink;
    sn_arena_init(&t->arena, alloc);
    sn_proto_init(&t->out, alloc);
    sn_proto_init(&t->scratch, alloc);
    sn_map_init(&t->names, alloc);
    sn_map_init(&t->strings, alloc);
    sn_map_init(&t->counters, alloc);
    t->pid = section ? section->pid : facts->pid;
    t->sequence = section ? section->number : 1;
    t->of = section ? section->of : 0;
    t->categories = facts->categories;
    t->base_uuid = choose_uuids(facts, section);
    t->model = sn_arena_strdup(&t->arena, facts->model_name ? facts->model_name : "");
    if (!t->model) {
        sn_pftrace_close(t, NULL, NULL);
        return sn_fail_memory(err, 1);
    }
    first_packet(t, facts);
    sn_pf_open_process(t, facts, section ? section->name : NULL);
    show_facts(t, facts);
    *out = t;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ tables */
bool sn_pftrace_facts(sn_pftrace *t, const sn_profile *facts)
{
    size_t packet = sn_pf_packet(t);
    sn_pf_record_facts(&t->out, facts, t->of);
    return sn_pf_packet_end(t, packet);
}

bool sn_pftrace_thread(sn_pftrace *t, const sn_prof_thread *thread)
{
    if (!sn_pf_open_thread(t, thread))
        t->failed |= !t->sink->failed;
    size_t packet = sn_pf_packet(t);
    sn_pf_record_thread(&t->out, thread);
    return sn_pf_packet_end(t, packet);
}

/* The annotations made last, to be copied whenever they are wanted. */
static bool keep_notes(sn_pftrace *t, const unsigned char **notes, size_t *bytes)
{
    *bytes = t->scratch.bytes.n;
    unsigned char *copy = sn_arena_alloc(&t->arena, *bytes, 1);
    if (!copy || t->scratch.failed)
        return false;
    memcpy(copy, t->scratch.bytes.data, *bytes);
    *notes = copy;
    return true;
}

static bool encode_step(sn_pftrace *t, const sn_prof_step *s, sn_pf_step *own)
{
    const sn_step_text *text = sn_step_text_of(s, &t->arena);
    own->title = sn_arena_strdup(&t->arena, sn_step_title(s));
    own->op_type = sn_arena_strdup(&t->arena, s->op_type ? s->op_type : "");
    own->bind_ns = s->bind_ns;
    if (!text || !own->title || !own->op_type)
        return false;
    sn_proto_reset(&t->scratch);
    note_interned(t, SN_PF_NOTE_op, s->op_type);
    note_interned(t, SN_PF_NOTE_post_op, s->post_op);
    note_nodes(t, s);
    note_interned(t, SN_PF_NOTE_kernel, s->kernel);
    note_interned(t, SN_PF_NOTE_arithmetic, sn_arithmetic_name(s->arithmetic));
    note_interned(t, SN_PF_NOTE_input_tensor_name, text->input_names);
    note_interned(t, SN_PF_NOTE_input_type, text->input_types);
    note_interned(t, SN_PF_NOTE_input_shape, text->input_shapes);
    note_interned(t, SN_PF_NOTE_output_tensor_name, text->output_names);
    note_interned(t, SN_PF_NOTE_output_type, text->output_types);
    note_interned(t, SN_PF_NOTE_output_shape, text->output_shapes);
    note_interned(t, SN_PF_NOTE_attributes, s->attributes);
    note_number(&t->scratch, SN_PF_NOTE_flops, s->flops);
    note_number(&t->scratch, SN_PF_NOTE_bytes, s->bytes);
    note_interned(t, SN_PF_NOTE_args_string, text->args_string);
    if (!keep_notes(t, &own->notes, &own->notes_bytes))
        return false;
    sn_proto_reset(&t->scratch);
    note_interned(t, SN_PF_NOTE_op, s->op_type);
    note_interned(t, SN_PF_NOTE_node, s->name);
    own->name_id = intern_name(t, own->title);
    return keep_notes(t, &own->share, &own->share_bytes);
}

bool sn_pftrace_step(sn_pftrace *t, const sn_prof_step *step)
{
    sn_pf_step own = {0};
    if (!encode_step(t, step, &own) || !sn_vec_push(&t->steps, t->alloc, own))
        t->failed = true;
    size_t packet = sn_pf_packet(t);
    sn_pf_record_step(&t->out, step);
    return sn_pf_packet_end(t, packet);
}

bool sn_pftrace_life(sn_pftrace *t, const sn_prof_life *life)
{
    size_t packet = sn_pf_packet(t);
    sn_pf_record_life(&t->out, life);
    return sn_pf_packet_end(t, packet);
}

bool sn_pftrace_left(sn_pftrace *t, const sn_prof_left *left)
{
    if (!left->wall_ns.n && !left->warmups)
        return true;
    size_t packet = sn_pf_packet(t);
    sn_pf_record_left(&t->out, left);
    return sn_pf_packet_end(t, packet);
}

/* ------------------------------------------------------------------ events */
typedef struct title { /* what an event is called: a number, or a text where that is 0 */
    uint32_t id;
    const char *text;
} title;

static title title_of(sn_pftrace *t, const sn_prof_span *s, const sn_pf_step *step)
{
    title own = {0, s->name && *s->name ? s->name : sn_prof_cat_name(s->cat)};
    if (s->cat == SN_CAT_MODEL)
        own.text = MODEL_TITLE;
    if (s->cat == SN_CAT_ITERATION) /* numbered: no two are the same */
        return own;
    if (step && *step->title)
        return (title){step->name_id, step->title};
    own.id = intern_name(t, own.text);
    return own;
}

static uint64_t arrow(const sn_pftrace *t, uint32_t operator_id, uint32_t thread)
{
    const uint64_t key[] = {operator_id, thread};
    return sn_hash(key, sizeof key, t->base_uuid) | 1;
}

static void put_arrows(sn_pftrace *t, const sn_prof_span *s, uint64_t arrows)
{
    if (s->cat == SN_CAT_THREAD && arrows && s->thread < 64)
        sn_proto_fixed64(&t->out, SN_PF_EVENT_FLOWS, arrow(t, s->parent, s->thread));
    for (uint32_t k = 0; s->cat == SN_CAT_OPERATOR && k < 64; k++)
        if (arrows >> k & 1)
            sn_proto_fixed64(&t->out, SN_PF_EVENT_FLOWS, arrow(t, s->id, k));
}

static void put_notes(sn_pftrace *t, const sn_prof_span *s, const sn_pf_step *step)
{
    sn_proto *p = &t->out;
    char ms[40];
    if (step) {
        sn_proto_raw(p, step->notes, step->notes_bytes);
        note_text(p, SN_PF_NOTE_reshape_time, sn_ms_text(ms, s->bound ? step->bind_ns : 0));
        note_text(p, SN_PF_NOTE_forward_time, sn_ms_text(ms, s->dur_ns));
    }
    if (s->cat == SN_CAT_THREAD && s->step < t->steps.n)
        sn_proto_raw(p, t->steps.data[s->step].share, t->steps.data[s->step].share_bytes);
    if (s->cat == SN_CAT_MODEL)
        note_text(p, SN_PF_NOTE_model, t->model);
    if (s->run || s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_ITERATION)
        note_number(p, SN_PF_NOTE_iteration, s->iteration);
    if (s->warmup) {
        size_t mark = begin_note(p, SN_PF_NOTE_warmup);
        sn_proto_varint(p, NOTE_BOOL, 1);
        sn_proto_end(p, mark);
    }
    if (s->instance)
        note_number(p, SN_PF_NOTE_instance, s->instance);
    if (s->run || s->cat == SN_CAT_OPERATOR || s->cat == SN_CAT_ITERATION)
        note_number(p, SN_PF_NOTE_run, s->run);
    if (s->args && *s->args)
        note_text(p, s->cat == SN_CAT_ITERATION ? SN_PF_NOTE_traceparent : SN_PF_NOTE_args,
                  s->args);
    note_number(p, SN_PF_NOTE_span_id, s->id);
    if (s->parent)
        note_number(p, SN_PF_NOTE_parent_span_id, s->parent);
}

/* For readers: a step's type and the model's name are not said again. */
static void put_record(sn_pftrace *t, const sn_prof_span *s, const title *shown,
                       const sn_pf_step *step)
{
    const char *name = s->name ? s->name : "";
    if ((step && strcmp(name, step->op_type) == 0) ||
        (s->cat == SN_CAT_MODEL && strcmp(name, t->model) == 0))
        name = "";
    sn_pf_record_span(&t->out, s, *name && strcmp(name, shown->text) == 0 ? shown->id : 0, name);
}

bool sn_pftrace_slice(sn_pftrace *t, const sn_prof_span *s, uint64_t arrows)
{
    if (!sn_prof_cats_have(t->categories, s->cat))
        return sn_pf_good(t);
    const sn_pf_step *step =
        s->cat == SN_CAT_OPERATOR && s->step < t->steps.n ? &t->steps.data[s->step] : NULL;
    sn_proto *p = &t->out;
    const title name = title_of(t, s, step);
    uint64_t end_ns, track = sn_pf_track_of(t, s, &end_ns);
    if (!track)
        t->failed = true;
    size_t packet = sn_pf_packet_at(t, s->start_ns);
    size_t event = sn_proto_begin(p, SN_PF_PACKET_TRACK_EVENT);
    sn_proto_varint(p, SN_PF_EVENT_TYPE, SN_PF_SLICE_BEGIN);
    sn_proto_varint(p, SN_PF_EVENT_TRACK, track);
    if (s->category && *s->category)
        sn_proto_text(p, SN_PF_EVENT_CATEGORY, s->category);
    else
        sn_proto_varint(p, SN_PF_EVENT_CATEGORY_IDS, (uint64_t)s->cat + 1);
    if (name.id)
        sn_proto_varint(p, SN_PF_EVENT_NAME_ID, name.id);
    else
        sn_proto_text(p, SN_PF_EVENT_NAME, name.text);
    put_arrows(t, s, arrows);
    put_notes(t, s, step);
    sn_proto_end(p, event);
    put_record(t, s, &name, step);
    sn_proto_end(p, packet);

    packet = sn_pf_packet_at(t, end_ns);
    event = sn_proto_begin(p, SN_PF_PACKET_TRACK_EVENT);
    sn_proto_varint(p, SN_PF_EVENT_TYPE, SN_PF_SLICE_END);
    sn_proto_varint(p, SN_PF_EVENT_TRACK, track);
    sn_proto_end(p, event);
    return sn_pf_packet_end(t, packet);
}

bool sn_pftrace_counter(sn_pftrace *t, const sn_prof_counter *c)
{
    if (!sn_prof_cats_have(t->categories, SN_CAT_MEMORY))
        return sn_pf_good(t);
    const char *name = c->name ? c->name : "";
    uint32_t id = intern_name(t, name);
    uint64_t track = sn_pf_open_counter(t, name);
    size_t packet = sn_pf_packet_at(t, c->at_ns);
    if (track) {
        size_t event = sn_proto_begin(&t->out, SN_PF_PACKET_TRACK_EVENT);
        sn_proto_varint(&t->out, SN_PF_EVENT_TYPE, SN_PF_COUNTER);
        sn_proto_varint(&t->out, SN_PF_EVENT_TRACK, track);
        sn_proto_double(&t->out, SN_PF_EVENT_VALUE, c->value);
        sn_proto_end(&t->out, event);
    }
    sn_pf_record_counter(&t->out, c, id);
    return sn_pf_packet_end(t, packet);
}

/* ------------------------------------------------------------------ closing */
/* Steps were told before all of it was counted. */
static void late_counts(sn_pftrace *t, const sn_profile *facts)
{
    for (size_t i = 0; i < facts->steps.n && i < t->steps.n; i++) {
        if (!(facts->steps.data[i].hw.calls > 0))
            continue;
        size_t packet = sn_pf_packet(t);
        sn_pf_record_counts(&t->out, (uint32_t)i, &facts->steps.data[i].hw);
        sn_pf_packet_end(t, packet);
    }
}

sonde_status sn_pftrace_close(sn_pftrace *t, const sn_profile *facts, sonde_error *err)
{
    if (!t)
        return SONDE_OK;
    if (facts) {
        sn_pftrace_facts(t, facts);
        late_counts(t, facts);
    }
    size_t packet = sn_pf_packet(t);
    sn_pf_record_end(&t->out);
    sn_pf_packet_end(t, packet);
    sn_pftrace_flush(t);
    sonde_status st = SONDE_OK;
    if (t->sink->failed)
        st = sn_fail(err, SONDE_IO, "writing the trace failed");
    else if (t->failed || t->out.failed)
        st = sn_fail_memory(err, SN_PF_BUFFER_BYTES);
    sn_allocator *alloc = t->alloc;
    sn_pf_tracks_free(t);
    sn_vec_free(&t->steps, alloc);
    sn_map_free(&t->names);
    sn_map_free(&t->strings);
    sn_map_free(&t->counters);
    sn_proto_free(&t->out);
    sn_proto_free(&t->scratch);
    sn_arena_free(&t->arena);
    sn_free(alloc, t, sizeof *t);
    return st;
}
