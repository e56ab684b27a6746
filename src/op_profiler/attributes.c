/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes as people type them: "kernel_shape=3,3;strides=1,1;group=1". ONNX uses a name for one
 * kind of attribute everywhere, with a few exceptions, so the name tells the kind; names that are
 * not in the table (of other domains) are taken by how their value looks. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "op_profiler/op_case.h"

enum { MAX_ELEMENTS = 4096 };

/* Sorted by nothing but kind: each list is short enough to be looked through. */
static const char ints_names[] =
    " axes consumed_inputs dilations directions ends kernel_shape ngram_counts ngram_indexes"
    " output_padding output_shape paddings pads perm pool_int64s pooled_shape shape split starts"
    " strides value_ints ";
static const char float_names[] =
    " alpha beta bias clip cubic_coeff_a epsilon extrapolation_value gamma height_scale high lambd"
    " low max mean min momentum ratio scale softcap spatial_scale value_float width_scale ";
static const char floats_names[] = " activation_alpha activation_beta scales value_floats weights ";
static const char text_names[] =
    " activation approximate auto_pad case_change_action coordinate_transformation_mode delimiter"
    " direction equation keep_aspect_ratio_policy locale mode nearest_mode padding_mode pattern"
    " pixel_format reduction round_mode update_rule value_string ";
static const char int_names[] =
    " align_corners allowzero antialias axis batch_axis batch_dims block_size blocksize broadcast"
    " ceil_mode center_point_box chunk_size count_include_pad detect_negative detect_positive dtype"
    " end exclude_outside exclusive fmod group hidden_size ignore_index input_forget interleaved"
    " inverse is_case_sensitive is_causal is_test k keepdims kv_num_heads largest layout"
    " linear_before_reset max_gram_length max_skip_count maxsplit min_gram_length new_axis"
    " noop_with_empty_axes num_groups num_heads num_outputs offset_group onesided output_datatype"
    " output_dtype output_height output_sequence output_width periodic precision q_num_heads"
    " qk_matmul_output_mode reverse rotary_embedding_dim sample_size sampling_ratio saturate"
    " select_last_index size softmax_precision sorted spatial start stash_type storage_order"
    " time_axis training_mode transA transB upper value_int ";
/* Of one kind in some operators, of another in others: the value's looks decide. */
static const char other_names[] = " to seed value p ";

static bool listed(const char *names, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = names; n && (at = strstr(at, name)); at++)
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

typedef struct parser {
    sn_graph *g;
    sn_node *node;
    sn_arena *arena;
    sonde_error *err;
} parser;

static bool whole(const char *s, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(s, &end, 10);
    return *s && *s != ' ' && !*end && !errno;
}

/* Digits, point and exponent only, so that no locale changes what is read. */
static bool real(const char *s, float *out)
{
    double value = 0, scale = 1;
    const char *p = s + (*s == '-' || *s == '+');
    int digits = 0;
    for (; *p >= '0' && *p <= '9'; p++, digits++)
        value = value * 10 + (*p - '0');
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits++)
            value += (*p - '0') * (scale /= 10);
    if (digits && (*p == 'e' || *p == 'E')) {
        int64_t exponent;
        if (!whole(p + 1, &exponent) || exponent < -400 || exponent > 400)
            return false;
        value *= pow(10, (double)exponent);
        p += strlen(p);
    }
    *out = (float)(*s == '-' ? -value : value);
    return digits && !*p;
}

static sonde_status wrong(parser *p, const char *name, const char *value, const char *expected)
{
    return sn_fail(p->err, SONDE_INVALID_ARGUMENT, "attribute '%s' is '%.100s', expected %s", name,
                   value, expected);
}

/* The elements of "1,2,3" or "[1,2,3]" as pieces of `value`, which is cut up. */
static sonde_status split(parser *p, const char *name, char *value, char ***list, size_t *n)
{
    size_t count = 1, len = strlen(value);
    if (len >= 2 && value[0] == '[' && value[len - 1] == ']') {
        value[len - 1] = 0;
        value++;
    }
    for (const char *c = value; *c; c++)
        count += *c == ',';
    if (count > MAX_ELEMENTS)
        return sn_fail(p->err, SONDE_LIMIT, "attribute '%s' has %zu elements; the maximum is %d",
                       name, count, MAX_ELEMENTS);
    *list = SN_NEW_N(p->arena, char *, count);
    if (!*list)
        return sn_fail_memory(p->err, count * sizeof **list);
    *n = 0;
    if (!*value)
        return SONDE_OK;
    for (char *at = value; at; (*n)++) {
        char *comma = strchr(at, ',');
        (*list)[*n] = at;
        if (comma)
            *comma++ = 0;
        at = comma;
    }
    return SONDE_OK;
}

