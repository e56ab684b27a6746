/* SPDX-License-Identifier: Apache-2.0 */
/* The question and its answers: one measurement per scenario, from the cache where there is one,
 * then rows, then the best mix. A measurement is of the scenario and of "now" in turns, so one from
 * the cache is as good beside another "now". */
#include <math.h>
#include <stdio.h>

#include "base/cache.h"
#include "base/date.h"
#include "whatif/whatif.h"

typedef struct asking {
    sonde_model *model;
    sonde_whatif_options o;
    sonde_whatif *w;
    sonde_session_options session;
    sn_scenarios list;
    sn_kept kept;
    char folder[4096];
    const char *key; /* its part that is the same for all */
    int64_t batch;   /* of the inputs; 0: none */
    const char *no_batch;
    bool *only; /* by origin; NULL: all nodes */
    sn_node_form *forms;
    size_t n_forms, measured;
    size_t step, steps; /* of the progress */
    const char *what;
    sn_subject now; /* open while anything is measured */
    bool cancelled;
    sonde_error *err;
} asking;

/* ------------------------------------------------------------------ options */
static sonde_status check(const asking *q)
{
    const sonde_whatif_options *o = &q->o;
    if (o->warmup < -1 || o->runs < 0 || o->warmup > 1000000 || o->runs > 1000000)
        return sn_fail(q->err, SONDE_INVALID_ARGUMENT,
                       "warmup is %d and runs %d, expected 0 to "
                       "1000000",
                       o->warmup, o->runs);
    if (o->threads < 0 || o->threads > 4096)
        return sn_fail(q->err, SONDE_INVALID_ARGUMENT, "threads is %d, expected 0 to 4096",
                       o->threads);
    if (o->cache_only && o->no_cache)
        return sn_fail(q->err, SONDE_INVALID_ARGUMENT,
                       "cache_only and no_cache exclude each other");
    if (!sonde_precision_text(o->precision))
        return sn_fail(q->err, SONDE_INVALID_ARGUMENT, "precision %d is not known",
                       (int)o->precision);
    for (size_t i = 0; i < o->value_count; i++)
        if (!o->values || !o->values[i])
            return sn_fail(q->err, SONDE_INVALID_ARGUMENT, "value %zu of the inputs is NULL", i);
    return SONDE_OK;
}

static sonde_status find_batch(asking *q)
{
    sonde_session_options so = q->session; /* which also finds out whether they make sense */
    sonde_session *s = NULL;
    so.weights_cache = so.tune = NULL;
    so.precision = q->o.precision;
    so.plan_only = so.no_optimize = so.no_prepack = 1;
    SN_TRY(sonde_session_create(q->model, &so, &s, q->err));
    q->batch = sn_batch_of(s, q->o.input_names, q->o.values, q->o.value_count, &q->no_batch);
    sonde_session_release(s);
    return SONDE_OK;
}

