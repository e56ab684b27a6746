/* SPDX-License-Identifier: Apache-2.0 */
/* Denormal numbers: every value and weight of floats is looked at once, in a run of the graph as it
 * is in the file, and counted bit by bit; where there are many, running with them and with zeros in
 * their place, in turns, says what they cost. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

/* Values that are fetched in one run: more at once would need their memory at once. */
#define GROUP_BYTES ((double)(64 << 20))
/* A value with a smaller share of denormal numbers is nothing to speak of. */
#define SHARE 0.01

typedef struct looked {
    char *name, *node, *type; /* of a weight: node "" */
    double bytes;
    double share; /* of its elements that are denormal */
} looked;

typedef struct values {
    looked *list;
    size_t n;
} values;

/* ------------------------------------------------------------------ which there are */
static bool is_float(sonde_dtype dtype)
{
    return dtype == SONDE_DTYPE_F32 || dtype == SONDE_DTYPE_F64 || dtype == SONDE_DTYPE_BF16;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const looked *)a)->name, ((const looked *)b)->name);
}

static void add_value(values *v, const sonde_port_info *p, const char *node, const char *type)
{
    if (!*p->name || !is_float(p->dtype))
        return;
    v->list = grow(v->list, v->n, sizeof *v->list);
    v->list[v->n++] = (looked){.name = text_of("%s", p->name),
                               .node = text_of("%s", node),
                               .type = text_of("%s", type),
                               .bytes = (double)p->bytes};
}

static void free_value(looked *x)
{
    free(x->name);
    free(x->node);
    free(x->type);
}

/* Outputs of nodes and constant inputs, each once; bodies of control flow keep theirs. */
static void list_values(values *v, const sonde_inspection *look)
{
    for (size_t i = 0; i < sonde_inspection_node_count(look); i++) {
        sonde_node_info node = SONDE_INIT(sonde_node_info);
        if (sonde_inspection_node(look, i, &node, NULL) || node.depth > 0)
            continue;
        const bool weight = strcmp(node.op_type, "Constant") == 0;
        for (size_t k = 0; k < node.output_count; k++)
            add_value(v, &node.outputs[k],
                      weight       ? ""
                      : *node.name ? node.name
                                   : node.outputs[k].name,
                      node.op_type);
        for (size_t k = 0; k < node.input_count; k++)
            if (node.inputs[k].constant)
                add_value(v, &node.inputs[k], "", "");
    }
    if (v->n > 1)
        qsort(v->list, v->n, sizeof *v->list, by_name);
    size_t kept = 0;
    for (size_t i = 0; i < v->n; i++) {
        if (kept && strcmp(v->list[kept - 1].name, v->list[i].name) == 0)
            free_value(&v->list[i]);
        else
            v->list[kept++] = v->list[i];
    }
    v->n = kept;
}

/* ------------------------------------------------------------------ looking */
/* Not 0, and no bit of the exponent is set. */
static double share_of(const sonde_value *value)
{
    const size_t bytes =
        sonde_value_kind(value) == SONDE_KIND_TENSOR ? sonde_tensor_bytes(value) : 0;
    const sonde_dtype dtype = bytes ? sonde_tensor_dtype(value) : SONDE_DTYPE_F32;
    const size_t each = sonde_dtype_bytes(dtype), n = each ? bytes / each : 0;
    const unsigned char *data = n ? sonde_tensor_data(value) : NULL;
    const uint64_t exponent = dtype == SONDE_DTYPE_F64   ? 0x7FF0000000000000u
                              : dtype == SONDE_DTYPE_F32 ? 0x7F800000u
                                                         : 0x7F80u;
    size_t found_here = 0;
    for (size_t i = 0; i < n && each <= sizeof(uint64_t); i++) {
        uint64_t bits = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(&bits, data + i * each, each);
#else
        memcpy((char *)&bits + sizeof bits - each, data + i * each, each);
#endif
        const uint64_t magnitude = bits & ~(UINT64_C(1) << (8 * each - 1));
        found_here += magnitude != 0 && !(magnitude & exponent);
    }
    return n ? (double)found_here / (double)n : 0;
}

