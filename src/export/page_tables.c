/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the report page: rows, steps and lives, as members of its JSON. */
#include <string.h>

#include "base/map.h"
#include "export/page.h"

enum { KEYS = 4 };
static const struct {
    sn_prof_key key;
    const char *name;
} keys[KEYS] = {
    {SN_BY_OP, "op"}, {SN_BY_NODE, "node"}, {SN_BY_SHAPE, "shape"}, {SN_BY_KERNEL, "kernel"}};

static void key_true(sn_writer *w, bool *first, const char *key, bool value)
{
    if (!value)
        return;
    sn_put_key(w, first, key);
    sn_put(w, "true");
}

static void put_counts(sn_writer *w, bool *first, const sn_prof_hw *hw)
{
    if (!(hw->calls > 0))
        return;
    bool own = true;
    sn_put_key(w, first, "hw");
    sn_put(w, "{");
    sn_put_key_number(w, &own, "calls", hw->calls);
    sn_put_key_number(w, &own, "cycles", hw->cycles);
    sn_put_key_number(w, &own, "instructions", hw->instructions);
    sn_put_key_number(w, &own, "cache_misses", hw->cache_misses);
    sn_put_key_number(w, &own, "branch_misses", hw->branch_misses);
    sn_put(w, "}");
}

/* ------------------------------------------------------------------ rows */
static void put_row(sn_writer *w, const sn_profile *p, const sn_prof_row *r, sn_prof_key key)
{
    bool first = true;
    const char *bound = "";
    char arithmetic[SN_ARITH_TEXT];
    double roofline = -1;
    if (!r->bracket && r->calls > 0)
        roofline = sn_prof_attained(p, r->peak_ns < 0 ? -1 : r->peak_ns / r->calls,
                                    r->bytes / r->calls, r->usual_ns / r->calls, &bound);
    sn_put(w, "{");
    sn_put_key_text(w, &first, "name", r->name);
    sn_put_key_text(w, &first, "op", r->op_type);
    sn_put_key_text(w, &first, "kernel", r->kernel);
    sn_put_key_text(w, &first, "node", key == SN_BY_NODE ? r->nodes : r->example);
    sn_put_key_number(w, &first, "calls", r->calls);
    sn_put_key_number(w, &first, "mean_ns", r->mean_ns);
    sn_put_key(w, &first, "share");
    sn_put_fixed(w, r->share, 9);
    sn_put_key_number(w, &first, "usual_ns", r->usual_ns);
    sn_put_key(w, &first, "usual_share");
    sn_put_fixed(w, r->usual_share, 9);
    sn_put_key_number(w, &first, "call_mean_ns", r->per_call_mean_ns);
    sn_put_key_number(w, &first, "call_p50_ns", r->per_call_p50_ns);
    sn_put_key_number(w, &first, "call_p99_ns", r->per_call_p99_ns);
    sn_put_key_number(w, &first, "flops", r->flops);
    sn_put_key_number(w, &first, "bytes", r->bytes);
    sn_put_key(w, &first, "roofline");
    if (roofline >= 0)
        sn_put_fixed(w, roofline, 6);
    else
        sn_put(w, "null");
    sn_put_key_text(w, &first, "bound", bound);
    sn_put_key_text(w, &first, "arithmetic",
                    r->arithmetic ? sn_arithmetic_text(r->arithmetic, arithmetic) : "");
    key_true(w, &first, "direct", sn_prof_counts_direct(r));
    put_counts(w, &first, &r->hw);
    sn_put_key(w, &first, "step");
    sn_put_i64(w, r->step < p->steps.n ? (int64_t)r->step : -1);
    key_true(w, &first, "bracket", r->bracket);
    sn_put(w, "}");
}

