/* SPDX-License-Identifier: Apache-2.0 */
/* One operator alone: described or cut out of a model, in every variant; results are kept; what
 * makes no sense is refused with a sentence. */
#include <math.h>

#include "api/counting_alloc.h"
#include "api/zoo_session.h"
#include "sonde/experimental/op.h"

static sonde_context *context(int threads)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = threads;
    sonde_context *c = NULL;
    setenv("XDG_CACHE_HOME", "/nonexistent", 1);
    if (sonde_context_create(&o, &c, NULL))
        abort();
    return c;
}

static sonde_op_options quick(void)
{
    sonde_op_options o = SONDE_INIT(sonde_op_options);
    o.warmup = 1;
    o.exec = 2;
    o.repeat = 3;
    return o;
}

static const int64_t x_dims[] = {1, 16, 12, 12}, w_dims[] = {32, 16, 3, 3};

static sonde_op_spec conv(const sonde_op_input *in)
{
    sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
    spec.op_type = "Conv";
    spec.inputs = in;
    spec.input_count = 2;
    spec.attributes = "pads=1,1,1,1;strides=2,2";
    return spec;
}

static const sonde_op_input conv_in[] = {
    {.dtype = SONDE_DTYPE_F32, .dims = x_dims, .rank = 4},
    {.dtype = SONDE_DTYPE_F32, .dims = w_dims, .rank = 4, .constant = 1}};

TEST(a_described_operator_is_shown_in_every_variant)
{
    sonde_context *c = context(2);
    sonde_op_spec spec = conv(conv_in);
    sonde_op_options o = quick();
    sonde_op_result *r = NULL;
    sonde_op_info info = SONDE_INIT(sonde_op_info);
    sonde_error err;
    CHECK_OK(sonde_op_profile(c, &spec, &o, &r, &err));
    CHECK_OK(sonde_op_result_info(r, &info, &err));
    CHECK_STR(info.op_type, "Conv");
    CHECK_STR(info.inputs, "f32[1, 16, 12, 12], const f32[32, 16, 3, 3]");
    CHECK_STR(info.attributes, "pads=1,1,1,1;strides=2,2");
    bool one = false, all = false, packed = false, plain = false, baseline = false;
    for (size_t i = 0; i < sonde_op_result_count(r); i++) {
        sonde_op_variant v = SONDE_INIT(sonde_op_variant);
        CHECK_OK(sonde_op_result_variant(r, i, &v, &err));
        CHECK_EQ(v.latency_count, 3);
        CHECK_EQ(v.sample_count, 6);
        /* 2 * 36 pixels * 32 * 16 * 9 */
        CHECK_EQ(v.flops, 2 * 36 * 32 * 16 * 9);
        CHECK(v.bytes > 0 && *v.kernel && v.min_us > 0);
        CHECK(v.min_us <= v.p50_us && v.p50_us <= v.p99_us && v.p99_us <= v.max_us);
        double sum = 0;
        for (size_t k = 0; k < v.latency_count; k++)
            sum += v.latency_us[k];
        CHECK(fabs(sum / 3 - v.mean_us) <= 1e-6 * v.mean_us);
        CHECK(fabs(v.gflops - (double)v.flops / v.mean_us / 1e3) <= 1e-6 * v.gflops);
        CHECK(v.roofline == -1); /* nothing was calibrated */
        one |= v.threads == 1;
        all |= v.threads == 2;
        packed |= v.packed;
        plain |= !v.packed;
        const char *isa = strrchr(v.kernel, '_'); /* a row is named after what its kernel uses */
        if (isa && (strcmp(isa, "_avx2") == 0 || strcmp(isa, "_avx512") == 0))
            CHECK_STR(v.cpu, isa + 1);
        baseline |= strcmp(v.cpu, "baseline") == 0;
    }
    CHECK(one && all && packed && plain && baseline);
    sonde_op_variant v = SONDE_INIT(sonde_op_variant);
    CHECK_EQ(sonde_op_result_variant(r, 1000, &v, &err), SONDE_NOT_FOUND);
    sonde_op_result_release(r);
    sonde_context_release(c);
}

