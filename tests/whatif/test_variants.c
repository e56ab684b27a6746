/* SPDX-License-Identifier: Apache-2.0 */
/* The models that scenarios are measured with: zeros lie in blocks, products compute with integers,
 * the source stays as it is; and the arithmetic of measurements. */
#include "export/text.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/quantize.h"
#include "whatif/whatif_question.h"

typedef struct made {
    question q;
    sn_node_form *forms;
    sn_variant_parts parts;
    sonde_model *model;
    int64_t changed;
} made;

static sonde_status make(made *m, const char *zoo, int sparsity, sn_bits bits, sonde_error *err)
{
    *m = (made){.changed = 0};
    question_open(&m->q, zoo, NULL);
    const size_t n = m->q.model->core->origins.list.n;
    m->forms = calloc(n + 1, sizeof *m->forms);
    for (size_t i = 0; i < n; i++)
        m->forms[i] = (sn_node_form){(uint8_t)sparsity, (uint8_t)bits};
    return sn_variant_make(m->q.model->core, m->forms, m->q.context, &m->parts, &m->changed,
                           &m->model, err);
}

static void drop(made *m)
{
    sonde_model_release(m->model);
    sn_variant_free_parts(&m->parts, m->q.context);
    free(m->forms);
    question_close(&m->q);
}

TEST(zeros_lie_in_blocks_of_four_outputs)
{
    static const char *const models[] = {"tiny_mlp", "tiny_cnn", "bert_mini"};
    for (size_t k = 0; k < 3; k++) {
        made m;
        sonde_error err;
        CHECK_OK(make(&m, models[k], 90, SN_BITS_FILE, &err));
        CHECK_OK(sn_graph_verify(m.model->core->graph, &err));
        int64_t weights = 0, blocks = 0, zero = 0;
        for (const sn_node *n = m.model->core->graph->first; n; n = n->next) {
            sn_weight w;
            if (!sn_weight_of(n, &w) || !sn_weight_may_be_sparse(&w))
                continue;
            weights++;
            const float *data = w.data->data;
            for (int64_t o = 0; o + 4 <= w.outputs; o += 4)
                for (int64_t i = 0; i < w.inputs; i++) {
                    int none = 0;
                    for (int64_t j = 0; j < 4; j++)
                        none += data[(o + j) * w.output_step + i * w.input_step] == 0.0f;
                    blocks++;
                    zero += none == 4;
                }
        }
        CHECK_EQ(weights, m.changed);
        CHECK(weights > 0);
        CHECK_MSG(fabs((double)zero / (double)blocks - 0.9) < 0.03, "%s: %lld of %lld", models[k],
                  (long long)zero, (long long)blocks);
        drop(&m);
    }
}

static bool computes_in(const made *m, const char *arithmetic, sonde_error *err)
{
    sonde_session *s = NULL;
    sonde_inspection *look = NULL;
    sonde_node_info node = SONDE_INIT(sonde_node_info);
    bool found = false;
    if (!sonde_session_create(m->model, NULL, &s, err) &&
        !sonde_inspect_session(s, NULL, m->q.in, m->q.n_in, &look, err))
        for (size_t i = 0; !sonde_inspection_node(look, i, &node, NULL); i++)
            found = found || strstr(node.arithmetic, arithmetic);
    sonde_inspection_release(look);
    sonde_session_release(s);
    return found;
}