/* Rows of all keys; `rows` receives for every key the row of each step. */
static sonde_status put_rows(sn_writer *w, const sn_profile *p, uint32_t *rows, sonde_error *err)
{
    sn_put(w, "\"rows\":{");
    for (int k = 0; k < KEYS; k++) {
        sn_prof_summary s;
        SN_TRY(sn_profile_summarise(p, keys[k].key, &s, err));
        const sonde_status st =
            sn_profile_step_rows(p, keys[k].key, &s, rows + (size_t)k * p->steps.n, err);
        sn_put(w, k ? "," : "");
        sn_put_json(w, keys[k].name);
        sn_put(w, ":[");
        for (size_t i = 0; i < s.rows.n && st == SONDE_OK; i++) {
            sn_put(w, i ? "," : "");
            put_row(w, p, &s.rows.data[i], keys[k].key);
        }
        sn_put(w, "]");
        sn_prof_summary_free(&s);
        SN_TRY(st);
    }
    sn_put(w, "}");
    return SONDE_OK;
}

/* ------------------------------------------------------------------ steps */
static void put_tensor(sn_writer *w, const sn_prof_tensor *t)
{
    bool first = true;
    sn_put(w, "{");
    sn_put_key_text(w, &first, "name", t->name);
    sn_put_key_text(w, &first, "dtype", t->dtype);
    sn_put_key(w, &first, "dims");
    if (t->rank < 0) {
        sn_put(w, "null");
    } else {
        sn_put(w, "[");
        for (int32_t d = 0; d < t->rank; d++) {
            sn_put(w, d ? "," : "");
            sn_put_i64(w, t->dims[d] < 0 ? -1 : t->dims[d]);
        }
        sn_put(w, "]");
    }
    if (t->text)
        sn_put_key_text(w, &first, "text", t->text);
    key_true(w, &first, "constant", t->constant);
    if (t->zeros >= 0)
        sn_put_key_number(w, &first, "zeros", t->zeros);
    if (t->value)
        sn_put_key_number(w, &first, "value", t->value);
    sn_put(w, "}");
}

static void put_tensors(sn_writer *w, bool *first, const char *key, const sn_prof_tensor *list,
                        uint32_t n)
{
    sn_put_key(w, first, key);
    sn_put(w, "[");
    for (uint32_t i = 0; i < n; i++) {
        sn_put(w, i ? "," : "");
        put_tensor(w, &list[i]);
    }
    sn_put(w, "]");
}

static void put_origins(sn_writer *w, bool *first, const sn_prof_step *s)
{
    sn_put_key(w, first, "origins");
    sn_put(w, "[");
    for (uint32_t i = 0; i < s->n_origins; i++) {
        bool own = true;
        sn_put(w, i ? ",{" : "{");
        sn_put_key_text(w, &own, "name", s->origins[i].name);
        sn_put_key_text(w, &own, "op", s->origins[i].op_type);
        sn_put(w, "}");
    }
    sn_put(w, "]");
}

static void put_step(sn_writer *w, const sn_profile *p, size_t at, const uint32_t *rows)
{
    const sn_prof_step *s = &p->steps.data[at];
    bool first = true;
    sn_put(w, "{");
    sn_put_key_number(w, &first, "table", s->table);
    sn_put_key_number(w, &first, "index", s->index);
    sn_put_key_text(w, &first, "op", s->op_type);
    sn_put_key_text(w, &first, "name", s->name);
    sn_put_key_text(w, &first, "post_op", s->post_op);
    put_origins(w, &first, s);
    put_tensors(w, &first, "inputs", s->inputs, s->n_inputs);
    put_tensors(w, &first, "outputs", s->outputs, s->n_outputs);
    sn_put_key_text(w, &first, "kernel", s->kernel);
    sn_put_key_text(w, &first, "attributes", s->attributes);
    sn_put_key_number(w, &first, "flops", (double)s->flops);
    sn_put_key_number(w, &first, "bytes", (double)s->bytes);
    sn_put_key_text(w, &first, "arithmetic",
                    s->arithmetic == SN_ARITH_NONE ? "" : sn_arithmetic_name(s->arithmetic));
    sn_put_key_number(w, &first, "bind_ns", (double)s->bind_ns);
    put_counts(w, &first, &s->hw);
    key_true(w, &first, "folded", s->folded);
    key_true(w, &first, "dynamic", s->dynamic);
    key_true(w, &first, "control", s->control);
    sn_put_key(w, &first, "rows");
    for (size_t k = 0; k < KEYS; k++) {
        const uint32_t row = rows[k * p->steps.n + at];
        sn_put(w, k ? "," : "[");
        sn_put_i64(w, row == UINT32_MAX ? -1 : (int64_t)row);
    }
    sn_put(w, "]}");
}

