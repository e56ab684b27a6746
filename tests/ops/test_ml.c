/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of ai.onnx.ml and TfIdfVectorizer, on cases small enough to check by hand. */
#include "ops/one_node.h"

static void begin(one_node *c, const char *op, int version, uint32_t n_in, uint32_t n_out)
{
    node_begin(c, op, version, n_in, n_out);
    if (c->n)
        c->n->domain = "ai.onnx.ml";
}

#define node_floats(c, NAME, ...)                                                                  \
    node_attr(c, (sn_attr){.name = NAME,                                                           \
                           .kind = SN_ATTR_FLOATS,                                                 \
                           .n = sizeof((float[]){__VA_ARGS__}) / sizeof(float),                    \
                           .floats = (float[]){__VA_ARGS__}})
#define TEXT(t) ((sonde_string){t, sizeof(t) - 1})
#define node_strings(c, NAME, ...)                                                                 \
    node_attr(c, (sn_attr){.name = NAME,                                                           \
                           .kind = SN_ATTR_STRINGS,                                                \
                           .n = sizeof((sonde_string[]){__VA_ARGS__}) / sizeof(sonde_string),      \
                           .strings = (sonde_string[]){__VA_ARGS__}})
#define node_texts(c, i, shape, ...)                                                               \
    node_tensor(c, i, SONDE_DTYPE_STRING, shape, (sonde_string[]){__VA_ARGS__})
/* Lists are not copied: from helpers they must be static. */
#define static_list(c, NAME, KIND, FIELD, ARRAY)                                                   \
    node_attr(c, (sn_attr){.name = NAME,                                                           \
                           .kind = SN_ATTR_##KIND,                                                 \
                           .n = sizeof(ARRAY) / sizeof *(ARRAY),                                   \
                           .FIELD = ARRAY})
#define RUNS(c) CHECK_MSG(node_run(c) == SONDE_OK, "%s", (c)->err.message)

static bool is_text(const sn_slot *s, int64_t i, const char *want)
{
    const sonde_string *t = &((const sonde_string *)s->t.data)[i];
    return s->t.dtype == SONDE_DTYPE_STRING && t->size == strlen(want) &&
           memcmp(t->data, want, t->size) == 0;
}

TEST(labels_are_looked_up_and_the_last_of_equal_keys_counts)
{
    one_node c;
    begin(&c, "LabelEncoder", 4, 1, 1);
    node_strings(&c, "keys_strings", TEXT("b"), TEXT("a"), TEXT("b"));
    node_ints(&c, "values_int64s", 1, 2, 3);
    node_texts(&c, 0, SHAPE(2, 2), TEXT("a"), TEXT("b"), TEXT(""), TEXT("ba"));
    RUNS(&c);
    CHECK(has_shape(&c.out[0], SHAPE(2, 2)));
    CHECK(IS_I64(&c.out[0], 2, 3, -1, -1));
    node_end(&c);
}

TEST(not_a_number_is_a_label_like_any_other)
{
    one_node c;
    begin(&c, "LabelEncoder", 2, 1, 1);
    node_floats(&c, "keys_floats", NAN, 0.0f);
    node_strings(&c, "values_strings", TEXT("none"), TEXT("zero"));
    node_f32(&c, 0, SHAPE(3), NAN, -0.0f, 5.0f);
    RUNS(&c);
    CHECK(is_text(&c.out[0], 0, "none"));
    CHECK(is_text(&c.out[0], 1, "zero"));
    CHECK(is_text(&c.out[0], 2, "_Unused"));
    node_end(&c);
}

TEST(categories_map_both_ways)
{
    one_node c;
    begin(&c, "CategoryMapper", 1, 1, 1);
    node_ints(&c, "cats_int64s", 7, 8);
    node_strings(&c, "cats_strings", TEXT("x"), TEXT("y"));
    node_i64(&c, 0, SHAPE(2), 8, 9);
    RUNS(&c);
    CHECK(is_text(&c.out[0], 0, "y"));
    CHECK(is_text(&c.out[0], 1, "_Unused"));
    node_end(&c);
}

TEST(features_outside_of_the_array_are_an_error)
{
    for (int64_t at = -1; at <= 2; at++) {
        one_node c;
        begin(&c, "ArrayFeatureExtractor", 1, 2, 1);
        node_f32(&c, 0, SHAPE(2, 2), 1, 2, 3, 4);
        node_tensor(&c, 1, SONDE_DTYPE_I64, SHAPE(1), &at);
        CHECK_EQ(node_run(&c), at == 0 || at == 1 ? SONDE_OK : SONDE_RUNTIME);
        node_end(&c);
    }
}

TEST(rows_are_normalised_by_their_length)
{
    one_node c;
    begin(&c, "Normalizer", 1, 1, 1);
    node_text(&c, "norm", "L2");
    node_f32(&c, 0, SHAPE(2, 2), 3, -4, 0, 0);
    RUNS(&c);
    CHECK(IS_F32(&c.out[0], 0.6f, -0.8f, 0, 0));
    node_end(&c);
}

