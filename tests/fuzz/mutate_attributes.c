/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: their numbers, lists, texts, types and names; one more, one less. */
#include <string.h>

#include "fuzz/mutate.h"

static const char *const names[] = {"activation",
                                    "activation_alpha",
                                    "activation_beta",
                                    "activation_params",
                                    "activations",
                                    "align_corners",
                                    "allowzero",
                                    "alpha",
                                    "antialias",
                                    "approximate",
                                    "auto_pad",
                                    "axes",
                                    "axis",
                                    "batch_axis",
                                    "batch_dims",
                                    "beta",
                                    "bias",
                                    "bits",
                                    "block",
                                    "block_size",
                                    "blocksize",
                                    "body",
                                    "broadcast",
                                    "causal",
                                    "ceil_mode",
                                    "center_point_box",
                                    "channels_last",
                                    "clip",
                                    "coordinate_transformation_mode",
                                    "count_include_pad",
                                    "cubic_coeff_a",
                                    "default_int64",
                                    "default_string",
                                    "detect_negative",
                                    "dilations",
                                    "direction",
                                    "directions",
                                    "dtype",
                                    "else_branch",
                                    "end",
                                    "ends",
                                    "epsilon",
                                    "equation",
                                    "exclude_outside",
                                    "exclusive",
                                    "extrapolation_value",
                                    "fmod",
                                    "gamma",
                                    "group",
                                    "hidden_size",
                                    "ignore_index",
                                    "input_forget",
                                    "interleaved",
                                    "inverse",
                                    "is_causal",
                                    "k",
                                    "keepdims",
                                    "kernel_shape",
                                    "keys_int64s",
                                    "kv_num_heads",
                                    "lambd",
                                    "largest",
                                    "layout",
                                    "linear_before_reset",
                                    "local_window_size",
                                    "max",
                                    "max_gram_length",
                                    "max_skip_count",
                                    "min",
                                    "min_gram_length",
                                    "mode",
                                    "momentum",
                                    "nearest_mode",
                                    "new_axis",
                                    "ngram_counts",
                                    "ngram_indexes",
                                    "nodes_featureids",
                                    "nodes_treeids",
                                    "noop_with_empty_axes",
                                    "norm",
                                    "num_groups",
                                    "num_heads",
                                    "num_outputs",
                                    "num_scan_inputs",
                                    "offset_group",
                                    "onesided",
                                    "output_dtype",
                                    "output_height",
                                    "output_padding",
                                    "output_shape",
                                    "output_width",
                                    "p",
                                    "padding_mode",
                                    "pads",
                                    "perm",
                                    "periodic",
                                    "pool_int64s",
                                    "pooled_shape",
                                    "post_transform",
                                    "q_num_heads",
                                    "qk_matmul_output_mode",
                                    "qkv_hidden_sizes",
                                    "reduction",
                                    "reverse",
                                    "rotary_embedding_dim",
                                    "sampling_ratio",
                                    "saturate",
                                    "scale",
                                    "scales",
                                    "scan_input_axes",
                                    "scan_input_directions",
                                    "scan_output_axes",
                                    "scan_output_directions",
                                    "select_last_index",
                                    "shape",
                                    "size",
                                    "softcap",
                                    "sorted",
                                    "spatial_scale",
                                    "split",
                                    "start",
                                    "starts",
                                    "stash_type",
                                    "storage_order",
                                    "strides",
                                    "then_branch",
                                    "threshold",
                                    "time_axis",
                                    "to",
                                    "training_mode",
                                    "transA",
                                    "transB",
                                    "unidirectional",
                                    "upper",
                                    "value",
                                    "value_float",
                                    "value_int",
                                    "value_ints",
                                    "value_string",
                                    "vectors_per_class",
                                    "zeros"};