static void put_lives(sn_writer *w, const sn_profile *p)
{
    sn_put(w, ",\"lives\":[");
    for (size_t i = 0; i < p->lives.n; i++) {
        const sn_prof_life *l = &p->lives.data[i];
        bool first = true;
        sn_put(w, i ? ",{" : "{");
        sn_put_key_number(w, &first, "table", l->table);
        sn_put_key_number(w, &first, "first", l->first);
        sn_put_key_number(w, &first, "last", l->last);
        sn_put_key_text(w, &first, "name", l->name);
        sn_put_key(w, &first, "offset");
        sn_put_u64(w, l->offset);
        sn_put_key(w, &first, "bytes");
        sn_put_u64(w, l->bytes);
        sn_put_key_text(w, &first, "place", sn_prof_place_name(l->place));
        sn_put(w, "}");
    }
    sn_put(w, "]");
}

/* ------------------------------------------------------------------ ports */
typedef struct port_list {
    sn_map seen; /* table, value and direction ► itself */
    sn_arena arena;
    bool any;
} port_list;

static bool put_port(sn_writer *w, port_list *l, uint32_t table, const sn_prof_tensor *t,
                     bool output)
{
    const uint32_t key[3] = {table, t->value, output};
    if (!t->port || !t->value || sn_map_get_n(&l->seen, key, sizeof key))
        return true;
    char *own = sn_arena_alloc(&l->arena, sizeof key, _Alignof(uint32_t));
    if (!own)
        return false;
    memcpy(own, key, sizeof key);
    if (!sn_map_put_n(&l->seen, own, sizeof key, own, NULL))
        return false;
    bool first = true;
    sn_put(w, l->any ? ",{" : "{");
    l->any = true;
    sn_put_key_number(w, &first, "table", table);
    sn_put_key_text(w, &first, "name", t->port);
    sn_put_key_number(w, &first, "value", t->value);
    key_true(w, &first, "output", output);
    sn_put(w, "}");
    return true;
}

/* What comes into a graph and what goes out of it, each once. */
static sonde_status put_ports(sn_writer *w, const sn_profile *p, sonde_error *err)
{
    port_list l = {.any = false};
    sn_map_init(&l.seen, p->alloc);
    sn_arena_init(&l.arena, p->alloc);
    bool fine = true;
    sn_put(w, ",\"ports\":[");
    for (size_t i = 0; i < p->steps.n && fine; i++) {
        const sn_prof_step *s = &p->steps.data[i];
        for (uint32_t k = 0; k < s->n_inputs && fine; k++)
            fine = put_port(w, &l, s->table, &s->inputs[k], false);
        for (uint32_t k = 0; k < s->n_outputs && fine; k++)
            fine = put_port(w, &l, s->table, &s->outputs[k], true);
    }
    sn_put(w, "]");
    sn_map_free(&l.seen);
    sn_arena_free(&l.arena);
    return fine ? SONDE_OK : sn_fail_memory(err, sizeof(uint32_t[3]));
}

sonde_status sn_page_tables(const sn_profile *p, sn_writer *w, sonde_error *err)
{
    const size_t n = KEYS * (p->steps.n ? p->steps.n : 1);
    uint32_t *rows = sn_alloc(p->alloc, n * sizeof *rows);
    if (!rows)
        return sn_fail_memory(err, n * sizeof *rows);
    const sonde_status st = put_rows(w, p, rows, err);
    sn_put(w, ",\"steps\":[");
    for (size_t i = 0; i < p->steps.n && st == SONDE_OK; i++) {
        sn_put(w, i ? "," : "");
        put_step(w, p, i, rows);
    }
    sn_put(w, "]");
    put_lives(w, p);
    sn_free(p->alloc, rows, n * sizeof *rows);
    return st ? st : put_ports(w, p, err);
}
