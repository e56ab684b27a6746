/* SPDX-License-Identifier: Apache-2.0 */
/* Names of dimensions that a file gives to sizes which are not equal, and booleans that are neither
 * 0 nor 1: what other runtimes take, from whoever fills their inputs. */
#include "api/zoo_session.h"
#include "sonde/experimental/inspect.h"
#include "zoo/builder.h"

#define F32 SONDE_DTYPE_F32

typedef struct fixture {
    sonde_context *c;
    sonde_model *model;
    sonde_session *session;
    int warnings;
    char warning[400];
} fixture;

static void count_warnings(void *user, int level, const char *line)
{
    fixture *f = user;
    (void)level;
    f->warnings++;
    snprintf(f->warning, sizeof f->warning, "%s", line);
}

/* x and y are [N, 2] by declaration. `joined`: they are added, else x + x and y · 2 come out. */
static sonde_status build(sn_model *m, bool joined, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, 1, err);
    const sn_dim dims[2] = {sn_b_symbol(&b, "N", 1), 2};
    sn_value *x = sn_b_input(&b, "x", F32, dims, 2), *y = sn_b_input(&b, "y", F32, dims, 2);
    if (joined) {
        sn_value *sum = sn_b_op(&b, "sum_of_both", "Add", SN_IN(x, y), SN_NO_ATTRS);
        sn_b_output(&b, sum, "sum", F32, dims, 2);
        return *b.status;
    }
    sn_value *inner = sn_b_op(&b, "first", "Add", SN_IN(x, x), SN_NO_ATTRS);
    sn_b_output(&b, sn_b_op(&b, "last", "Neg", SN_IN(inner), SN_NO_ATTRS), "a", F32, dims, 2);
    sn_b_output(&b, sn_b_op(&b, "other", "Neg", SN_IN(y), SN_NO_ATTRS), "b", F32, dims, 2);
    return *b.status;
}

static sonde_status fixture_open(fixture *f, bool joined, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sn_model *m = NULL;
    *f = (fixture){.c = NULL};
    o.threads = 1;
    o.log = count_warnings;
    o.log_user = f;
    SN_TRY(sonde_context_create(&o, &f->c, err));
    SN_TRY(sn_model_new(&m, &f->c->core, err));
    sonde_status st = build(m, joined, err);
    if (!st)
        st = sn_model_finish(m, err);
    if (st) {
        sn_model_unref(m);
        return st;
    }
    SN_TRY(sn_api_model(f->c, m, "both", &f->model, err));
    return sonde_session_create(f->model, NULL, &f->session, err);
}

static void fixture_close(fixture *f)
{
    sonde_session_release(f->session);
    sonde_model_release(f->model);
    sonde_context_release(f->c);
}

static sonde_value *rows(fixture *f, int64_t n)
{
    const int64_t dims[2] = {n, 2};
    sonde_value *v = NULL;
    if (sonde_tensor_create(f->c, F32, dims, 2, NULL, (size_t)n * 8, &v, NULL))
        abort();
    for (int64_t i = 0; i < 2 * n; i++)
        ((float *)sonde_tensor_data(v))[i] = (float)i + 1;
    return v;
}

static void run_both(fixture *f, int64_t n_x, int64_t n_y)
{
    sonde_value *in[2] = {rows(f, n_x), rows(f, n_y)}, *out[2] = {NULL, NULL};
    sonde_error err = {.status = SONDE_OK};
    CHECK_OK(sonde_session_run(f->session, NULL, NULL, in, 2, NULL, out, 2, &err));
    CHECK_EQ(err.status, SONDE_OK); /* some callers look here */
    CHECK_STR(err.message, "");
    CHECK_EQ(sonde_tensor_dims(out[0])[0], n_x);
    CHECK_EQ(sonde_tensor_dims(out[1])[0], n_y);
    for (int64_t i = 0; i < 2 * n_x; i++)
        CHECK_EQ(((float *)sonde_tensor_data(out[0]))[i], -2 * (float)(i + 1));
    for (int64_t i = 0; i < 2 * n_y; i++)
        CHECK_EQ(((float *)sonde_tensor_data(out[1]))[i], -(float)(i + 1));
    release_all(in, 2);
    release_all(out, 2);
}

TEST(inputs_may_disagree_on_a_dimension_of_one_name)
{
    fixture f;
    sonde_error err;
    CHECK_OK(fixture_open(&f, false, &err));
    run_both(&f, 3, 3);
    CHECK_EQ(f.warnings, 0);
    run_both(&f, 3, 5);
    CHECK_EQ(f.warnings, 1);
    CHECK_HAS(f.warning, "'y'");
    CHECK_HAS(f.warning, "'N' = 5");
    run_both(&f, 4, 2);
    run_both(&f, 2, 2);
    CHECK_EQ(f.warnings, 1);
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    CHECK_OK(sonde_session_input_info(f.session, 1, &info, &err)); /* as the file says */
    CHECK_STR(info.text, "f32[N, 2]");
    fixture_close(&f);
}