TEST(results_of_another_precision_are_others)
{
    sonde_context *c = context(1);
    sonde_op_spec spec = conv(conv_in);
    sonde_op_options o = quick();
    sonde_op_result *r[2] = {NULL, NULL};
    sonde_op_variant v[2] = {SONDE_INIT(sonde_op_variant), SONDE_INIT(sonde_op_variant)};
    sonde_op_info info = SONDE_INIT(sonde_op_info);
    sonde_error err;
    o.one_variant = 1;
    for (int i = 0; i < 2; i++) {
        o.precision = i ? SONDE_PRECISION_F16 : SONDE_PRECISION_FILE;
        CHECK_OK(sonde_op_profile(c, &spec, &o, &r[i], &err));
        CHECK_OK(sonde_op_result_info(r[i], &info, &err));
        CHECK(!info.cached);
        CHECK_OK(sonde_op_result_variant(r[i], 0, &v[i], &err));
    }
    CHECK_EQ(sonde_op_cache_size(c), 2);
    CHECK_EQ(v[0].bytes - v[1].bytes, 32 * 16 * 3 * 3 * 2); /* two bytes less for each weight */
    for (int i = 0; i < 2; i++)
        sonde_op_result_release(r[i]);
    o.precision = (sonde_precision)77;
    CHECK_EQ(sonde_op_profile(c, &spec, &o, &r[0], &err), SONDE_INVALID_ARGUMENT);
    sonde_context_release(c);
}

TEST(results_are_kept_until_the_cache_is_reset)
{
    sonde_context *c = context(1);
    sonde_op_spec spec = conv(conv_in);
    sonde_op_options o = quick();
    o.one_variant = 1;
    sonde_op_result *first = NULL, *again = NULL, *other = NULL;
    sonde_op_info info = SONDE_INIT(sonde_op_info);
    sonde_error err;
    CHECK_EQ(sonde_op_cache_size(c), 0);
    CHECK_OK(sonde_op_profile(c, &spec, &o, &first, &err));
    CHECK_EQ(sonde_op_result_count(first), 1);
    CHECK_EQ(sonde_op_cache_size(c), 1);
    CHECK_OK(sonde_op_profile(c, &spec, &o, &again, &err));
    CHECK_OK(sonde_op_result_info(again, &info, &err));
    CHECK(info.cached);
    CHECK_EQ(sonde_op_cache_size(c), 1);
    spec.attributes = "pads=1,1,1,1";
    CHECK_OK(sonde_op_profile(c, &spec, &o, &other, &err));
    CHECK_OK(sonde_op_result_info(other, &info, &err));
    CHECK(!info.cached);
    CHECK_EQ(sonde_op_cache_size(c), 2);
    sonde_op_cache_reset(c);
    CHECK_EQ(sonde_op_cache_size(c), 0);
    /* Results outlive the cache and the caller's hold on the context. */
    sonde_context_release(c);
    sonde_op_variant v = SONDE_INIT(sonde_op_variant);
    CHECK_OK(sonde_op_result_variant(first, 0, &v, &err));
    CHECK(v.mean_us > 0);
    sonde_op_result_release(first);
    sonde_op_result_release(again);
    sonde_op_result_release(other);
}

/* The node of tiny_cnn, or of another zoo model, with random inputs. */
static sonde_status cut(const char *zoo, const char *node, int64_t free_dim, sonde_op_result **r,
                        sonde_error *err)
{
    sonde_context *c = context(1);
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    sonde_value *in[MAX_PORTS] = {0};
    size_t n = 0;
    sonde_op_options o = quick();
    o.one_variant = 1;
    sonde_status st = zoo_model(c, zoo, &model, err);
    if (!st)
        st = sonde_session_create(model, NULL, &s, err);
    if (!st)
        st = random_inputs(c, s, free_dim, in, &n, err);
    sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
    spec.model = model;
    spec.node = node;
    spec.values = in;
    spec.value_count = n;
    if (!st)
        st = sonde_op_profile(c, &spec, &o, r, err);
    release_all(in, MAX_PORTS);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(c);
    return st;
}

