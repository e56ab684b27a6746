/* SPDX-License-Identifier: Apache-2.0 */
/* A model is run plainly and in the ways that only sessions know: inner values, partial runs, other
 * shapes. */
#include "fuzz/run_model.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/place.h"
#include "fuzz/values.h"
#include "sonde/experimental/inspect.h"
#include "sonde/sonde.h"

#define MAX_PORTS 64
#define RUN_MS    40

/* ---- statistics ---- */

static struct {
    bool on, reasons;
    unsigned long reached[RUN_REACHED_COUNT];
} stats;

static void stats_print(void)
{
    static const char *const names[] = {"refused", "loaded", "made", "bound", "ran"};
    unsigned long sum = 0;
    for (int k = 0; k < RUN_REACHED_COUNT; k++)
        sum += stats.reached[k];
    fprintf(stderr, "%lu models:", sum);
    /* Each is counted where it ended: what came further came past here too. */
    for (int k = RUN_LOADED; k < RUN_REACHED_COUNT; k++) {
        unsigned long past = 0;
        for (int i = k; i < RUN_REACHED_COUNT; i++)
            past += stats.reached[i];
        fprintf(stderr, " %s %.1f %%", names[k], 100.0 * (double)past / (double)(sum ? sum : 1));
    }
    fprintf(stderr, "\n");
}

static void start(void)
{
    const char *text = getenv("SONDE_FUZZ_STATS");
    stats.on = text != NULL;
    stats.reasons = text && *text == '2';
    if (stats.on)
        atexit(stats_print);
}

/* ---- one session ---- */

typedef struct ports {
    sonde_value *in[MAX_PORTS], *out[MAX_PORTS];
    const char *in_names[MAX_PORTS];
    size_t n_in, n_out;
} ports;

static void check(sonde_status st, const sonde_error *err)
{
    fuzz_check(st, err);
    if (st != SONDE_OK && stats.reasons)
        fprintf(stderr, "%s: %s\n", sonde_status_text(st), err->message);
}

static bool ports_make(ports *p, sonde_context *c, const sonde_session *s, uint64_t *random)
{
    *p = (ports){.n_in = sonde_session_input_count(s), .n_out = sonde_session_output_count(s)};
    if (p->n_in > MAX_PORTS || p->n_out > MAX_PORTS)
        return false;
    for (size_t i = 0; i < p->n_in; i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        if (sonde_session_input_info(s, i, &info, NULL) != SONDE_OK)
            return false;
        p->in_names[i] = info.name;
        p->in[i] = fuzz_value(c, &info, random);
        if (!p->in[i])
            return false;
    }
    return true;
}

static void release_all(sonde_value **values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sonde_value_release(values[i]);
        values[i] = NULL;
    }
}

static void ports_free(ports *p)
{
    release_all(p->in, MAX_PORTS);
    release_all(p->out, MAX_PORTS);
}

static sonde_status run_once(sonde_session *s, const char *const *in_names, sonde_value **in,
                             size_t n_in, const char *const *out_names, sonde_value **out,
                             size_t n_out)
{
    sonde_run_options options = SONDE_INIT(sonde_run_options);
    sonde_error err;
    options.cancel = watch_begin(RUN_MS);
    sonde_status st =
        sonde_session_run(s, &options, in_names, in, n_in, out_names, out, n_out, &err);
    watch_end();
    check(st, &err);
    return st;
}

/* A value of the session's own graph, and its type as far as it is known without shapes. */
static const char *inner_name(sonde_inspection *look, uint64_t *random)
{
    sonde_node_info node = SONDE_INIT(sonde_node_info);
    size_t n = sonde_inspection_node_count(look);
    if (n == 0 || sonde_inspection_node(look, fuzz_below(random, (uint32_t)n), &node, NULL))
        return "";
    const sonde_port_info *side = fuzz_below(random, 4) ? node.outputs : node.inputs;
    size_t count = side == node.outputs ? node.output_count : node.input_count;
    return count ? side[fuzz_below(random, (uint32_t)count)].name : "";
}

/* Fetches up to three inner values, then feeds them back as if they were inputs. */
static void run_inner(sonde_session *s, ports *p, uint64_t *random)
{
    sonde_inspection *look = NULL;
    sonde_value *got[3] = {0};
    const char *names[3];
    if (sonde_inspect_session(s, NULL, NULL, 0, &look, NULL) != SONDE_OK)
        return;
    size_t n = 1 + fuzz_below(random, 3);
    for (size_t i = 0; i < n; i++)
        names[i] = inner_name(look, random);
    sonde_status st = run_once(s, p->in_names, p->in, p->n_in, names, got, n);
    if (st == SONDE_OK && p->n_in + n <= MAX_PORTS) {
        /* Some of the inputs and what was got: the rest need not be computed. */
        size_t keep = fuzz_below(random, (uint32_t)p->n_in + 1);
        const char *in_names[MAX_PORTS];
        sonde_value *in[MAX_PORTS];
        for (size_t i = 0; i < keep; i++)
            in_names[i] = p->in_names[i], in[i] = p->in[i];
        for (size_t i = 0; i < n; i++)
            in_names[keep + i] = names[i], in[keep + i] = got[i];
        (void)run_once(s, in_names, in, keep + n, NULL, p->out, p->n_out);
    }
    release_all(got, n);
    sonde_inspection_release(look);
}