TEST(names_of_dimensions_part_however_inputs_come)
{
    fixture f;
    sonde_error err;
    static const char *const turned[] = {"y", "x"}, *const one[] = {"b"};
    CHECK_OK(fixture_open(&f, false, &err));
    sonde_value *in[2] = {rows(&f, 2), rows(&f, 3)}, *out[2] = {NULL, NULL};
    /* In another order, of which one output is asked for. */
    CHECK_OK(sonde_session_run(f.session, NULL, turned, in, 2, one, out, 1, &err));
    CHECK_EQ(sonde_tensor_dims(out[0])[0], 2);
    release_all(out, 2);
    CHECK_EQ(f.warnings, 1);
    sonde_value_set *set = NULL;
    CHECK_OK(sonde_session_partial_run(f.session, NULL, turned, in, 2, &set, &err));
    CHECK(sonde_value_set_count(set) > 0);
    sonde_value_set_release(set);
    release_all(in, 2);
    fixture_close(&f);
}

TEST(a_session_is_looked_at_with_inputs_that_disagree)
{
    fixture f;
    sonde_error err;
    sonde_inspection *i = NULL;
    CHECK_OK(fixture_open(&f, false, &err));
    sonde_value *in[2] = {rows(&f, 2), rows(&f, 3)};
    CHECK_OK(sonde_inspect_session(f.session, NULL, in, 2, &i, &err));
    CHECK_EQ(f.warnings, 1);
    for (size_t k = 0; k < sonde_inspection_node_count(i); k++) {
        sonde_node_info node = SONDE_INIT(sonde_node_info);
        CHECK_OK(sonde_inspection_node(i, k, &node, &err));
        CHECK_HAS(node.outputs[0].type, ", 2]");
    }
    sonde_inspection_release(i);
    release_all(in, 2);
    run_both(&f, 4, 5);
    CHECK_EQ(f.warnings, 1);
    fixture_close(&f);
}