/* Fetches v->list[first … end) and counts. */
static int look_at(runner *r, values *v, size_t first, size_t end)
{
    const size_t n = end - first;
    const char **names = need(calloc(n + 1, sizeof *names));
    sonde_value **out = need(calloc(n + 1, sizeof *out));
    sonde_error err;
    for (size_t i = 0; i < n; i++)
        names[i] = v->list[first + i].name;
    const sonde_status st = sonde_session_run(r->model.session, NULL, r->in[0].names,
                                              r->in[0].values, r->in[0].n, names, out, n, &err);
    for (size_t i = 0; i < n && !st; i++)
        v->list[first + i].share = share_of(out[i]);
    for (size_t i = 0; i < n; i++)
        sonde_value_release(out[i]);
    free((void *)names);
    free(out);
    return st ? fail("%s", err.message) : EXIT_OK;
}

static int look_at_all(values *v, const run_setup *s, const char *model)
{
    run_setup own = *s;
    own.model.no_optimize = own.model.no_prepack = true;
    own.model.tune = own.model.weights_cache = NULL;
    runner r;
    sonde_inspection *look = NULL;
    int code = open_to_inspect(&r, &own, model, &look);
    if (!code)
        list_values(v, look);
    for (size_t i = 0, end; i < v->n && !code; i = end) {
        double bytes = v->list[i].bytes;
        for (end = i + 1; end < v->n && bytes + v->list[end].bytes <= GROUP_BYTES; end++)
            bytes += v->list[end].bytes;
        code = look_at(&r, v, i, end);
    }
    sonde_inspection_release(look);
    runner_close(&r);
    return code;
}

/* ------------------------------------------------------------------ the verdict */
static int most_first(const void *a, const void *b)
{
    const looked *x = a, *y = b;
    const double m = x->share * x->bytes, n = y->share * y->bytes;
    return m != n ? (m > n ? -1 : 1) : strcmp(x->name, y->name);
}

static void judge(findings *f, values *v, size_t many, const turns *t)
{
    few w = {.n = 0};
    size_t weights = 0;
    qsort(v->list, v->n, sizeof *v->list, most_first);
    for (size_t i = 0, named = 0; named < many; i++) {
        const looked *x = &v->list[i];
        if (x->share < SHARE)
            continue;
        char *name =
            *x->node ? text_of("%s (%s)", x->node, x->type) : text_of("weight %s", x->name);
        few_add(&w, name, x->share);
        free(name);
        weights += !*x->node;
        named++;
    }
    const bool slow = second_is_faster(t);
    const double cost = t->first_ms - t->second_ms;
    char *said =
        slow ? text_of("denormal numbers cost %s, %.1f %% of a run", time_text(cost),
                       cost / t->first_ms * 100)
             : text_of(
                   "there are denormal numbers, but they do not slow this model down measurably");
    text evidence = {.n = 0};
    text_add(&evidence,
             "in %zu of %zu values and weights (%s); a run takes %s, and %s with denormals flushed "
             "to 0 (one thread, medians of %zu pairs)",
             many, v->n, w.t.data, time_text(t->first_ms), time_text(t->second_ms), t->pairs);
    char *remedy = text_of(
        "--flush-denormals (sonde_session_options.flush_denormals; session.set_denormal_as_zero in "
        "Python)%s",
        weights ? "; or set weights below 1.2e-38 to 0 in the file" : "");
    text_free(&w.t);
    found_with(f, slow ? SONDE_SLOW : SONDE_NOTE, "denormals", said, evidence.data, remedy);
}

int look_for_denormals(findings *f, const run_setup *s, const char *model)
{
    values v = {.n = 0};
    size_t many = 0;
    if (s->model.flush_denormals)
        return EXIT_OK;
    int code = look_at_all(&v, s, model);
    for (size_t i = 0; i < v.n; i++)
        many += v.list[i].share >= SHARE;
    if (!code && many) {
        run_setup flushed = *s;
        turns t;
        flushed.model.flush_denormals = true;
        code = take_turns(s, &flushed, model, &t);
        if (!code)
            judge(f, &v, many, &t);
    }
    for (size_t i = 0; i < v.n; i++)
        free_value(&v.list[i]);
    free(v.list);
    return code;
}