TEST(products_of_eight_bits_compute_with_integers)
{
    static const struct {
        const char *model;
        sn_bits bits;
        int sparsity;
    } cases[] = {{"tiny_mlp", SN_BITS_INT8, 0},          {"tiny_cnn", SN_BITS_INT8, 0},
                 {"tiny_resnet", SN_BITS_INT8, 0},       {"bert_mini", SN_BITS_INT8, 90},
                 {"tiny_efficientnet", SN_BITS_INT8, 0}, {"bert_mini", SN_BITS_INT8_DYNAMIC, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        made m;
        sonde_error err = {.status = SONDE_OK};
        CHECK_OK(make(&m, cases[k].model, cases[k].sparsity, cases[k].bits, &err));
        CHECK_OK(sn_graph_verify(m.model->core->graph, &err));
        CHECK(m.changed > 0);
        CHECK_MSG(computes_in(&m, "i8", &err), "%s: %s", cases[k].model, err.message);
        drop(&m);
    }
}

TEST(the_source_stays_as_it_is)
{
    made m;
    sonde_error err;
    CHECK_OK(make(&m, "tiny_cnn", 70, SN_BITS_INT8, &err));
    const sn_model *source = m.q.model->core;
    CHECK_OK(sn_graph_verify(source->graph, &err));
    for (const sn_node *n = source->graph->first; n; n = n->next)
        CHECK(strstr(n->op_type, "Quantize") == NULL);
    for (size_t i = 0; i < source->origins.list.n; i++)
        CHECK(strchr(source->origins.list.data[i].name, '/') != NULL);
    drop(&m);
}

TEST(a_median_lies_in_its_interval)
{
    double samples[101], low, high;
    for (int i = 0; i < 101; i++)
        samples[i] = i;
    sn_median_interval(samples, 101, &low, &high);
    CHECK(low == 40 && high == 61);
    sn_median_interval(samples, 1, &low, &high);
    CHECK(low == 0 && high == 0);
    sn_median_interval(samples, 4, &low, &high);
    CHECK(low == 0 && high == 3);
}

/* The op types of a graph in order, "" where it could not be made. */
static void list_types(const sn_model *m, char *text, size_t size)
{
    size_t n = 0;
    *text = 0;
    for (const sn_node *node = m->graph->first; node && n < size; node = node->next)
        n += (size_t)snprintf(text + n, size - n, "%s ", node->op_type);
}

TEST(fewer_bits_are_where_the_quantiser_puts_them)
{
    static const struct {
        sn_bits bits;
        sonde_quantize_kind kind;
    } kinds[] = {{SN_BITS_INT8, SONDE_QUANTIZE_STATIC},
                 {SN_BITS_INT8_DYNAMIC, SONDE_QUANTIZE_DYNAMIC},
                 {SN_BITS_INT4, SONDE_QUANTIZE_WEIGHTS}};
    static const char *const models[] = {"tiny_cnn", "tiny_resnet", "tiny_efficientnet",
                                         "bert_mini"};
    enum { SIZE = 1 << 16 };
    static char predicted[SIZE], actual[SIZE];
    for (size_t i = 0; i < 12; i++) {
        made m;
        sonde_error err;
        sonde_samples *samples = NULL;
        sonde_quantized *q = NULL;
        sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
        sonde_model *read = NULL;
        sonde_quantize_options o = SONDE_INIT(sonde_quantize_options);
        const char *names[MAX_PORTS], *path = in_dir("quantized.onnx");
        CHECK_OK(make(&m, models[i / 3], 0, kinds[i % 3].bits, &err));
        for (size_t k = 0; k < m.q.n_in; k++)
            names[k] = m.q.model->core->graph->inputs.data[k]->name;
        CHECK_OK(sonde_samples_create(m.q.model, &samples, &err));
        CHECK_OK(sonde_samples_add(samples, names, m.q.in, m.q.n_in, &err));
        o.kind = kinds[i % 3].kind;
        CHECK_OK(sonde_quantize(m.q.model, samples, &o, &q, &err));
        CHECK_OK(sonde_quantized_info_get(q, &info, &err));
        CHECK_EQ(m.changed, (int64_t)info.products_quantized);
        CHECK_OK(sonde_quantized_save(q, path, NULL, &err));
        CHECK_OK(sonde_model_load(m.q.context, path, NULL, &read, &err));
        list_types(m.model->core, predicted, SIZE);
        list_types(read->core, actual, SIZE);
        CHECK_STR(predicted, actual);
        sonde_model_release(read);
        sonde_quantized_release(q);
        sonde_samples_release(samples);
        drop(&m);
    }
}

TEST(a_measurement_is_read_as_it_was_written)
{
    /* 0x3ff8… is 1.5, 0x3fe6… is 0.7, 0x3fd3… is 0.3. */
    static const char text[] =
        "figures\t100\t200\t3\t7\t4004000000000000\nmeasured\t1763571900\thost\nratios\t3ff00000000"
        "00000\t3ff8000000000000\n"
        "sparse\t3ff8000000000000\tMatMul+Add\tMatMul\t1x2;2x3\t2x3\tgemm f32,f32 f32\t4\t5\n"
        "added\t3fe6666666666666\tQuantizeLinear\tQuantizeLinear\t1x2\t\t f32 u8\n"
        "step\t3fd3333333333333\t[Other]\t[Other]\t\t\t\n";
    sn_allocator alloc;
    sn_measured m;
    sn_text t;
    bool no_memory;
    sonde_error err;
    sn_allocator_init_system(&alloc);
    sn_measured_init(&m, &alloc);
    CHECK(sn_measured_read(&m, text, strlen(text), &no_memory));
    CHECK_EQ(m.steps.n, 3);
    CHECK_EQ(m.steps.data[0].n_nodes, 2);
    CHECK_EQ(m.steps.data[0].nodes[1], 5);
    CHECK(m.steps.data[1].added && !m.steps.data[2].added);
    CHECK(fabs(m.total_ns - 2.5) < 1e-9);
    CHECK_EQ(m.ratios.n, 2);
    CHECK_EQ(m.runs, 7);
    CHECK_EQ(m.at_s, 1763571900);
    CHECK_STR(m.host, "host");
    CHECK_STR(m.steps.data[0].how, "gemm f32,f32 f32");
    CHECK(m.now_ns == 2.5 && m.steps.data[0].sparse && !m.steps.data[1].sparse);
    sn_text_init(&t, &alloc);
    CHECK_OK(sn_measured_write(&m, &t, &err));
    CHECK_STR(sn_text_get(&t), text);
    sn_text_free(&t);
    sn_measured_free(&m);
    for (size_t n = 0; n < strlen(text); n++) { /* cut anywhere but between two steps */
        sn_measured_init(&m, &alloc);
        const bool fine = sn_measured_read(&m, text, n, &no_memory);
        CHECK_MSG(!fine || text[n - 1] == '\n', "cut at %zu", n);
        sn_measured_free(&m);
    }
}

TEST_MAIN()