TEST(a_linear_classifier_names_the_class_with_the_best_score)
{
    one_node c;
    begin(&c, "LinearClassifier", 1, 1, 2);
    node_floats(&c, "coefficients", 1, 0, 0, 1);
    node_floats(&c, "intercepts", 0, 0.5f);
    node_strings(&c, "classlabels_strings", TEXT("left"), TEXT("right"));
    node_f32(&c, 0, SHAPE(2, 2), 3, 1, 1, 2);
    RUNS(&c);
    CHECK(is_text(&c.out[0], 0, "left"));
    CHECK(is_text(&c.out[0], 1, "right"));
    CHECK(IS_F32(&c.out[1], 3, 1.5f, 1, 2.5f));
    node_end(&c);
}

TEST(a_support_vector_machine_counts_the_votes_of_pairs)
{
    one_node c;
    begin(&c, "SVMClassifier", 1, 1, 2);
    node_floats(&c, "coefficients", 1, -1);
    node_floats(&c, "support_vectors", 1, -1);
    node_floats(&c, "rho", 0);
    node_ints(&c, "vectors_per_class", 1, 1);
    node_ints(&c, "classlabels_ints", 5, 6);
    node_f32(&c, 0, SHAPE(2, 1), 2, -2);
    RUNS(&c);
    CHECK(IS_I64(&c.out[0], 5, 6));
    node_end(&c);
}

TEST(a_support_vector_machine_takes_rows_without_features)
{
    one_node c;
    begin(&c, "SVMClassifier", 1, 1, 2);
    node_floats(&c, "coefficients", 1, -1);
    node_floats(&c, "rho", 2);
    node_ints(&c, "vectors_per_class", 1, 1);
    node_ints(&c, "classlabels_ints", 5, 6);
    node_f32(&c, 0, SHAPE(2, 0), 0);
    RUNS(&c);
    CHECK(IS_I64(&c.out[0], 5, 5));
    node_end(&c);
}

/* One split at 0.5, and two leaves; `yes` and `no` are the children. */
static void begin_tree(one_node *c, int64_t yes, int64_t no, int64_t feature)
{
    static const int64_t tree[] = {0, 0, 0}, ids[] = {0, 1, 2}, missing[] = {1, 0, 0};
    static const int64_t vote_tree[] = {0, 0}, vote_node[] = {1, 2}, vote_id[] = {0, 0};
    static const float splits[] = {0.5f, 0, 0}, weights[] = {10, 20}, base[] = {1};
    static const sonde_string modes[] = {{"BRANCH_LEQ", 10}, {"LEAF", 4}, {"LEAF", 4}};
    static int64_t true_ids[3], false_ids[3], features[3];
    true_ids[0] = yes;
    false_ids[0] = no;
    features[0] = feature;
    begin(c, "TreeEnsembleRegressor", 3, 1, 1);
    static_list(c, "nodes_treeids", INTS, ints, tree);
    static_list(c, "nodes_nodeids", INTS, ints, ids);
    static_list(c, "nodes_featureids", INTS, ints, features);
    static_list(c, "nodes_truenodeids", INTS, ints, true_ids);
    static_list(c, "nodes_falsenodeids", INTS, ints, false_ids);
    static_list(c, "nodes_missing_value_tracks_true", INTS, ints, missing);
    static_list(c, "nodes_values", FLOATS, floats, splits);
    static_list(c, "nodes_modes", STRINGS, strings, modes);
    static_list(c, "target_treeids", INTS, ints, vote_tree);
    static_list(c, "target_nodeids", INTS, ints, vote_node);
    static_list(c, "target_ids", INTS, ints, vote_id);
    static_list(c, "target_weights", FLOATS, floats, weights);
    static_list(c, "base_values", FLOATS, floats, base);
    node_int(c, "n_targets", 1);
    node_f32(c, 0, SHAPE(3, 1), 0.5f, 0.6f, NAN);
}

TEST(a_tree_is_walked_to_its_leaf)
{
    one_node c;
    begin_tree(&c, 1, 2, 0);
    RUNS(&c);
    CHECK(IS_F32(&c.out[0], 11, 21, 11));
    node_end(&c);
}

TEST(trees_that_never_end_point_nowhere_or_ask_too_much_are_refused)
{
    static const struct {
        int64_t yes, no, feature;
        const char *why;
    } lies[] = {{0, 2, 0, "descendant"},
                {1, 9, 0, "does not exist"},
                {1, 2, -1, "does not exist"},
                {1, 2, 1, "feature 1"}};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        one_node c;
        begin_tree(&c, lies[i].yes, lies[i].no, lies[i].feature);
        CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
        CHECK_HAS(c.err.message, lies[i].why);
        node_end(&c);
    }
}