TEST(a_node_is_cut_out_with_its_shapes_and_weights)
{
    sonde_op_result *r = NULL;
    sonde_op_info info = SONDE_INIT(sonde_op_info);
    sonde_op_variant v = SONDE_INIT(sonde_op_variant);
    sonde_error err;
    CHECK_OK(cut("tiny_cnn", "/depthwise/conv/Conv", 2, &r, &err));
    CHECK_OK(sonde_op_result_info(r, &info, &err));
    CHECK_STR(info.op_type, "Conv");
    CHECK_STR(info.node, "/depthwise/conv/Conv");
    CHECK_HAS(info.attributes, "group=");
    CHECK_HAS(info.inputs, "f32[2, ");
    CHECK_HAS(info.inputs, "const f32[");
    CHECK_OK(sonde_op_result_variant(r, 0, &v, &err));
    CHECK(v.mean_us > 0 && v.flops > 0);
    sonde_op_result_release(r);
}

/* Every node of the small models that can be cut out can be measured. */
static void cut_all(const char *zoo)
{
    sonde_context *c = context(1);
    sonde_model *model = NULL;
    sonde_error err;
    size_t measured = 0;
    CHECK_OK(zoo_model(c, zoo, &model, &err));
    for (const sn_node *n = model->core->graph->first; n; n = n->next) {
        sonde_op_result *r = NULL;
        const sonde_status st = cut(zoo, n->name, 2, &r, &err);
        CHECK_MSG(st == SONDE_OK || (sn_node_body(n, 0) && st == SONDE_UNSUPPORTED), "%s %s: %s",
                  zoo, n->name, err.message);
        measured += st == SONDE_OK;
        sonde_op_result_release(r);
    }
    CHECK_MSG(measured > 0 || strcmp(zoo, "tiny_if") == 0, "%s", zoo);
    sonde_model_release(model);
    sonde_context_release(c);
}

TEST(every_node_of_the_small_models_can_be_measured)
{
    cut_all("tiny_cnn");
    cut_all("tiny_mlp");
    cut_all("tiny_attention");
    cut_all("tiny_loop");
    cut_all("tiny_dynamic");
    cut_all("tiny_sequence");
}