static sonde_status make_key(asking *q)
{
    const sn_cpu *cpu = &q->model->context->core.cpu;
    sn_arena scratch;
    sn_arena_init(&scratch, &q->w->context->alloc);
    const uint64_t model = sn_model_fingerprint(q->model->core, &scratch);
    sn_arena_free(&scratch);
    const sonde_session_options *so = &q->session;
    const bool flags[] = {so->no_optimize, so->no_prepack, so->flush_denormals, so->tune};
    uint64_t how = sn_hash(flags, sizeof flags, 0);
    for (size_t i = 0; i < q->session.disabled_pass_count; i++)
        how = sn_hash(q->session.disabled_passes[i], strlen(q->session.disabled_passes[i]), how);
    char *key = sn_arena_printf(
        &q->w->arena,
        "sonde whatif 3, %s, %s, %s %x, caches %zu %zu %zu, model %016llx, inputs %016llx, "
        "session %016llx, warm-up %d, runs %d",
        SONDE_VERSION_TEXT, cpu->model, sn_cpu_level_name(cpu->flags), (unsigned)cpu->flags,
        cpu->l1_bytes, cpu->l2_bytes, cpu->l3_bytes, (unsigned long long)model,
        (unsigned long long)sn_inputs_fingerprint(q->o.input_names, q->o.values, q->o.value_count),
        (unsigned long long)how, q->o.warmup, q->o.runs);
    for (char *c = key; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    q->key = key;
    return key ? SONDE_OK : sn_fail_memory(q->err, 256);
}

static void find_folder(asking *q)
{
    const bool users = !q->o.cache || !*q->o.cache;
    q->kept.context = q->w->context;
    q->kept.folder = !users                                              ? q->o.cache
                     : sn_cache_user_folder(q->folder, sizeof q->folder) ? q->folder
                                                                         : NULL;
}

/* ------------------------------------------------------------------ one measurement */
static void tell(void *user, double done)
{
    const asking *q = user;
    if (q->o.progress && q->steps)
        q->o.progress(q->o.progress_user, q->what, ((double)q->step + done) / (double)q->steps);
}

static sn_whatif_case case_of(asking *q, const sn_scenario *s)
{
    return (sn_whatif_case){.model = q->model,
                            .forms = q->forms,
                            .threads = s->threads ? s->threads : q->o.threads,
                            .precision = s->has_precision ? s->precision : q->o.precision,
                            .batch = s->batch == q->batch ? 0 : s->batch,
                            .session = q->session,
                            .names = q->o.input_names,
                            .values = q->o.values,
                            .n_values = q->o.value_count,
                            .warmup = q->o.warmup,
                            .runs = q->o.runs,
                            .cancel = q->o.cancel,
                            .progress = tell,
                            .progress_user = q};
}

static sn_node_form form_of(const asking *q, const sn_scenario *s, size_t origin)
{
    return q->only && !q->only[origin] ? (sn_node_form){.sparsity = 0}
                                       : (sn_node_form){(uint8_t)s->sparsity, (uint8_t)s->form};
}

static const char *key_of(const asking *q, const sn_whatif_case *k)
{
    return sn_arena_printf(&q->w->arena, "%s, threads %d, precision %s, batch %lld, forms %016llx",
                           q->key, k->threads, sonde_precision_text(k->precision),
                           (long long)k->batch,
                           (unsigned long long)sn_hash(q->forms, q->n_forms * sizeof *q->forms, 0));
}

static sonde_status new_measured(const asking *q, sn_measured **m)
{
    sn_allocator *alloc = &q->w->context->alloc;
    sn_measured *made = sn_alloc(alloc, sizeof *made);
    if (!made || !sn_vec_push(&q->w->measurements, alloc, made)) {
        sn_free(alloc, made, sizeof *made);
        return sn_fail_memory(q->err, sizeof *made);
    }
    sn_measured_init(made, alloc);
    *m = made;
    return SONDE_OK;
}

/* From the cache; the answer has no figures where it has none. */
static sonde_status look_up(asking *q, sn_answer *a)
{
    sn_measured *made = NULL;
    if (q->o.no_cache)
        return SONDE_OK;
    SN_TRY(new_measured(q, &made));
    const sonde_status st = sn_kept_find(&q->kept, a->key, made, q->err);
    a->measured = st == SONDE_OK ? made : NULL;
    a->shown.cached = st == SONDE_OK;
    return st == SONDE_NOT_FOUND ? SONDE_OK : st;
}

static sonde_status keep(const asking *q, const sn_answer *a)
{
    return q->o.no_cache ? SONDE_OK : sn_kept_add(&q->kept, a->key, a->measured, q->err);
}

static bool wants_form(const sn_scenario *s)
{
    return s->sparsity || s->form;
}

/* "now", before anything is compared with it. */
static sonde_status open_now(asking *q)
{
    if (q->now.alloc)
        return SONDE_OK;
    sn_whatif_case k = case_of(q, &q->w->answers.data[0].asked);
    k.forms = NULL;
    const sonde_status st = sn_subject_open(&q->now, &k, &q->w->context->alloc, q->err);
    if (st)
        sn_subject_close(&q->now);
    return st;
}

static sonde_status measure(asking *q, sn_answer *a)
{
    sn_whatif_case k = case_of(q, &a->asked);
    sn_measured *made = NULL;
    if (q->o.cache_only)
        return sn_fail(q->err, SONDE_NOT_FOUND, "it was not measured before");
    k.must_change = wants_form(&a->asked);
    SN_TRY(open_now(q));
    SN_TRY(new_measured(q, &made));
    SN_TRY(sn_whatif_measure(&k, &q->now, made, q->err));
    a->measured = made;
    return keep(q, a);
}

/* ------------------------------------------------------------------ all of them */
static sonde_status add_answer(asking *q, const sn_scenario *s, const char *name, bool mix)
{
    sn_answer a = {.asked = *s, .scale = 1, .mix = mix};
    const sn_whatif_case k = case_of(q, s);
    a.shown = (sonde_whatif_scenario){
        .struct_size = sizeof a.shown,
        .name = name,
        .reason = "",
        .precision = sonde_precision_text(k.precision),
        .threads = k.threads,
        .batch = s->batch ? s->batch : q->batch,
        .speedup = (double)NAN,
        .low = (double)NAN,
        .high = (double)NAN,
        .total_ns = (double)NAN,
    };
    for (size_t i = 0; i < q->n_forms && !mix; i++)
        q->forms[i] = form_of(q, s, i);
    a.key = key_of(q, &k);
    if (!a.key)
        return sn_fail_memory(q->err, 256);
    if (s->batch && !q->batch)
        a.shown.reason = q->no_batch;
    if (s->batch && q->batch)
        a.scale = (double)q->batch / (double)s->batch;
    return sn_vec_push(&q->w->answers, &q->w->context->alloc, a) ? SONDE_OK
                                                                 : sn_fail_memory(q->err, sizeof a);
}

/* Why there is no answer; the others go on. */
static sonde_status give_up(asking *q, sn_answer *a, sonde_status st)
{
    static const char none[] = "out of memory", ended[] = "interrupted before it was measured";
    if (st == SONDE_CANCELLED) {
        q->cancelled = true;
        a->shown.reason = ended;
        return SONDE_OK;
    }
    const char *text =
        sn_arena_strdup(&q->w->arena, q->err && *q->err->message ? q->err->message : none);
    a->shown.reason = text ? text : none;
    return SONDE_OK;
}

static bool is_now(const asking *q, const sn_answer *a)
{
    return strcmp(a->key, q->w->answers.data[0].key) == 0;
}

/* What is in the cache; returns how many are not. */
static sonde_status look_up_all(asking *q, size_t *missing)
{
    *missing = 0;
    for (size_t i = 0; i < q->w->answers.n; i++) {
        sn_answer *a = &q->w->answers.data[i];
        if (!*a->shown.reason)
            SN_TRY(look_up(q, a));
        *missing += i && !a->measured && !*a->shown.reason && !is_now(q, a);
    }
    return SONDE_OK;
}

static sonde_status answer_one(asking *q, sn_answer *a)
{
    if (q->cancelled)
        return give_up(q, a, SONDE_CANCELLED);
    q->what = a->shown.name;
    tell(q, 0);
    for (size_t i = 0; i < q->n_forms; i++)
        q->forms[i] = form_of(q, &a->asked, i);
    sonde_status st = look_up(q, a); /* another scenario of this question may be the same */
    if (st == SONDE_OK && !a->measured)
        st = measure(q, a);
    q->step++;
    q->measured += st == SONDE_OK;
    if (st && !q->now.alloc && !q->o.cache_only) /* the model itself does not run */
        return st;
    return st ? give_up(q, a, st) : SONDE_OK;
}

/* Of all rounds so far. Where the first measurement was cancelled it is shown, but not kept. */
static sonde_status answer_now(asking *q)
{
    sn_answer *now = &q->w->answers.data[0];
    sn_measured *made = NULL;
    q->what = now->shown.name;
    if (q->o.cache_only)
        return sn_fail(q->err, SONDE_NOT_FOUND, "the model was not measured before");
    if (!q->now.rounds.n && !q->cancelled) {
        SN_TRY(open_now(q));
        const sonde_status st = sn_whatif_run_alone(&q->now, q->err);
        q->cancelled = st == SONDE_CANCELLED;
        if (st && !q->cancelled)
            return st;
    }
    if (!q->now.rounds.n)
        return SONDE_CANCELLED;
    SN_TRY(new_measured(q, &made));
    SN_TRY(sn_whatif_measure_now(&q->now, made, q->err));
    now->measured = made;
    now->shown.cached = 0;
    return q->cancelled && !q->measured ? SONDE_OK : keep(q, now);
}

static void answer_with_now(const asking *q, sn_answer *a)
{
    a->measured = q->w->answers.data[0].measured;
    a->shown.cached = q->w->answers.data[0].shown.cached;
}

static sonde_status answer_all(asking *q)
{
    sn_answer *list = q->w->answers.data;
    size_t missing;
    SN_TRY(look_up_all(q, &missing));
    q->steps = missing + !q->o.no_mix;
    for (size_t i = 1; i < q->w->answers.n; i++)
        if (!list[i].measured && !*list[i].shown.reason && !is_now(q, &list[i]))
            SN_TRY(answer_one(q, &list[i]));
    if (!list[0].measured || q->now.rounds.n)
        SN_TRY(answer_now(q));
    for (size_t i = 1; i < q->w->answers.n; i++)
        if (is_now(q, &list[i]) && !*list[i].shown.reason)
            answer_with_now(q, &list[i]);
    return SONDE_OK;
}

/* When and where, in words. */
static sonde_status tell_origin(sonde_whatif *w, sn_answer *a, sonde_error *err)
{
    const sn_date d = sn_date_of(a->measured->at_s);
    const char *host = a->measured->host;
    a->shown.measured = sn_arena_printf(&w->arena, "%04d-%02d-%02d %02d:%02d UTC", (int)d.year,
                                        d.month, d.day, d.hour, d.minute);
    a->shown.machine = *host ? sn_arena_printf(&w->arena, "%s (%s)", host, w->cpu) : w->cpu;
    return a->shown.measured && a->shown.machine ? SONDE_OK : sn_fail_memory(err, 64);
}

static sonde_status fill_figures(sonde_whatif *w, sn_answer *a, sonde_error *err)
{
    const sn_measured *m = a->measured;
    a->shown.measured = a->shown.machine = "";
    if (!m)
        return SONDE_OK;
    SN_TRY(tell_origin(w, a, err));
    sn_median_interval(m->ratios.data, m->ratios.n, &a->shown.low, &a->shown.high);
    a->shown.low /= a->scale;
    a->shown.high /= a->scale;
    a->shown.total_ns = m->total_ns * sn_answer_factor(w, a);
    a->shown.speedup = w->answers.data[0].measured->total_ns / a->shown.total_ns;
    a->shown.weight_bytes = m->weight_bytes;
    a->shown.peak_bytes = m->peak_bytes;
    a->shown.changed = m->changed;
    a->shown.runs = m->runs;
    return SONDE_OK;
}

/* Where one scenario for all turns out to be faster than the mix, it is the mix. */
static void take_better(sonde_whatif *w, sn_answer *mix)
{
    const sn_answer *best = mix;
    for (size_t i = 0; i + 1 < w->answers.n; i++) {
        const sn_answer *a = &w->answers.data[i];
        if (a->measured && (i == 0 || sn_scenario_is_mixable(&a->asked)) &&
            (!best->measured || a->measured->total_ns * sn_answer_factor(w, a) <
                                    best->measured->total_ns * sn_answer_factor(w, best)))
            best = a;
    }
    if (best == mix)
        return;
    const char *name = mix->shown.name;
    *mix = *best;
    mix->shown.name = name;
    mix->mix = true;
}

static sonde_status add_mix(asking *q)
{
    sonde_whatif *w = q->w;
    sn_scenario s = {.has_precision = true};
    for (size_t i = 0; i < q->n_forms; i++)
        q->forms[i] = (sn_node_form){.sparsity = 0};
    (void)sn_whatif_mix(w, q->model->core, q->forms, q->o.precision, &s.precision);
    SN_TRY(add_answer(q, &s, "best mix", true));
    sn_answer *mix = &w->answers.data[w->answers.n - 1];
    if (is_now(q, mix))
        answer_with_now(q, mix);
    else
        SN_TRY(look_up(q, mix));
    if (!mix->measured) {
        q->what = mix->shown.name;
        tell(q, 0);
        const sonde_status st = measure(q, mix);
        if (st)
            SN_TRY(give_up(q, mix, st));
        if (q->cancelled)
            return SONDE_OK;
    }
    take_better(w, mix);
    return SONDE_OK;
}

static sonde_status ask(asking *q)
{
    SN_TRY(check(q));
    SN_TRY(
        sn_whatif_only(q->model->core, q->o.only, q->o.only_count, &q->w->arena, &q->only, q->err));
    SN_TRY(find_batch(q));
    q->n_forms = q->model->core->origins.list.n;
    q->forms = SN_NEW_N(&q->w->arena, sn_node_form, q->n_forms + 1);
    if (!q->forms)
        return sn_fail_memory(q->err, q->n_forms);
    q->o.threads = q->o.threads ? q->o.threads : sonde_context_threads(q->model->context);
    q->o.warmup = q->o.warmup == 0 ? 3 : q->o.warmup < 0 ? 0 : q->o.warmup;
    SN_TRY(make_key(q));
    find_folder(q);
    const int cores = q->model->context->core.cpu.usable_cores;
    SN_TRY(sn_scenarios_parse(&q->list, q->o.scenarios, cores, &q->w->arena, &q->w->context->alloc,
                              q->err));
    SN_TRY(add_answer(q, &(sn_scenario){.sparsity = 0}, "now", false));
    for (size_t i = 0; i < q->list.list.n; i++)
        SN_TRY(add_answer(q, &q->list.list.data[i], q->list.list.data[i].name, false));
    SN_TRY(answer_all(q));
    SN_TRY(sn_whatif_node_rows(q->w, q->model->core, q->err));
    if (!q->o.no_mix && !q->cancelled) {
        SN_TRY(add_mix(q));
        SN_TRY(sn_whatif_node_rows(q->w, q->model->core, q->err));
    }
    for (size_t i = 0; i < q->w->answers.n; i++)
        SN_TRY(fill_figures(q->w, &q->w->answers.data[i], q->err));
    SN_TRY(sn_whatif_group_rows(q->w, q->err));
    return sn_whatif_find_ratios(q->w, q->err);
}

sonde_status sonde_whatif_measure(sonde_model *model, const sonde_whatif_options *options,
                                  sonde_whatif **result, sonde_error *err)
{
    SN_REQUIRE(result, err);
    *result = NULL;
    SN_REQUIRE(model, err);
    sonde_error own = {.status = SONDE_OK};
    asking q = {.model = model, .err = err ? err : &own};
    SN_OPTIONS(q.o, options, err);
    SN_OPTIONS(q.session, q.o.session, err);
    sonde_context *c = sn_api_context_ref(model->context);
    q.w = sn_alloc_zero(&c->alloc, sizeof *q.w);
    if (!q.w) {
        sonde_context_release(c);
        return sn_fail_memory(err, sizeof *q.w);
    }
    q.w->context = c;
    sn_arena_init(&q.w->arena, &c->alloc);
    q.w->model = sn_arena_strdup(&q.w->arena, model->name);
    q.w->cpu = sn_arena_strdup(&q.w->arena, c->core.cpu.model);
    sonde_status st = q.w->model && q.w->cpu ? ask(&q) : sn_fail_memory(err, model->name_bytes);
    sn_vec_free(&q.list.list, &c->alloc);
    sn_subject_close(&q.now);
    if (st != SONDE_OK) {
        sonde_whatif_release(q.w);
        return st;
    }
    *result = q.w;
    return q.cancelled ? sn_fail(err, SONDE_CANCELLED, "cancelled before everything was measured")
                       : SONDE_OK;
}

void sonde_whatif_release(sonde_whatif *w)
{
    if (!w)
        return;
    sonde_context *c = w->context;
    for (size_t i = 0; i < w->measurements.n; i++) {
        sn_measured_free(w->measurements.data[i]);
        sn_free(&c->alloc, w->measurements.data[i], sizeof(sn_measured));
    }
    for (int k = 0; k < 3; k++)
        sn_vec_free(&w->rows[k], &c->alloc);
    sn_vec_free(&w->measurements, &c->alloc);
    sn_vec_free(&w->answers, &c->alloc);
    sn_vec_free(&w->ratios, &c->alloc);
    sn_arena_free(&w->arena);
    sn_free(&c->alloc, w, sizeof *w);
    sonde_context_release(c);
}