static const char *const texts[] = {"",
                                    "NOTSET",
                                    "SAME_UPPER",
                                    "SAME_LOWER",
                                    "VALID",
                                    "constant",
                                    "edge",
                                    "reflect",
                                    "wrap",
                                    "linear",
                                    "nearest",
                                    "cubic",
                                    "bilinear",
                                    "bicubic",
                                    "zeros",
                                    "border",
                                    "reflection",
                                    "none",
                                    "add",
                                    "mul",
                                    "max",
                                    "min",
                                    "sum",
                                    "mean",
                                    "forward",
                                    "reverse",
                                    "bidirectional",
                                    "tanh",
                                    "Relu",
                                    "Clip",
                                    "Sigmoid",
                                    "Tanh",
                                    "LeakyRelu",
                                    "HardSigmoid",
                                    "Affine",
                                    "Softsign",
                                    "half_pixel",
                                    "pytorch_half_pixel",
                                    "align_corners",
                                    "asymmetric",
                                    "tf_crop_and_resize",
                                    "half_pixel_symmetric",
                                    "round_prefer_floor",
                                    "round_prefer_ceil",
                                    "floor",
                                    "ceil",
                                    "stretch",
                                    "not_larger",
                                    "not_smaller",
                                    "DCR",
                                    "CRD",
                                    "ij,jk->ik",
                                    "...ij,...jk->...ik",
                                    "ii->i",
                                    "ij->",
                                    "a,b,c->abc",
                                    "i...,...i->...",
                                    "abc->cba",
                                    "iij->ji",
                                    "SOFTMAX",
                                    "LOGISTIC",
                                    "SOFTMAX_ZERO",
                                    "PROBIT",
                                    "NONE",
                                    "avg",
                                    "TF",
                                    "IDF",
                                    "TFIDF",
                                    "L1",
                                    "L2",
                                    "MAX",
                                    "BRANCH_LEQ",
                                    "LEAF",
                                    "a*b",
                                    "[a-z]+",
                                    "(a|b)*c",
                                    "output_half_pixel",
                                    "LOWER",
                                    "UPPER"};

static bool pick_attr(mutation *m, mu_spot *s)
{
    return mu_pick(m, PT_ATTR, NULL, s);
}

static const char *any(mutation *m, const char *const *list, size_t n)
{
    return list[mu_below(m, (uint32_t)n)];
}
#define ANY(m, list) any(m, list, sizeof(list) / sizeof(list)[0])

static void change_number(mutation *m, pt_field *f)
{
    if (f->wire == 5) {
        uint32_t bits = (uint32_t)f->num;
        float x;
        memcpy(&x, &bits, sizeof x);
        x = mu_float(m, x);
        memcpy(&bits, &x, sizeof bits);
        f->num = bits;
    } else if (f->wire == 0) {
        f->num = (uint64_t)mu_int(m, (int64_t)f->num);
    }
}

static bool is_number(const pt_field *f)
{
    return f->number == ATTR_F || f->number == ATTR_I || f->number == ATTR_FLOATS ||
           f->number == ATTR_INTS;
}

static bool has_number(const pt_field *parent, const pt_field *a)
{
    (void)parent;
    for (uint32_t k = 0; k < a->n_kids; k++)
        if (is_number(a->kids[k]))
            return true;
    return false;
}

static bool number(mutation *m)
{
    mu_spot s;
    if (!mu_pick(m, PT_ATTR, has_number, &s))
        return false;
    uint32_t seen = 0;
    pt_field *chosen = NULL;
    for (uint32_t k = 0; k < s.field->n_kids; k++)
        if (is_number(s.field->kids[k]) && mu_one_in(m, ++seen))
            chosen = s.field->kids[k];
    change_number(m, chosen);
    return true;
}

/* One element more or less, or two that change places; not only of lists. */
static bool length(mutation *m)
{
    static const uint32_t lists[] = {ATTR_INTS, ATTR_FLOATS, ATTR_STRINGS, ATTR_TENSORS};
    mu_spot s;
    if (!pick_attr(m, &s))
        return false;
    for (size_t l = 0; l < 4; l++) {
        pt_field *f = mu_pick_kid(m, s.field, lists[l]), *g, *copy;
        if (!f)
            continue;
        switch (mu_below(m, 5)) {
        case 0:
            pt_remove(s.field, f);
            break;
        case 1:
            pt_remove_all(s.field, lists[l]);
            break;
        case 2:
            g = mu_pick_kid(m, s.field, lists[l]);
            copy = pt_clone(m->arena, f);
            if (copy) {
                f->num = g->num, g->num = copy->num;
                f->bytes = g->bytes, g->bytes = copy->bytes;
                f->n_bytes = g->n_bytes, g->n_bytes = copy->n_bytes;
            }
            break;
        default:
            copy = pt_clone(m->arena, f);
            if (copy) {
                if (mu_one_in(m, 2))
                    change_number(m, copy);
                pt_insert(m->arena, s.field, UINT32_MAX, copy);
            }
            break;
        }
        return true;
    }
    return false;
}