TEST(nodes_that_are_not_there_or_cannot_be_cut_are_told)
{
    sonde_op_result *r = NULL;
    sonde_error err;
    CHECK_EQ(cut("tiny_cnn", "/nowhere", 1, &r, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "/nowhere");
    CHECK(r == NULL);
    CHECK_EQ(cut("tiny_cnn", "", 1, &r, &err), SONDE_NOT_FOUND);
}

static sonde_status describe(const char *op, const char *attributes, const sonde_op_input *in,
                             size_t n, sonde_error *err)
{
    sonde_context *c = context(1);
    sonde_op_spec spec = SONDE_INIT(sonde_op_spec);
    spec.op_type = op;
    spec.inputs = in;
    spec.input_count = n;
    spec.attributes = attributes;
    sonde_op_options o = quick();
    o.one_variant = 1;
    sonde_op_result *r = NULL;
    const sonde_status st = sonde_op_profile(c, &spec, &o, &r, err);
    if (st == SONDE_OK && sonde_op_result_count(r) == 0)
        abort();
    sonde_op_result_release(r);
    sonde_context_release(c);
    return st;
}

TEST(attributes_have_the_kind_their_name_says)
{
    static const int64_t d[] = {2, 3, 4};
    const sonde_op_input in[] = {{.dtype = SONDE_DTYPE_F32, .dims = d, .rank = 3}};
    sonde_error err;
    CHECK_OK(describe("LeakyRelu", "alpha=1", in, 1, &err));
    CHECK_OK(describe("LeakyRelu", "alpha=-1.5e-2", in, 1, &err));
    CHECK_OK(describe("Transpose", "perm=2,0,1", in, 1, &err));
    CHECK_OK(describe("Transpose", "perm=[2,0,1]", in, 1, &err));
    CHECK_OK(describe("Softmax", "axis=-1", in, 1, &err));
    CHECK_OK(describe("Gelu", "approximate=tanh", in, 1, &err));
    CHECK_OK(describe("Flatten", "", in, 1, &err));
    CHECK_OK(describe("Cast", "to=11", in, 1, &err));
}

TEST(hostile_descriptions_are_refused_with_a_sentence)
{
    static const int64_t d[] = {2, 3}, huge[] = {1 << 30, 1 << 30}, negative[] = {2, -3};
    static const int64_t many[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const sonde_op_input fine = {.dtype = SONDE_DTYPE_F32, .dims = d, .rank = 2};
    const sonde_op_input bad[] = {{.dtype = SONDE_DTYPE_F32, .dims = huge, .rank = 2},
                                  {.dtype = SONDE_DTYPE_F32, .dims = negative, .rank = 2},
                                  {.dtype = SONDE_DTYPE_F32, .dims = many, .rank = 17},
                                  {.dtype = (sonde_dtype)99, .dims = d, .rank = 2},
                                  {.dtype = SONDE_DTYPE_STRING, .dims = d, .rank = 2},
                                  {.dtype = SONDE_DTYPE_F32, .dims = NULL, .rank = 2}};
    static const char *const attributes[] = {
        "perm",         "=1",        "perm=1,0;perm=1,0",
        "perm=a,b",     "perm=1,,0", "perm=99999999999999999999",
        "unheard_of=1", "perm=5,7",  "perm=1.5,0",
        ";;;=",         "perm=1,0,"};
    sonde_error err;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.message[0] = 0;
        CHECK_MSG(describe("Relu", "", &bad[i], 1, &err) != SONDE_OK, "input %zu", i);
        CHECK_MSG(err.message[0], "input %zu", i);
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        err.message[0] = 0;
        CHECK_MSG(describe("Transpose", attributes[i], &fine, 1, &err) != SONDE_OK, "%s",
                  attributes[i]);
        CHECK_MSG(err.message[0], "%s", attributes[i]);
    }
    CHECK_EQ(describe("Convolve", "", &fine, 1, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "Convolve");
    CHECK(describe("Relu", "", &fine, 0, &err) != SONDE_OK);
    CHECK(describe(NULL, "", &fine, 1, &err) != SONDE_OK);
    const sonde_op_input mismatch[] = {fine, fine};
    CHECK(describe("MatMul", "", mismatch, 2, &err) != SONDE_OK);
    sonde_op_options o = quick();
    o.exec = 1000000;
    sonde_op_spec spec = conv(conv_in);
    sonde_op_result *r = NULL;
    CHECK_EQ(sonde_op_profile(NULL, &spec, &o, &r, &err), SONDE_LIMIT);
    o.exec = -1;
    CHECK_EQ(sonde_op_profile(NULL, &spec, &o, &r, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_op_profile(NULL, NULL, &o, &r, &err), SONDE_INVALID_ARGUMENT);
}

/* ------------------------------------------------------------------ memory */

static sonde_status profile_with(counting *count, sonde_error *err)
{
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    co.threads = 1;
    counting_options(&co, count);
    sonde_context *c = NULL;
    sonde_op_result *r = NULL;
    sonde_op_spec spec = conv(conv_in);
    sonde_op_options o = quick();
    o.one_variant = 1;
    sonde_status st = sonde_context_create(&co, &c, err);
    if (!st)
        st = sonde_op_profile(c, &spec, &o, &r, err);
    sonde_op_result_release(r);
    sonde_context_release(c);
    return st;
}

TEST(every_allocation_may_fail)
{
    sonde_error err;
    counting count = {.left = -1};
    CHECK_OK(profile_with(&count, &err));
    CHECK_EQ(count.live, 0);
    long k = 0;
    for (;; k++) {
        count = (counting){.left = k};
        const sonde_status st = profile_with(&count, &err);
        CHECK_MSG(count.live == 0, "failing allocation %ld leaves %ld blocks", k, count.live);
        if (!count.failed)
            break;
        CHECK_MSG(st == SONDE_OUT_OF_MEMORY || st == SONDE_OK, "allocation %ld: %d, %s", k, (int)st,
                  err.message);
    }
    CHECK(k > 20);
}

TEST_MAIN()
