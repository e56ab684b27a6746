/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: a comparison's life, its passes, and its results as rows. */
#include <math.h>

#include "accuracy/pairs.h"

/* ------------------------------------------------------------------ sides */
static sonde_status copy_passes(sonde_accuracy *acc, sonde_session_options *o, sonde_error *err)
{
    if (o->disabled_pass_count)
        SN_REQUIRE(o->disabled_passes, err);
    const char **names = SN_NEW_N(&acc->arena, const char *, o->disabled_pass_count + 1);
    if (!names)
        return sn_fail_memory(err, o->disabled_pass_count * sizeof *names);
    for (size_t i = 0; i < o->disabled_pass_count; i++) {
        SN_REQUIRE(o->disabled_passes[i], err);
        names[i] = sn_arena_strdup(&acc->arena, o->disabled_passes[i]);
        if (!names[i])
            return sn_fail_memory(err, strlen(o->disabled_passes[i]));
    }
    o->disabled_passes = names;
    return SONDE_OK;
}

static sonde_status copy_text(sonde_accuracy *acc, const char **text, sonde_error *err)
{
    if (*text && !(*text = sn_arena_strdup(&acc->arena, *text)))
        return sn_fail_memory(err, 1);
    return SONDE_OK;
}

static sonde_status copy_side(sonde_accuracy *acc, const sonde_accuracy_side *theirs, sn_side *side,
                              sonde_error *err)
{
    sonde_accuracy_side s;
    SN_OPTIONS(s, theirs, err);
    SN_REQUIRE(s.model, err);
    SN_OPTIONS(side->options, s.session, err);
    side->options.plan_only = 0;
    SN_TRY(copy_passes(acc, &side->options, err));
    SN_TRY(copy_text(acc, &side->options.weights_cache, err));
    SN_TRY(copy_text(acc, &side->options.tune, err));
    side->label = s.label ? s.label : s.model->name;
    SN_TRY(copy_text(acc, &side->label, err));
    side->run = s.run;
    side->user = s.user;
    side->model = s.model;
    atomic_fetch_add_explicit(&s.model->refs, 1, memory_order_relaxed);
    return SONDE_OK;
}

/* Names that were left out are those of A's inputs, as a session orders them. */
static sonde_status name_inputs(sonde_accuracy *acc, sn_sample *s, sn_arena *arena,
                                sonde_error *err)
{
    if (s->n)
        SN_REQUIRE(s->values, err);
    for (size_t i = 0; i < s->n; i++)
        if (!s->values[i] || (s->names && !s->names[i]))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "input %zu is NULL", i);
    if (s->names)
        return SONDE_OK;
    const sn_graph *g = acc->a.model->core->graph;
    const char **names = SN_NEW_N(arena, const char *, g->inputs.n + 1);
    size_t n = 0;
    if (!names)
        return sn_fail_memory(err, g->inputs.n * sizeof *names);
    for (int optional = 0; optional < 2; optional++)
        for (size_t i = 0; i < g->inputs.n; i++)
            if (g->inputs.data[i]->is_initializer == (optional == 1))
                names[n++] = g->inputs.data[i]->name;
    if (s->n > n)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%zu inputs given, the model has %zu", s->n, n);
    s->names = names;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ life */
static sonde_status make_note(sonde_accuracy *acc, sonde_error *err)
{
    const char *flow = NULL, *missing = NULL;
    for (uint32_t i = 0; i < acc->n_pairs && !flow; i++)
        if (acc->pairs[i].control)
            flow = acc->pairs[i].node->op_type;
    const sn_graph *g = acc->a.model->core->graph;
    for (size_t i = 0; i < g->outputs.n && !missing; i++) {
        bool found = !g->outputs.data[i]->producer;
        for (uint32_t k = 0; k < acc->n_pairs && !found; k++)
            found = strcmp(acc->pairs[k].name, g->outputs.data[i]->name) == 0;
        missing = found ? NULL : g->outputs.data[i]->name;
    }
    acc->note = sn_arena_printf(
        &acc->arena, "%s%s%s%s%.200s%s", flow ? "tensors inside the bodies of " : "",
        flow ? flow : "", flow ? " are not compared, only what comes out of it" : "",
        missing ? (flow ? "; output '" : "output '") : "", missing ? missing : "",
        missing ? "' is not in the other model" : "");
    return acc->note ? SONDE_OK : sn_fail_memory(err, 256);
}