TEST(zip_map_gives_one_map_per_row)
{
    one_node c;
    begin(&c, "ZipMap", 1, 1, 1);
    node_strings(&c, "classlabels_strings", TEXT("no"), TEXT("yes"));
    node_f32(&c, 0, SHAPE(2, 2), 0.25f, 0.75f, 1, 0);
    RUNS(&c);
    CHECK_EQ(c.out[0].kind, SN_KIND_SEQUENCE);
    CHECK_EQ(c.out[0].list->n, 2);
    const sn_slot *map = &c.out[0].list->items[0];
    CHECK_EQ(map->kind, SN_KIND_MAP);
    CHECK(is_text(&map->list->items[0], 1, "yes"));
    CHECK(IS_F32(&map->list->items[1], 0.25f, 0.75f));
    node_end(&c);
}

static void make_map(one_node *c, const int64_t *keys, const float *values, int64_t n)
{
    sn_slot parts[2] = {{0}, {0}};
    sn_value *v = node_value(c, 0);
    c->in[0] = (sn_slot){.kind = SN_KIND_MAP, .list = sn_list_new(&c->alloc, 2)};
    c->given[0] = true;
    v->fact.type = (sn_type){.kind = SN_KIND_MAP, .dtype = SONDE_DTYPE_I64, .rank = -1};
    CHECK(!sn_slot_new_tensor(&parts[0], SONDE_DTYPE_I64, &n, 1, &c->alloc, &c->err));
    CHECK(!sn_slot_new_tensor(&parts[1], SONDE_DTYPE_F32, &n, 1, &c->alloc, &c->err));
    memcpy(parts[0].t.data, keys, (size_t)n * sizeof *keys);
    memcpy(parts[1].t.data, values, (size_t)n * sizeof *values);
    for (int i = 0; i < 2; i++) {
        CHECK(!sn_list_push(c->in[0].list, &parts[i], &c->err));
        sn_slot_clear(&parts[i]);
    }
}

TEST(a_map_becomes_a_row_of_the_vocabulary)
{
    one_node c;
    begin(&c, "DictVectorizer", 1, 1, 1);
    node_ints(&c, "int64_vocabulary", 4, 2, 9);
    make_map(&c, (int64_t[]){9, 4, 5}, (float[]){1, 2, 3}, 3);
    RUNS(&c);
    CHECK(IS_F32(&c.out[0], 2, 0, 1));
    node_end(&c);
}

TEST(a_map_is_cast_in_the_order_of_its_keys)
{
    for (int sparse = 0; sparse < 2; sparse++) {
        one_node c;
        begin(&c, "CastMap", 1, 1, 1);
        node_text(&c, "cast_to", "TO_INT64");
        node_text(&c, "map_form", sparse ? "SPARSE" : "DENSE");
        node_int(&c, "max_map", 3);
        make_map(&c, (int64_t[]){2, 0, 70}, (float[]){5, 6, 7}, 3);
        RUNS(&c);
        if (sparse)
            CHECK(IS_I64(&c.out[0], 6, 0, 5));
        else
            CHECK(IS_I64(&c.out[0], 6, 5, 7));
        node_end(&c);
    }
}

static void begin_tfidf(one_node *c, int64_t skips)
{
    static const int64_t pool[] = {3, 5, 3, 5}, counts[] = {0, 2}, indexes[] = {0, 2, 1};
    node_begin(c, "TfIdfVectorizer", 9, 1, 1);
    node_text(c, "mode", "TF");
    node_int(c, "min_gram_length", 1);
    node_int(c, "max_gram_length", 2);
    node_int(c, "max_skip_count", skips);
    static_list(c, "pool_int64s", INTS, ints, pool);
    static_list(c, "ngram_counts", INTS, ints, counts);
    static_list(c, "ngram_indexes", INTS, ints, indexes);
    node_i64(c, 0, SHAPE(1, 4), 3, 5, 4, 5);
}

TEST(n_grams_may_skip_tokens)
{
    one_node c;
    begin_tfidf(&c, 0);
    RUNS(&c);
    CHECK(IS_F32(&c.out[0], 1, 1, 2));
    node_end(&c);
    begin_tfidf(&c, 2);
    RUNS(&c);
    CHECK(IS_F32(&c.out[0], 1, 2, 2)); /* 3 … 5 also over two tokens */
    node_end(&c);
}

TEST(a_pool_that_does_not_fit_its_counts_is_refused)
{
    static const int64_t counts[][2] = {{0, 5}, {0, 1}, {-1, 2}, {3, 2}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        one_node c;
        begin_tfidf(&c, 0);
        node_ints(&c, "ngram_counts", counts[i][0], counts[i][1]);
        CHECK_EQ(node_run(&c), SONDE_INVALID_MODEL);
        node_end(&c);
    }
}

TEST_MAIN()