/* What some of the inputs decide, then the rest from that. */
static void run_partially(sonde_session *s, ports *p, uint64_t *random)
{
    sonde_run_options options = SONDE_INIT(sonde_run_options);
    sonde_value_set *set = NULL;
    sonde_error err;
    size_t first = fuzz_below(random, (uint32_t)p->n_in + 1);
    options.cancel = watch_begin(RUN_MS);
    sonde_status st = sonde_session_partial_run(s, &options, p->in_names, p->in, first, &set, &err);
    watch_end();
    check(st, &err);
    size_t n = st == SONDE_OK ? sonde_value_set_count(set) : 0, n_in = 0;
    if (st == SONDE_OK && n + p->n_in - first <= MAX_PORTS) {
        const char *in_names[MAX_PORTS];
        sonde_value *in[MAX_PORTS];
        for (size_t i = 0; i < n; i++, n_in++) {
            in_names[n_in] = sonde_value_set_name(set, i);
            in[n_in] = sonde_value_set_value(set, i);
        }
        for (size_t i = first; i < p->n_in; i++, n_in++)
            in_names[n_in] = p->in_names[i], in[n_in] = p->in[i];
        (void)run_once(s, in_names, in, n_in, NULL, p->out, p->n_out);
    }
    sonde_value_set_release(set);
}

static sonde_status look_at(sonde_session *s, const ports *p)
{
    sonde_inspection *look = NULL;
    sonde_error err;
    sonde_status st = sonde_inspect_session(s, p->in_names, p->in, p->n_in, &look, &err);
    check(st, &err);
    for (size_t i = 0; st == SONDE_OK && i < sonde_inspection_node_count(look); i++) {
        sonde_node_info node = SONDE_INIT(sonde_node_info);
        check(sonde_inspection_node(look, i, &node, &err), &err);
    }
    sonde_inspection_release(look);
    return st;
}

static run_reached run_session(sonde_context *c, sonde_session *s, uint64_t *random)
{
    ports p;
    run_reached reached = RUN_MADE;
    if (!ports_make(&p, c, s, random)) {
        ports_free(&p);
        return reached;
    }
    uint32_t how = fuzz_below(random, 16);
    if ((stats.on || how == 9) && look_at(s, &p) == SONDE_OK)
        reached = RUN_BOUND;
    if (how == 10 || how == 11)
        run_inner(s, &p, random);
    if (how == 12)
        run_partially(s, &p, random);
    release_all(p.out, MAX_PORTS);
    if (run_once(s, NULL, p.in, p.n_in, NULL, p.out, p.n_out) == SONDE_OK)
        reached = RUN_DONE;
    if (how == 13) /* into the same outputs, where they are tensors of numbers */
        (void)run_once(s, NULL, p.in, p.n_in, NULL, p.out, p.n_out);
    ports_free(&p);
    if (how == 14 || how == 15) { /* other dims, other values */
        if (ports_make(&p, c, s, random))
            (void)run_once(s, NULL, p.in, p.n_in, NULL, p.out, p.n_out);
        ports_free(&p);
    }
    return reached;
}

/* ---- one model ---- */

static run_reached run_loaded(sonde_context *c, sonde_model *model, uint64_t *random)
{
    sonde_session_options how = SONDE_INIT(sonde_session_options);
    sonde_session *session = NULL;
    sonde_error err;
    run_reached reached = RUN_LOADED;
    how.no_optimize = fuzz_below(random, 5) == 1;
    how.no_prepack = fuzz_below(random, 8) == 1;
    const uint32_t precision = fuzz_below(random, 8);
    if (precision <= SONDE_PRECISION_AUTO)
        how.precision = (sonde_precision)precision;
    how.threads = fuzz_below(random, 32) == 1 ? 2 : 0; /* starts a thread: not for every model */
    sonde_status st = sonde_session_create(model, &how, &session, &err);
    check(st, &err);
    if (st == SONDE_OK)
        reached = run_session(c, session, random);
    sonde_session_release(session);
    return reached;
}

run_reached run_model(const uint8_t *data, size_t size, uint64_t steer)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
    uint64_t random = steer;
    uint32_t level = fuzz_below(&random, 6);
    sonde_context *c = place_context(level);
    if (!c)
        return RUN_REFUSED;
    sonde_model *model = NULL;
    sonde_error err;
    run_reached reached = RUN_REFUSED;
    sonde_status st = sonde_model_load_memory(c, data, size, NULL, &model, &err);
    check(st, &err);
    if (st == SONDE_OK)
        reached = run_loaded(c, model, &random);
    sonde_model_release(model);
    place_check(level);
    stats.reached[reached]++;
    return reached;
}

uint64_t run_steer(const uint8_t *data, size_t size)
{
    /* Tag of the field as fixed64, then 8 bytes. */
    enum { TAG = RUN_STEER_FIELD << 3 | 1, BYTES = 10 };
    uint64_t steer = 0;
    if (size < BYTES || data[size - 10] != ((TAG & 0x7F) | 0x80) || data[size - 9] != TAG >> 7)
        return 0;
    for (size_t k = 0; k < 8; k++)
        steer |= (uint64_t)data[size - 8 + k] << (8 * k);
    return steer;
}