static sonde_status fill(sonde_accuracy *acc, const sonde_accuracy_side *a,
                         const sonde_accuracy_side *b, sn_sample *s, sonde_error *err)
{
    SN_TRY(copy_side(acc, a, &acc->a, err));
    SN_TRY(copy_side(acc, b, &acc->b, err));
    SN_TRY(name_inputs(acc, s, &acc->arena, err));
    SN_TRY(sn_accuracy_find(acc, s, err));
    SN_TRY(make_note(acc, err));
    acc->added = SN_NEW_N(&acc->arena, uint64_t, sn_accuracy_passes(acc));
    acc->worst = SN_NEW_N(&acc->arena, uint32_t, acc->n_pairs);
    acc->leave = SN_NEW_N(&acc->arena, uint32_t, acc->n_pairs);
    acc->pass = SIZE_MAX;
    return acc->added && acc->worst && acc->leave ? SONDE_OK : sn_fail_memory(err, acc->n_pairs);
}

sonde_status sonde_accuracy_create(const sonde_accuracy_side *a, const sonde_accuracy_side *b,
                                   const sonde_accuracy_options *options,
                                   const char *const *input_names, sonde_value *const *inputs,
                                   size_t input_count, sonde_accuracy **accuracy, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    *accuracy = NULL;
    SN_REQUIRE(a, err);
    SN_REQUIRE(b, err);
    SN_REQUIRE(a->model, err);
    sonde_accuracy_options o;
    SN_OPTIONS(o, options, err);
    sonde_context *c = sn_api_context_ref(a->model->context);
    sonde_accuracy *acc = sn_alloc_zero(&c->alloc, sizeof *acc);
    if (!acc) {
        sonde_context_release(c);
        return sn_fail_memory(err, sizeof *acc);
    }
    acc->context = c;
    acc->options = o;
    sn_arena_init(&acc->arena, &c->alloc);
    sn_sample s = {.names = input_names, .values = inputs, .n = input_count};
    const sonde_status st = fill(acc, a, b, &s, err);
    if (st != SONDE_OK) {
        sonde_accuracy_release(acc);
        return st;
    }
    *accuracy = acc;
    return SONDE_OK;
}

void sonde_accuracy_release(sonde_accuracy *acc)
{
    if (!acc)
        return;
    sonde_context *c = acc->context;
    sn_job_close(&acc->job);
    sonde_session_release(acc->tail);
    sn_model_unref(acc->cut);
    sn_model_unref(acc->tapped);
    sonde_model_release(acc->a.model);
    sonde_model_release(acc->b.model);
    sn_arena_free(&acc->arena);
    sn_free(&c->alloc, acc, sizeof *acc);
    sonde_context_release(c);
}

/* ------------------------------------------------------------------ passes */
size_t sonde_accuracy_pass_count(const sonde_accuracy *acc)
{
    return acc ? sn_accuracy_passes(acc) : 0;
}

