/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in models: sizes as published, weights a function of the seed, graphs that hold. */
#include "zoo/zoo.h"

#include "test.h"

static sn_allocator system_alloc;
static sn_context ctx;

static bool setup(void)
{
    if (ctx.alloc)
        return true;
    sn_allocator_init_system(&system_alloc);
    ctx.alloc = &system_alloc;
    return sn_trace_create(&ctx.trace, &system_alloc, 0, NULL) == SONDE_OK;
}

/* Trainable ones: floats and what was quantised, without the running statistics of normalisations,
 * scales, and scalars. */
static uint64_t count_parameters(const sn_graph *g)
{
    uint64_t n = 0;
    for (size_t i = 0; i < g->values.n; i++) {
        const sn_value *v = g->values.data[i];
        if (!v->fact.data || v->fact.data->rank == 0)
            continue;
        const bool quantized = strstr(v->name, "_quantized") && !strstr(v->name, "_zero_point");
        if ((v->fact.data->dtype == SONDE_DTYPE_F32 || quantized) && !strstr(v->name, "running_") &&
            !strstr(v->name, "_scale"))
            n += (uint64_t)sn_tensor_count(v->fact.data);
    }
    return n;
}

TEST(every_model_has_the_parameters_its_row_says)
{
    CHECK(setup());
    for (size_t k = 0; sn_zoo_row(k); k++) {
        const sn_zoo_model *row = sn_zoo_row(k);
        sonde_error err = {0};
        sn_model *m = NULL;
        CHECK_OK(sn_zoo_build(row->name, 1, &ctx, &m, &err));
        const uint64_t n = count_parameters(m->graph);
        CHECK_MSG(n == row->parameters, "%s has %llu parameters, its row says %llu", row->name,
                  (unsigned long long)n, (unsigned long long)row->parameters);
        CHECK_OK(sn_graph_verify(m->graph, &err));
        CHECK(m->graph->outputs.n > 0 && m->graph->n_live_nodes > 0);
        sn_model_unref(m);
    }
    CHECK_EQ(atomic_load(&system_alloc.live_bytes) < 100000, 1);
}

TEST(regnet_x_400mf_is_torchvisions)
{
    CHECK(setup());
    sonde_error err = {0};
    sn_model *m = NULL;
    CHECK_EQ(sn_zoo_find("regnet_x_400mf")->parameters, 5495976);
    CHECK_OK(sn_zoo_build("regnet_x_400mf", 1, &ctx, &m, &err));
    int convs = 0, norms = 0, adds = 0;
    bool named = false;
    for (const sn_node *n = m->graph->first; n; n = n->next) {
        convs += strcmp(n->op_type, "Conv") == 0;
        norms += strcmp(n->op_type, "BatchNormalization") == 0;
        adds += strcmp(n->op_type, "Add") == 0;
        named |= strcmp(n->name, "/trunk_output/block1/block1-0/f/a/a.0/Conv") == 0;
    }
    CHECK_EQ(convs, 1 + 22 * 3 + 4);
    CHECK_EQ(norms, convs);
    CHECK_EQ(adds, 22);
    CHECK(named);
    bool weight = false;
    for (size_t i = 0; i < m->graph->values.n; i++)
        weight |= strcmp(m->graph->values.data[i]->name,
                         "trunk_output.block1.block1-0.proj.0.weight") == 0;
    CHECK(weight);
    CHECK_STR(m->metadata.data[0].key, "sonde.default.batch");
    CHECK_STR(m->metadata.data[0].value, "1");
    sn_model_unref(m);
}

static const sn_tensor *first_weight(const sn_model *m)
{
    for (size_t i = 0; i < m->graph->values.n; i++)
        if (m->graph->values.data[i]->fact.data)
            return m->graph->values.data[i]->fact.data;
    return NULL;
}

TEST(weights_depend_on_the_seed_alone)
{
    CHECK(setup());
    sonde_error err = {0};
    sn_model *m[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++)
        CHECK_OK(sn_zoo_build("tiny_cnn", i == 2 ? 8 : 7, &ctx, &m[i], &err));
    const sn_tensor *a = first_weight(m[0]), *b = first_weight(m[1]), *c = first_weight(m[2]);
    CHECK_EQ(memcmp(a->data, b->data, a->bytes), 0);
    CHECK(memcmp(a->data, c->data, a->bytes) != 0);
    for (int i = 0; i < 3; i++)
        sn_model_unref(m[i]);
}

TEST(weights_have_the_variance_of_their_layer)
{
    CHECK(setup());
    sonde_error err = {0};
    sn_model *m = NULL;
    CHECK_OK(sn_zoo_build("regnet_x_400mf", 3, &ctx, &m, &err));
    for (size_t i = 0; i < m->graph->values.n; i++) {
        const sn_value *v = m->graph->values.data[i];
        if (strcmp(v->name, "fc.weight") != 0)
            continue;
        const float *w = v->fact.data->data;
        double sum = 0, squares = 0;
        const int64_t n = sn_tensor_count(v->fact.data);
        for (int64_t k = 0; k < n; k++) {
            sum += (double)w[k];
            squares += (double)w[k] * (double)w[k];
        }
        CHECK_MSG(fabs(sum / (double)n) < 1e-3, "mean %g", sum / (double)n);
        CHECK_MSG(fabs(squares / (double)n / (2.0 / 400) - 1) < 0.02, "variance %g",
                  squares / (double)n);
    }
    sn_model_unref(m);
}

TEST(an_unknown_name_is_named_in_the_error)
{
    CHECK(setup());
    sonde_error err = {0};
    sn_model *m = NULL;
    CHECK_EQ(sn_zoo_build("resnet_9000", 1, &ctx, &m, &err), SONDE_NOT_FOUND);
    CHECK(m == NULL);
    CHECK_HAS(err.message, "resnet_9000");
}

/* ------------------------------------------------------------------ failing memory */
typedef struct failing {
    sn_allocator inner;
    long left;
} failing;

static void *failing_alloc(sn_allocator *a, size_t bytes)
{
    failing *f = a->user;
    return f->left-- > 0 ? f->inner.alloc(&f->inner, bytes) : NULL;
}

static void failing_free(sn_allocator *a, void *ptr, size_t bytes)
{
    failing *f = a->user;
    f->inner.free(&f->inner, ptr, bytes);
}

TEST(every_failing_allocation_is_an_error_and_leaks_nothing)
{
    CHECK(setup());
    static const char *const names[] = {
        "tiny_mlp",           "tiny_loop", "tiny_text", "tiny_sequence", "tiny_mobilenet",
        "tiny_regnet_y_int8", "tiny_vit",  "tiny_gpt2", "tiny_vad",      "tiny_bert_train"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        bool built = false;
        for (long limit = 0; !built && limit < 10000; limit++) {
            failing f = {.left = limit};
            sn_allocator_init_system(&f.inner);
            sn_allocator alloc = {.alloc = failing_alloc, .free = failing_free, .user = &f};
            sn_context small = ctx;
            small.alloc = &alloc;
            sonde_error err = {0};
            sn_model *m = NULL;
            const sonde_status st = sn_zoo_build(names[k], 1, &small, &m, &err);
            CHECK_MSG(st == SONDE_OK || st == SONDE_OUT_OF_MEMORY, "%s: allocation %ld: %s",
                      names[k], limit, err.message);
            built = st == SONDE_OK;
            sn_model_unref(m);
            CHECK_EQ(atomic_load(&alloc.live_bytes), 0);
        }
        CHECK(built);
    }
}

TEST_MAIN()
