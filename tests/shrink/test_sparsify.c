/* SPDX-License-Identifier: Apache-2.0 */
/* Pruning from C: the rows, that every failing allocation is survived, cancelling, and arguments
 * that make no sense. Which blocks go is tested against numpy
 * (tests/python/test_package_sparsify.py). */
#include "sonde/experimental/sparsify.h"

#include "api/counting_alloc.h"
#include "sonde/experimental/zoo.h"
#include "temp_folder.h"
#include "test.h"

static sonde_status prune(sonde_model *model, const sonde_sparsify_options *o, const char *path,
                          const sonde_save_options *save, sonde_error *err)
{
    sonde_sparsified *made = NULL;
    sonde_status st = sonde_sparsify(model, o, &made, err);
    if (st == SONDE_OK && path)
        st = sonde_sparsified_save(made, path, save, err);
    sonde_sparsified_release(made);
    return st;
}

TEST(rows_are_in_the_order_of_the_nodes_and_the_total_adds_them_up)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_sparsified *made = NULL;
    sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
    sonde_sparse_weight w = SONDE_INIT(sonde_sparse_weight), total = w;
    o.ratio = 0.75;
    CHECK_OK(sonde_zoo_build(NULL, "tiny_mlp", 0, &model, &err));
    CHECK_OK(sonde_sparsify(model, &o, &made, &err));
    sonde_model_release(model); /* the result keeps what it needs */
    uint64_t elements = 0, zeros = 0;
    CHECK_EQ(sonde_sparsified_count(made), 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(sonde_sparsified_weight(made, i, &w, &err));
        CHECK_STR(w.pattern, "4x1");
        CHECK_STR(w.dtype, "f32");
        CHECK_STR(w.skipped, "");
        CHECK(w.selected && w.norm_kept > 0 && w.norm_kept < 1 && w.zeros_after > w.zeros_before);
        elements += w.elements;
        zeros += w.zeros_after;
    }
    CHECK_OK(sonde_sparsified_total(made, &total, &err));
    CHECK_EQ(total.elements, elements);
    CHECK_EQ(total.zeros_after, zeros);
    CHECK_EQ(sonde_sparsified_weight(made, 2, &w, &err), SONDE_INVALID_ARGUMENT);
    sonde_sparsified_release(made);
}

TEST(arguments_that_make_no_sense_are_refused)
{
    sonde_error err;
    sonde_model *model = NULL;
    sonde_sparsified *made = NULL;
    sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
    sonde_sparse_weight w = {0};
    CHECK_OK(sonde_zoo_build(NULL, "tiny_mlp", 0, &model, &err));
    CHECK_EQ(sonde_sparsify(NULL, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_sparsify(model, &o, NULL, &err), SONDE_INVALID_ARGUMENT);
    o.only_count = 1;
    CHECK_EQ(sonde_sparsify(model, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    o.only = (const char *const[]){NULL};
    CHECK_EQ(sonde_sparsify(model, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    o.only = (const char *const[]){"gone"};
    CHECK_EQ(sonde_sparsify(model, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "no node and no weight 'gone'");
    o = (sonde_sparsify_options)SONDE_INIT(sonde_sparsify_options);
    o.pattern = "four";
    CHECK_EQ(sonde_sparsify(model, &o, &made, &err), SONDE_INVALID_ARGUMENT);
    CHECK(!made);
    CHECK_OK(sonde_sparsify(model, NULL, &made, &err));
    CHECK_EQ(sonde_sparsified_weight(made, 0, &w, &err), SONDE_INVALID_ARGUMENT);
    CHECK_EQ(sonde_sparsified_save(made, NULL, NULL, &err), SONDE_INVALID_ARGUMENT);
    sonde_sparsified_release(made);
    sonde_sparsified_release(NULL);
    sonde_model_release(model);
}

typedef struct steps {
    int n, most;
    double last;
    bool odd; /* it went back, or beyond 1 */
} steps;

static int step(void *user, double done)
{
    steps *s = user;
    s->odd = s->odd || done < s->last || done > 1;
    s->last = done;
    return s->n++ == s->most;
}

TEST(progress_grows_to_one_and_may_cancel)
{
    sonde_error err;
    sonde_model *model = NULL;
    CHECK_OK(sonde_zoo_build(NULL, "tiny_cnn", 0, &model, &err));
    steps s = {.most = -1};
    sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
    o.ratio = 0.5;
    o.progress = step;
    o.user = &s;
    CHECK_OK(prune(model, &o, NULL, NULL, &err));
    CHECK(s.last == 1 && !s.odd);
    for (int k = 0; k < s.n; k++) {
        steps again = {.most = k};
        o.user = &again;
        CHECK_EQ(prune(model, &o, NULL, NULL, &err), SONDE_CANCELLED);
        CHECK_EQ(again.n, k + 1);
    }
    sonde_model_release(model);
}

/* All the memory that a context gives, from loading to saving in two files. */
static sonde_status whole_life(counting *count, const char *name, const char *path,
                               sonde_error *err)
{
    sonde_context_options c = SONDE_INIT(sonde_context_options);
    sonde_sparsify_options o = SONDE_INIT(sonde_sparsify_options);
    sonde_save_options save = SONDE_INIT(sonde_save_options);
    sonde_context *ctx = NULL;
    sonde_model *model = NULL;
    c.threads = 1;
    counting_options(&c, count);
    o.ratio = 0.9;
    o.except = (const char *const[]){"*Relu*"};
    o.except_count = 1;
    o.sparse_initializers = 1;
    save.external_data = 1;
    sonde_status st = sonde_context_create(&c, &ctx, err);
    if (st == SONDE_OK)
        st = sonde_zoo_build(ctx, name, 0, &model, err);
    if (st == SONDE_OK)
        st = prune(model, &o, path, &save, err);
    sonde_model_release(model);
    sonde_context_release(ctx);
    return st;
}

TEST(every_failing_allocation_is_survived_and_leaves_no_file)
{
    static const char *const names[] = {"tiny_mlp", "tiny_cnn_int8"};
    char folder[TEMP_PATH], path[TEMP_PATH + 16];
    sonde_error err;
    temp_make(folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    for (size_t i = 0; i < 2; i++) {
        long k = 0;
        for (;; k++) {
            counting count = {.left = k};
            const sonde_status st = whole_life(&count, names[i], path, &err);
            CHECK_MSG(count.live == 0, "%s: allocation %ld leaves %ld blocks", names[i], k,
                      count.live);
            if (!count.failed) {
                CHECK_OK(st);
                break;
            }
            CHECK_MSG(st == SONDE_OUT_OF_MEMORY, "%s: allocation %ld: %d, %s", names[i], k, (int)st,
                      err.message);
            CHECK_EQ(temp_count(folder), 0);
        }
        CHECK_MSG(k > 20, "only %ld allocations were walked", k);
        CHECK(temp_remove(folder));
        temp_make(folder);
        snprintf(path, sizeof path, "%s/m.onnx", folder);
    }
    CHECK(temp_remove(folder));
}

TEST_MAIN()