/* Pass 0: outputs. Pass k: group k - 1; of the outputs only what their operators add. */
static sonde_status open_pass(sonde_accuracy *acc, size_t pass, sonde_error *err)
{
    const bool apart = sn_accuracy_group_passes(acc) > acc->n_groups;
    int what = pass ? SN_JOB_INNER | SN_JOB_LOCAL : SN_JOB_OUTPUTS;
    if (apart && pass)
        what = pass > acc->n_groups ? SN_JOB_LOCAL : SN_JOB_INNER;
    const size_t group = pass > acc->n_groups ? pass - 1 - acc->n_groups : pass - 1;
    uint32_t *pairs = sn_alloc(&acc->context->alloc, acc->n_pairs * sizeof *pairs), n = 0;
    if (!pairs)
        return sn_fail_memory(err, acc->n_pairs * sizeof *pairs);
    for (uint32_t i = 0; i < acc->n_pairs; i++)
        if (pass ? acc->pairs[i].group == group : acc->pairs[i].output)
            pairs[n++] = i;
    sn_job_close(&acc->job);
    acc->pass = SIZE_MAX;
    const sonde_status st = sn_job_open(acc, &acc->job, pairs, n, what, err);
    sn_free(&acc->context->alloc, pairs, acc->n_pairs * sizeof *pairs);
    if (st == SONDE_OK)
        acc->pass = pass;
    return st;
}

static sonde_status add(sonde_accuracy *acc, size_t pass, const sn_sample *s, sonde_error *err)
{
    if (pass > sn_accuracy_group_passes(acc))
        return acc->added[pass] ? SONDE_OK : sn_accuracy_layers(acc, s, err);
    if (acc->pass != pass)
        SN_TRY(open_pass(acc, pass, err));
    return sn_job_run(acc, &acc->job, s, NULL, NULL, err);
}

sonde_status sonde_accuracy_add(sonde_accuracy *accuracy, size_t pass,
                                const char *const *input_names, sonde_value *const *inputs,
                                size_t input_count, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    if (pass >= sn_accuracy_passes(accuracy))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "pass %zu of %zu", pass,
                       sn_accuracy_passes(accuracy));
    sn_sample s = {.names = input_names, .values = inputs, .n = input_count};
    sn_arena names;
    sn_arena_init(&names, &accuracy->context->alloc);
    sonde_status st = name_inputs(accuracy, &s, &names, err);
    if (st == SONDE_OK)
        st = add(accuracy, pass, &s, err);
    sn_arena_free(&names);
    accuracy->cancelled |= st == SONDE_CANCELLED;
    if (st != SONDE_OK)
        return st;
    accuracy->added[pass]++;
    return sn_accuracy_rank(accuracy, err);
}

/* ------------------------------------------------------------------ results */
size_t sonde_accuracy_tensor_count(const sonde_accuracy *acc)
{
    return acc ? acc->n_pairs : 0;
}

/* Unnamed nodes are called by what they produce. */
static const char *name_of(const sn_node *n)
{
    for (uint32_t i = 0; !*n->name && i < n->n_out; i++)
        if (n->out[i])
            return n->out[i]->name;
    return n->name;
}

sonde_status sonde_accuracy_tensor_get(const sonde_accuracy *accuracy, size_t index,
                                       sonde_accuracy_tensor *tensor, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    SN_REQUIRE(tensor, err);
    if (index >= accuracy->n_pairs)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "tensor %zu of %u", index, accuracy->n_pairs);
    const sn_pair *p = &accuracy->pairs[index];
    const sonde_accuracy_bound bound = sn_accuracy_bound_of(accuracy);
    const sonde_accuracy_tensor row = {.struct_size = sizeof row,
                                       .name = p->name,
                                       .name_b = p->b.seen->name,
                                       .node = name_of(p->node),
                                       .layer = name_of(p->layer),
                                       .op_type = p->node->op_type,
                                       .type_a = p->type_a,
                                       .type_b = p->type_b,
                                       .inside = p->inside,
                                       .output = p->output,
                                       .control_flow = p->control,
                                       .quantized = p->quantized,
                                       .exact = p->sums.exact,
                                       .different = p->sums.different,
                                       .missing = p->sums.missing,
                                       .over = p->sums.samples && sn_sums_over(&p->sums, &bound),
                                       .samples = p->sums.samples,
                                       .error = sn_sums_error(&p->sums),
                                       .local_known = p->local.samples && !p->local.different,
                                       .local = sn_sums_error(&p->local),
                                       .added = sn_pair_added(accuracy, p),
                                       .at_outputs = p->at_outputs};
    return sn_api_copy_out(tensor, &row, sizeof row, err);
}