TEST(a_node_that_needs_equal_dimensions_is_named)
{
    fixture f;
    sonde_error err;
    CHECK_OK(fixture_open(&f, true, &err));
    sonde_value *in[2] = {rows(&f, 2), rows(&f, 3)}, *out = NULL;
    for (int k = 0; k < 2; k++) {
        CHECK(sonde_session_run(f.session, NULL, NULL, in, 2, NULL, &out, 1, &err) != SONDE_OK);
        CHECK_HAS(err.message, "sum_of_both");
        CHECK_HAS(err.message, "Add");
    }
    CHECK_EQ(f.warnings, 1);
    release_all(in, 2);
    in[0] = rows(&f, 3), in[1] = rows(&f, 3);
    CHECK_OK(sonde_session_run(f.session, NULL, NULL, in, 2, NULL, &out, 1, &err));
    CHECK_EQ(((float *)sonde_tensor_data(out))[5], 12);
    sonde_value_release(out);
    release_all(in, 2);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ truth */
/* Everything that reads a boolean: c is the input, of 2 dims. */
static sonde_status build_truth(sn_model *m, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 18, 1, err);
    const int64_t dims[1] = {70};
    sn_value *c = sn_b_input(&b, "c", SONDE_DTYPE_BOOL, dims, 1);
    sn_value *d = sn_b_input(&b, "d", SONDE_DTYPE_BOOL, dims, 1);
    static const int64_t zero[1] = {0};
    const int64_t one_dim[1] = {1};
    sn_value *low = sn_b_uniform(&b, "low", one_dim, 1, -1.0f, 0.0f);
    sn_value *high = sn_b_uniform(&b, "high", one_dim, 1, 1.0f, 0.0f);
    sn_value *axes = sn_b_ints(&b, "axes", zero, 1, 1);
    struct {
        const char *name;
        sn_value *v;
        sn_dtype dtype;
    } out[] = {
        {"not", sn_b_op(&b, "not", "Not", SN_IN(c), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"and", sn_b_op(&b, "and", "And", SN_IN(c, d), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"or", sn_b_op(&b, "or", "Or", SN_IN(c, d), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"xor", sn_b_op(&b, "xor", "Xor", SN_IN(c, d), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"equal", sn_b_op(&b, "equal", "Equal", SN_IN(c, d), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"where", sn_b_op(&b, "where", "Where", SN_IN(c, high, low), SN_NO_ATTRS), F32},
        {"cast", sn_b_op(&b, "cast", "Cast", SN_IN(c), SN_ATTRS(sn_a_int("to", SONDE_DTYPE_I64))),
         SONDE_DTYPE_I64},
        {"bytes", sn_b_op(&b, "bytes", "Cast", SN_IN(c), SN_ATTRS(sn_a_int("to", SONDE_DTYPE_U8))),
         SONDE_DTYPE_U8},
        {"same", sn_b_op(&b, "same", "Identity", SN_IN(c), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"places", sn_b_op(&b, "places", "NonZero", SN_IN(c), SN_NO_ATTRS), SONDE_DTYPE_I64},
        {"pressed", sn_b_op(&b, "pressed", "Compress", SN_IN(c, d), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
        {"first", sn_b_op(&b, "first", "Gather", SN_IN(c, axes), SN_NO_ATTRS), SONDE_DTYPE_BOOL},
    };
    for (size_t k = 0; k < sizeof out / sizeof *out; k++)
        sn_b_output(&b, out[k].v, out[k].name, out[k].dtype, NULL, -1);
    return *b.status;
}

enum { N = 70, OUTPUTS = 12 };

TEST(any_byte_but_0_is_true)
{
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    sonde_error err;
    sn_model *m = NULL;
    CHECK_OK(sonde_context_create(NULL, &c, &err));
    CHECK_OK(sn_model_new(&m, &c->core, &err));
    CHECK_OK(build_truth(m, &err));
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(sn_api_model(c, m, "truth", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    uint8_t bytes[2][2][N]; /* as 0 and 1; odd */
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 2; k++) {
            const uint64_t r = test_rand();
            bytes[0][k][i] = (uint8_t)(r & 1);
            bytes[1][k][i] = r & 1 ? (uint8_t)((r >> 8 & 0xFF) | 2) : 0;
        }
    /* One odd byte alone, at every place; and none but odd ones. */
    for (int odd = -1; odd < N; odd++) {
        sonde_value *out[2][OUTPUTS] = {{NULL}};
        for (int kind = 0; kind < 2; kind++) {
            const int64_t dims[1] = {N};
            uint8_t own[2][N];
            sonde_value *in[2];
            for (int k = 0; k < 2; k++) {
                memcpy(own[k], bytes[kind && odd < 0][k], N);
                if (kind && odd >= 0)
                    own[k][odd] = bytes[1][k][odd];
                CHECK_OK(
                    sonde_tensor_borrow(c, SONDE_DTYPE_BOOL, dims, 1, own[k], N, &in[k], &err));
            }
            CHECK_OK(sonde_session_run(s, NULL, NULL, in, 2, NULL, out[kind], OUTPUTS, &err));
            for (int k = 0; k < 2; k++) /* the caller's memory stays as it is */
                CHECK(memcmp(own[k], sonde_tensor_data(in[k]), N) == 0);
            CHECK(!kind || odd >= 0 || memcmp(own[0], bytes[1][0], N) == 0);
            release_all(in, 2);
        }
        for (size_t k = 0; k < OUTPUTS; k++) {
            const size_t n = sonde_tensor_bytes(out[0][k]);
            CHECK_EQ(sonde_tensor_bytes(out[1][k]), n);
            CHECK_MSG(memcmp(sonde_tensor_data(out[0][k]), sonde_tensor_data(out[1][k]), n) == 0,
                      "output '%s' with an odd byte at %d", sonde_session_output_name(s, k), odd);
        }
        release_all(out[0], OUTPUTS);
        release_all(out[1], OUTPUTS);
    }
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(c);
}

TEST(a_condition_of_2_takes_the_branch)
{
    sonde_context *c = NULL;
    sonde_model *model = NULL;
    sonde_session *s = NULL;
    sonde_error err;
    CHECK_OK(sonde_context_create(NULL, &c, &err));
    CHECK_OK(zoo_model(c, "tiny_if", &model, &err));
    CHECK_OK(sonde_session_create(model, NULL, &s, &err));
    sonde_value *in[2] = {NULL}, *out[2] = {NULL};
    const int64_t dims[2] = {1, 4};
    const float x[4] = {1, 2, 3, 4};
    for (int k = 0; k < 2; k++) {
        const uint8_t condition = k ? 2 : 1;
        CHECK_OK(sonde_tensor_create(c, SONDE_DTYPE_BOOL, NULL, 0, &condition, 1, &in[0], &err));
        CHECK_OK(sonde_tensor_create(c, F32, dims, 2, x, sizeof x, &in[1], &err));
        CHECK_OK(sonde_session_run(s, NULL, NULL, in, 2, NULL, &out[k], 1, &err));
        release_all(in, 2);
    }
    CHECK(memcmp(sonde_tensor_data(out[0]), sonde_tensor_data(out[1]), sizeof x) == 0);
    release_all(out, 2);
    sonde_session_release(s);
    sonde_model_release(model);
    sonde_context_release(c);
}

TEST_MAIN()