static sonde_status read_ints(parser *p, char *value, sn_attr *a)
{
    char **list;
    SN_TRY(split(p, a->name, value, &list, &a->n));
    int64_t *ints = SN_NEW_N(p->arena, int64_t, a->n + 1);
    if (!ints)
        return sn_fail_memory(p->err, a->n * sizeof *ints);
    for (size_t i = 0; i < a->n; i++)
        if (!whole(list[i], &ints[i]))
            return wrong(p, a->name, list[i], "whole numbers such as 1,1");
    a->kind = SN_ATTR_INTS;
    a->ints = ints;
    return SONDE_OK;
}

static sonde_status read_floats(parser *p, char *value, sn_attr *a)
{
    char **list;
    SN_TRY(split(p, a->name, value, &list, &a->n));
    float *floats = SN_NEW_N(p->arena, float, a->n + 1);
    if (!floats)
        return sn_fail_memory(p->err, a->n * sizeof *floats);
    for (size_t i = 0; i < a->n; i++)
        if (!real(list[i], &floats[i]))
            return wrong(p, a->name, list[i], "numbers such as 0.5,1");
    a->kind = SN_ATTR_FLOATS;
    a->floats = floats;
    return SONDE_OK;
}

/* By its looks: a list, a whole number, a number, a text. */
static sonde_status read_any(parser *p, char *value, sn_attr *a)
{
    int64_t i;
    float f;
    if (*value == '[' || strchr(value, ','))
        return strpbrk(value, ".eE") ? read_floats(p, value, a) : read_ints(p, value, a);
    if (whole(value, &i)) {
        a->kind = SN_ATTR_INT;
        a->i = i;
    } else if (real(value, &f)) {
        a->kind = SN_ATTR_FLOAT;
        a->f = f;
    } else {
        a->kind = SN_ATTR_STRING;
        a->s = (sonde_string){.data = value, .size = strlen(value)};
    }
    return SONDE_OK;
}

static sonde_status read_value(parser *p, char *value, sn_attr *a)
{
    const char *name = a->name;
    if (listed(ints_names, name))
        return read_ints(p, value, a);
    if (listed(floats_names, name))
        return read_floats(p, value, a);
    if (listed(float_names, name)) {
        a->kind = SN_ATTR_FLOAT;
        return real(value, &a->f) ? SONDE_OK : wrong(p, name, value, "a number such as 0.5");
    }
    if (listed(int_names, name)) {
        a->kind = SN_ATTR_INT;
        return whole(value, &a->i) ? SONDE_OK : wrong(p, name, value, "a whole number");
    }
    if (listed(text_names, name)) {
        a->kind = SN_ATTR_STRING;
        a->s = (sonde_string){.data = value, .size = strlen(value)};
        return SONDE_OK;
    }
    if (!*p->node->domain && !listed(other_names, name))
        return sn_fail(p->err, SONDE_INVALID_ARGUMENT,
                       "unknown attribute '%.100s': no operator of ai.onnx has a number, list of "
                       "numbers or text "
                       "of this name",
                       name);
    return read_any(p, value, a);
}

sonde_status sn_op_parse_attributes(sn_graph *g, sn_node *node, const char *text, sonde_error *err)
{
    parser p = {.g = g, .node = node, .arena = g->arena, .err = err};
    char *copy = sn_arena_strdup(p.arena, text ? text : "");
    if (!copy)
        return sn_fail_memory(err, strlen(text));
    for (char *at = copy; at && *at;) {
        char *next = strchr(at, ';');
        if (next)
            *next++ = 0;
        char *equals = strchr(at, '=');
        if (!equals || equals == at)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "attributes are written name=value;name=value, not '%.100s'", at);
        *equals = 0;
        sn_attr a = {.name = at, .n = 1};
        if (sn_node_attr(node, at))
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "attribute '%.100s' is given twice", at);
        SN_TRY(read_value(&p, equals + 1, &a));
        SN_TRY(sn_node_set_attr(g, node, &a, err));
        at = next;
    }
    return SONDE_OK;
}