/* Elements of the outputs, or of all tensors where no output is shared; one for a tensor of another
 * shape. A tensor that is NaN or infinite everywhere, alike on both sides, says nothing. */
static uint64_t compared(const sonde_accuracy *acc)
{
    uint64_t at_outputs = 0, all = 0;
    bool outputs = false;
    for (uint32_t i = 0; i < acc->n_pairs; i++) {
        const sn_pair *p = &acc->pairs[i];
        const bool any = p->sums.finite || p->sums.not_finite;
        const uint64_t n = (any ? p->sums.elements : 0) + p->sums.different;
        outputs |= p->output;
        at_outputs += p->output ? n : 0;
        all += n;
    }
    return outputs ? at_outputs : all;
}

static bool is_complete(const sonde_accuracy *acc)
{
    bool complete = acc->added[0] > 0;
    for (size_t i = 1; i < sn_accuracy_passes(acc); i++)
        complete = complete && acc->added[i] == acc->added[0];
    return complete;
}

/* Nothing but rounding. */
static bool agrees(const sonde_accuracy *acc)
{
    const sonde_accuracy_bound bound = sn_accuracy_bound_of(acc);
    bool agrees = !acc->n_worst && !acc->n_weights;
    for (uint32_t i = 0; i < acc->n_pairs && agrees; i++)
        agrees = !sn_sums_over(&acc->pairs[i].sums, &bound);
    return agrees;
}

sonde_status sonde_accuracy_summary_get(const sonde_accuracy *accuracy,
                                        sonde_accuracy_summary *summary, sonde_error *err)
{
    SN_REQUIRE(accuracy, err);
    SN_REQUIRE(summary, err);
    sonde_accuracy_summary s = {.struct_size = sizeof s,
                                .label_a = accuracy->a.label,
                                .label_b = accuracy->b.label,
                                .samples = accuracy->added[0],
                                .bound = sn_accuracy_bound_of(accuracy),
                                .shared = accuracy->n_pairs,
                                .only_a = accuracy->only_a,
                                .first = -1,
                                .worst = -1,
                                .quantized = accuracy->quantized,
                                .note = accuracy->note};
    const sn_graph *g = accuracy->a.model->core->graph;
    for (size_t i = 0; i < g->outputs.n; i++)
        s.outputs_a += g->outputs.data[i]->producer != NULL;
    s.complete = is_complete(accuracy);
    s.weights = accuracy->n_weights;
    s.compared = compared(accuracy);
    s.agree = s.compared && agrees(accuracy);
    double worst = -1;
    for (uint32_t i = 0; i < accuracy->n_pairs; i++) {
        const sn_pair *p = &accuracy->pairs[i];
        if (s.first < 0 && p->sums.samples && sn_sums_over(&p->sums, &s.bound))
            s.first = i;
        const double noise = p->sums.different ? INFINITY : sn_sums_noise(&p->sums);
        s.outputs += p->output;
        if (p->output && noise > worst) {
            worst = noise;
            s.worst = i;
        }
    }
    return sn_api_copy_out(summary, &s, sizeof s, err);
}

int64_t sonde_accuracy_worst(const sonde_accuracy *acc, size_t k)
{
    return acc && k < acc->n_worst ? (int64_t)acc->worst[k] : -1;
}

int64_t sonde_accuracy_leave_in_float(const sonde_accuracy *acc, size_t k)
{
    return acc && k < acc->n_leave ? (int64_t)acc->leave[k] : -1;
}

int sonde_accuracy_fails(const sonde_accuracy *acc, const sonde_accuracy_bound *bound,
                         size_t *index)
{
    for (uint32_t i = 0; acc && bound && i < acc->n_pairs; i++) {
        const sn_pair *p = &acc->pairs[i];
        if (!p->output || !p->sums.samples || !sn_sums_over(&p->sums, bound))
            continue;
        if (index)
            *index = i;
        return 1;
    }
    return 0;
}