static bool type(mutation *m)
{
    mu_spot s;
    if (!pick_attr(m, &s))
        return false;
    if (mu_one_in(m, 2)) {
        pt_set_num(m->arena, s.field, ATTR_TYPE, mu_below(m, 16));
        return true;
    }
    /* A number becomes a list of one and the other way round. */
    static const struct {
        uint32_t from, to, type;
    } pairs[] = {{ATTR_I, ATTR_INTS, 7},   {ATTR_INTS, ATTR_I, 2},    {ATTR_F, ATTR_FLOATS, 6},
                 {ATTR_FLOATS, ATTR_F, 1}, {ATTR_S, ATTR_STRINGS, 8}, {ATTR_STRINGS, ATTR_S, 3}};
    for (size_t k = 0; k < 6; k++) {
        pt_field *f = pt_find(s.field, pairs[k].from);
        if (f) {
            f->number = pairs[k].to;
            pt_set_num(m->arena, s.field, ATTR_TYPE, pairs[k].type);
            return true;
        }
    }
    return false;
}

static bool text(mutation *m)
{
    mu_spot s;
    for (int tries = 0; tries < 6; tries++) {
        if (!pick_attr(m, &s))
            return false;
        pt_field *f = mu_pick_kid(m, s.field, mu_one_in(m, 3) ? ATTR_STRINGS : ATTR_S);
        if (!f || f->kind != PT_LEAF)
            continue;
        if (f->n_bytes && f->n_bytes < 4096 && mu_one_in(m, 3)) {
            uint8_t *copy = pt_alloc(m->arena, f->n_bytes);
            memcpy(copy, f->bytes, f->n_bytes);
            copy[mu_below(m, (uint32_t)f->n_bytes)] =
                (uint8_t) "abijk.,-> *+?()[]\\^$0123456789\x80\xFF"[mu_below(m, 33)];
            f->bytes = copy;
        } else {
            f->bytes = (const uint8_t *)ANY(m, texts);
            f->n_bytes = strlen((const char *)f->bytes);
        }
        return true;
    }
    return false;
}

static bool drop(mutation *m)
{
    mu_spot s;
    if (!pick_attr(m, &s))
        return false;
    pt_remove(s.parent, s.field);
    return true;
}

/* The attribute under another name, as a second one or instead. */
static bool rename_it(mutation *m)
{
    mu_spot s;
    if (!pick_attr(m, &s))
        return false;
    pt_field *a = mu_one_in(m, 2) ? s.field : pt_clone(m->arena, s.field);
    if (!a)
        return false;
    if (a != s.field)
        pt_insert(m->arena, s.parent, UINT32_MAX, a);
    pt_set_text(m->arena, a, ATTR_NAME, ANY(m, names));
    return true;
}

/* The attribute goes to another node. */
static bool copy(mutation *m)
{
    mu_spot s, to;
    if (!pick_attr(m, &s) || !mu_pick(m, PT_NODE, NULL, &to))
        return false;
    pt_field *a = pt_clone(m->arena, s.field);
    if (a)
        pt_insert(m->arena, to.field, UINT32_MAX, a);
    return a != NULL;
}

static bool add(mutation *m)
{
    mu_spot s;
    if (!mu_pick(m, PT_NODE, NULL, &s))
        return false;
    pt_field *a = pt_add_message(m->arena, s.field, NODE_ATTR);
    pt_set_text(m->arena, a, ATTR_NAME, ANY(m, names));
    switch (mu_below(m, 4)) {
    case 0:
        pt_add_num(m->arena, a, ATTR_I, 0, (uint64_t)mu_int(m, 1));
        pt_set_num(m->arena, a, ATTR_TYPE, 2);
        break;
    case 1:
        pt_add_num(m->arena, a, ATTR_F, 5, 0x3F800000);
        pt_set_num(m->arena, a, ATTR_TYPE, 1);
        change_number(m, pt_find(a, ATTR_F));
        break;
    case 2:
        for (uint32_t k = mu_below(m, 7); k > 0; k--)
            pt_add_num(m->arena, a, ATTR_INTS, 0, (uint64_t)mu_int(m, 1));
        pt_set_num(m->arena, a, ATTR_TYPE, 7);
        break;
    default:
        pt_set_text(m->arena, a, ATTR_S, ANY(m, texts));
        pt_set_num(m->arena, a, ATTR_TYPE, 3);
        break;
    }
    return true;
}

const mutation_row mutations_of_attributes[] = {{number, 16}, {length, 6}, {type, 1},
                                                {text, 5},    {drop, 3},   {rename_it, 2},
                                                {copy, 2},    {add, 5},    {NULL, 0}};
