/* SPDX-License-Identifier: Apache-2.0 */
/* How the builder works: thin calls over graph.h, plus the weight generator. Every value of a
 * weight is a hash of (stream, index), two per 64-bit word, so five million of them take
 * milliseconds and no value depends on another. A uniform distribution of the right variance does
 * what a normal one would: nothing here is trained. */
#include "zoo/builder.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"

static sn_allocator *alloc_of(const sn_builder *b)
{
    return b->model->ctx->alloc;
}

/* Notes the first failure. */
static bool ok(sn_builder *b, sonde_status st)
{
    if (*b->status == SONDE_OK)
        *b->status = st;
    return *b->status == SONDE_OK;
}

static bool got(sn_builder *b, const void *memory)
{
    return ok(b, memory ? SONDE_OK : sn_fail_memory(b->err, 0));
}

void sn_b_init(sn_builder *b, sn_model *m, int64_t opset, uint64_t seed, sonde_error *err)
{
    *b = (sn_builder){.model = m, .stream_own = seed * SN_MIX64_STEP + 1, .err = err};
    b->stream = &b->stream_own;
    b->status = &b->status_own;
    m->ir_version = opset > 19 ? 9 : 8;
    m->producer_name = "sonde zoo";
    m->producer_version = "1";
    m->graph_name = "main_graph";
    if (!m->graph &&
        !ok(b, sn_graph_new(&m->graph, &m->arena, alloc_of(b), "main_graph", NULL, err)))
        return;
    b->graph = m->graph;
    b->graph->origins = &m->origins;
    const sn_opset import = {.domain = "", .version = opset};
    got(b, sn_vec_push(&m->opsets, alloc_of(b), import) ? b : NULL);
}

void sn_b_init_body(sn_builder *b, sn_builder *outer, const char *name)
{
    *b = (sn_builder){
        .model = outer->model, .stream = outer->stream, .err = outer->err, .status = outer->status};
    if (!sn_b_ok(b))
        return;
    if (ok(b, sn_graph_new(&b->graph, &b->model->arena, alloc_of(b), name, outer->graph, b->err)))
        b->graph->origins = outer->graph->origins;
}

/* ------------------------------------------------------------------ names */
const char *sn_b_name(sn_builder *b, const char *path, const char *leaf)
{
    if (!sn_b_ok(b))
        return NULL;
    const char *name = sn_arena_printf(&b->model->arena, "%s.%s", path, leaf);
    return got(b, name) ? name : NULL;
}

/* "trunk.a.0.1" ► "/trunk/a/a.0/a.0.1": a child known only by its number carries its parent's
 * name, and a list of modules shows only as that. */
static const char *scope_name(sn_builder *b, const char *path, const char *op_type)
{
    char buf[256];
    size_t n = 0;
    const char *named = NULL; /* where in `path` the nearest name begins */
    for (const char *p = path; *p;) {
        const size_t len = strcspn(p, ".");
        const bool number = named && isdigit((unsigned char)*p) && strspn(p, "0123456789") == len;
        if (!number)
            named = p;
        if (!number && b->list && strlen(b->list) == len && strncmp(b->list, p, len) == 0) {
            p += len + (p[len] == '.');
            continue;
        }
        const int w = snprintf(buf + n, sizeof buf - n, "/%.*s", (int)(p + len - named), named);
        if (w < 0 || (size_t)w >= sizeof buf - n)
            break;
        n += (size_t)w;
        p += len + (p[len] == '.');
    }
    const char *name = sn_arena_printf(&b->model->arena, "%.*s/%s", (int)n, buf, op_type);
    return got(b, name) ? name : NULL;
}

/* The k-th further node of one type on one path is "…/Mul_k", as torch.onnx counts them. */
static const char *count_name(sn_builder *b, const char *name, const char *op_type)
{
    const size_t n = strlen(name);
    int before = 0;
    for (const sn_node *node = b->graph->first; node; node = node->next)
        before += strcmp(node->op_type, op_type) == 0 && strncmp(node->name, name, n) == 0 &&
                  (node->name[n] == 0 || node->name[n] == '_');
    if (before == 0)
        return name;
    name = sn_arena_printf(&b->model->arena, "%s_%d", name, before);
    return got(b, name) ? name : NULL;
}

/* ------------------------------------------------------------------ values */
sn_dim sn_b_symbol(sn_builder *b, const char *name, int64_t default_size)
{
    if (!sn_b_ok(b))
        return SN_DIM_UNKNOWN;
    sn_arena *arena = &b->model->arena;
    const uint32_t id = sn_graph_symbol(b->model->graph, name);
    const sn_meta meta = {.key = sn_arena_printf(arena, "sonde.default.%s", name),
                          .value = sn_arena_printf(arena, "%lld", (long long)default_size)};
    const bool fine =
        id && meta.key && meta.value && sn_vec_push(&b->model->metadata, alloc_of(b), meta);
    return got(b, fine ? b : NULL) ? sn_dim_symbol(id) : SN_DIM_UNKNOWN;
}

static bool set_type(sn_builder *b, sn_value *v, sn_dtype dtype, const sn_dim *dims, int rank)
{
    const sn_type type = {.kind = SN_KIND_TENSOR, .dtype = dtype, .rank = rank, .dims = dims};
    return ok(b, sn_type_copy(&v->fact.type, &type, &b->model->arena, b->err));
}

sn_value *sn_b_input(sn_builder *b, const char *name, sn_dtype dtype, const sn_dim *dims, int rank)
{
    sn_value *v = NULL;
    if (!sn_b_ok(b) || !ok(b, sn_graph_add_value(b->graph, name, &v, b->err)) ||
        !set_type(b, v, dtype, dims, rank) || !ok(b, sn_graph_add_input(b->graph, v, b->err)))
        return NULL;
    return v;
}

/* `name` is copied. */
static void publish(sn_builder *b, sn_value *v, const char *name)
{
    const char *copy = sn_arena_strdup(&b->model->arena, name);
    if (!got(b, copy))
        return;
    v->name = copy;
    ok(b, sn_graph_add_output(b->graph, v, b->err));
}

void sn_b_output(sn_builder *b, sn_value *v, const char *name, sn_dtype dtype, const sn_dim *dims,
                 int rank)
{
    if (sn_b_ok(b) && set_type(b, v, dtype, dims, rank))
        publish(b, v, name);
}

void sn_b_output_sequence(sn_builder *b, sn_value *v, const char *name, sn_dtype dtype)
{
    if (!sn_b_ok(b))
        return;
    const sn_type elem = {.kind = SN_KIND_TENSOR, .dtype = dtype, .rank = -1};
    const sn_type type = {.kind = SN_KIND_SEQUENCE, .elem = &elem};
    if (ok(b, sn_type_copy(&v->fact.type, &type, &b->model->arena, b->err)))
        publish(b, v, name);
}

sn_value *sn_b_outer(sn_builder *body, const sn_value *outer)
{
    if (!sn_b_ok(body))
        return NULL;
    for (size_t i = 0; i < body->graph->values.n; i++)
        if (strcmp(body->graph->values.data[i]->name, outer->name) == 0)
            return body->graph->values.data[i];
    sn_value *v = NULL;
    return ok(body, sn_graph_add_value(body->graph, outer->name, &v, body->err)) ? v : NULL;
}

/* The memory is owned by the model. */
sn_value *sn_b_constant(sn_builder *b, const char *name, sn_dtype dtype, const int64_t *dims,
                        int rank, void **data)
{
    if (!sn_b_ok(b) || !name)
        return NULL;
    size_t bytes = 0;
    sn_tensor *t = SN_NEW(&b->model->arena, sn_tensor);
    const char *copy = sn_arena_strdup(&b->model->arena, name);
    if (!got(b, t) || !got(b, copy))
        return NULL;
    t->dtype = dtype;
    t->rank = rank;
    for (int i = 0; i < rank; i++)
        t->dims[i] = dims[i];
    if (!sn_tensor_bytes(dtype, dims, rank, &bytes)) {
        ok(b, sn_fail(b->err, SONDE_INTERNAL, "zoo: '%s' is too large", name));
        return NULL;
    }
    sn_buffer *memory = sn_buffer_new(alloc_of(b), bytes);
    if (!got(b, memory))
        return NULL;
    if (!sn_vec_push(&b->model->buffers.list, alloc_of(b), memory)) {
        sn_buffer_unref(memory);
        got(b, NULL);
        return NULL;
    }
    t->data = *data = memory->data;
    t->bytes = bytes;
    sn_value *v = NULL;
    if (!ok(b, sn_graph_add_constant(b->graph, copy, t, &v, b->err)))
        return NULL;
    v->is_initializer = true;
    return v;
}

static void fill_uniform(float *data, int64_t n, uint64_t key, float center, float half_width)
{
    const float scale = half_width * 0x1p-31f;
    int64_t i = 0;
    for (; i + 2 <= n; i += 2) {
        const uint64_t z = sn_mix64(key + (uint64_t)i * SN_MIX64_STEP);
        data[i] = center + scale * (float)(int32_t)(uint32_t)z;
        data[i + 1] = center + scale * (float)(int32_t)(uint32_t)(z >> 32);
    }
    if (i < n)
        data[i] =
            center + scale * (float)(int32_t)(uint32_t)sn_mix64(key + (uint64_t)i * SN_MIX64_STEP);
}

sn_value *sn_b_uniform(sn_builder *b, const char *name, const int64_t *dims, int rank, float center,
                       float half_width)
{
    void *data = NULL;
    int64_t n = 0;
    sn_value *v = sn_b_constant(b, name, SONDE_DTYPE_F32, dims, rank, &data);
    if (!v || !sn_dims_count(dims, rank, &n))
        return NULL;
    *b->stream += SN_MIX64_STEP;
    fill_uniform(data, n, sn_mix64(*b->stream), center, half_width);
    return v;
}

sn_value *sn_b_weight(sn_builder *b, const char *name, const int64_t *dims, int rank,
                      int64_t fan_in)
{
    /* Variance 2 / fan_in; a uniform distribution of half width h has h² / 3. */
    return sn_b_uniform(b, name, dims, rank, 0.0f, sqrtf(6.0f / (float)fan_in));
}

sn_value *sn_b_ints(sn_builder *b, const char *name, const int64_t *values, int64_t n, int rank)
{
    void *data = NULL;
    sn_value *v = sn_b_constant(b, name, SONDE_DTYPE_I64, &n, rank, &data);
    if (v)
        memcpy(data, values, (size_t)n * sizeof *values);
    return v;
}

sn_value *sn_b_bool(sn_builder *b, const char *name, bool value)
{
    void *data = NULL;
    sn_value *v = sn_b_constant(b, name, SONDE_DTYPE_BOOL, NULL, 0, &data);
    if (v)
        *(uint8_t *)data = value;
    return v;
}

sn_value *sn_b_strings(sn_builder *b, const char *name, const char *const *texts, int64_t n)
{
    void *data = NULL;
    sn_value *v = sn_b_constant(b, name, SONDE_DTYPE_STRING, &n, 1, &data);
    if (!v)
        return NULL;
    sonde_string *elems = data;
    for (int64_t i = 0; i < n; i++)
        elems[i] = (sonde_string){.data = texts[i], .size = strlen(texts[i])};
    return v;
}

/* ------------------------------------------------------------------ nodes */
static bool set_attr(sn_builder *b, sn_node *node, const sn_attr *attr)
{
    sn_attr own = *attr;
    if (attr->kind == SN_ATTR_INTS) {
        int64_t *ints = SN_NEW_N(&b->model->arena, int64_t, attr->n ? attr->n : 1);
        if (!got(b, ints))
            return false;
        memcpy(ints, attr->ints, attr->n * sizeof *ints);
        own.ints = ints;
    }
    return ok(b, sn_node_set_attr(b->graph, node, &own, b->err));
}

/* A node without its outputs; NULL after a failure. */
static sn_node *add_node(sn_builder *b, const char *name, const char *op_type, sn_value *const *in,
                         uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs, uint32_t n_out)
{
    sn_node *node = NULL;
    if (!ok(b, sn_graph_add_node(b->graph, NULL, "", op_type, name, n_in, n_out, &node, b->err)))
        return NULL;
    node->opset = (int32_t)b->model->opsets.data[0].version;
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i])
            sn_node_set_input(node, i, in[i]);
    for (uint32_t i = 0; i < n_attrs; i++)
        if (!set_attr(b, node, &attrs[i]))
            return NULL;
    return node;
}

bool sn_b_multi(sn_builder *b, const char *path, const char *op_type, sn_value *const *in,
                uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs, sn_value **out,
                uint32_t n_out)
{
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = NULL;
    if (!sn_b_ok(b))
        return false;
    const char *name = scope_name(b, path, op_type);
    if (!name || !(name = count_name(b, name, op_type)))
        return false;
    sn_node *node = add_node(b, name, op_type, in, n_in, attrs, n_attrs, n_out);
    if (!node)
        return false;
    for (uint32_t i = 0; i < n_out; i++) {
        const char *value = sn_arena_printf(&b->model->arena, "%s_output_%u", name, i);
        if (!got(b, value) || !ok(b, sn_graph_add_value(b->graph, value, &out[i], b->err)))
            return false;
        sn_node_set_output(node, i, out[i]);
    }
    return true;
}

sn_value *sn_b_op(sn_builder *b, const char *path, const char *op_type, sn_value *const *in,
                  uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs)
{
    sn_value *out = NULL;
    return sn_b_multi(b, path, op_type, in, n_in, attrs, n_attrs, &out, 1) ? out : NULL;
}

sn_value *sn_b_node(sn_builder *b, const char *name, const char *op_type, sn_value *const *in,
                    uint32_t n_in, const sn_attr *attrs, uint32_t n_attrs, const char *out_name)
{
    sn_value *out = NULL;
    if (!sn_b_ok(b))
        return NULL;
    sn_node *node = add_node(b, name, op_type, in, n_in, attrs, n_attrs, 1);
    if (!node || !ok(b, sn_graph_add_value(b->graph, out_name, &out, b->err)))
        return NULL;
    sn_node_set_output(node, 0, out);
    return out;
}

sn_value *sn_b_scalar(sn_builder *b, const char *path, float value)
{
    if (!sn_b_ok(b))
        return NULL;
    sn_tensor *t = SN_NEW(&b->model->arena, sn_tensor);
    float *data = SN_NEW(&b->model->arena, float);
    if (!got(b, t) || !got(b, data))
        return NULL;
    *data = value;
    *t = (sn_tensor){.dtype = SONDE_DTYPE_F32, .data = data, .bytes = sizeof *data};
    return sn_b_op(b, path, "Constant", NULL, 0, SN_ATTRS(sn_a_tensor("value", t)));
}

sn_value *sn_b_conv(sn_builder *b, sn_value *x, const char *path, const sn_conv_spec *spec)
{
    const int64_t groups = spec->groups ? spec->groups : 1, k = spec->kernel, p = (k - 1) / 2;
    const int64_t dims[4] = {spec->out, spec->in / groups, k, k};
    sn_value *w = sn_b_weight(b, sn_b_name(b, path, "weight"), dims, 4, dims[1] * k * k);
    sn_value *bias =
        spec->bias ? sn_b_uniform(b, sn_b_name(b, path, "bias"), dims, 1, 0.0f, 0.1f) : NULL;
    const sn_attr attrs[] = {
        sn_a_ints("dilations", (const int64_t[]){1, 1}, 2), sn_a_int("group", groups),
        sn_a_ints("kernel_shape", (const int64_t[]){k, k}, 2),
        sn_a_ints("pads", (const int64_t[]){p, p, p, p}, 4),
        sn_a_ints("strides", (const int64_t[]){spec->stride, spec->stride}, 2)};
    return sn_b_op(b, path, "Conv", (sn_value *const[]){x, w, bias}, spec->bias ? 3 : 2, attrs, 5);
}

sn_value *sn_b_batch_norm(sn_builder *b, sn_value *x, const char *path, int64_t channels,
                          float gamma)
{
    /* Leaf, centre and half width, in the order of the operator's inputs. */
    const struct {
        const char *leaf;
        float center, half;
    } parts[] = {{"weight", gamma, 0.1f},
                 {"bias", 0.0f, 0.1f},
                 {"running_mean", 0.0f, 0.1f},
                 {"running_var", 1.0f, 0.25f}};
    sn_value *in[5] = {x};
    for (int i = 0; i < 4; i++)
        in[i + 1] = sn_b_uniform(b, sn_b_name(b, path, parts[i].leaf), &channels, 1,
                                 parts[i].center, parts[i].half);
    return sn_b_op(b, path, "BatchNormalization", in, 5,
                   SN_ATTRS(sn_a_float("epsilon", 1e-5f), sn_a_float("momentum", 0.9f),
                            sn_a_int("training_mode", 0)));
}

sn_value *sn_b_linear(sn_builder *b, sn_value *x, const char *path, int64_t in, int64_t out)
{
    const int64_t dims[2] = {out, in};
    sn_value *w = sn_b_weight(b, sn_b_name(b, path, "weight"), dims, 2, in);
    sn_value *bias = sn_b_uniform(b, sn_b_name(b, path, "bias"), dims, 1, 0.0f, 0.1f);
    return sn_b_op(
        b, path, "Gemm", SN_IN(x, w, bias),
        SN_ATTRS(sn_a_float("alpha", 1.0f), sn_a_float("beta", 1.0f), sn_a_int("transB", 1)));
}

sn_value *sn_b_project(sn_builder *b, sn_value *x, const char *path, int64_t in, int64_t out)
{
    const int64_t dims[2] = {in, out};
    sn_value *w = sn_b_weight(b, sn_b_name(b, path, "weight"), dims, 2, in);
    sn_value *bias = sn_b_uniform(b, sn_b_name(b, path, "bias"), &out, 1, 0.0f, 0.1f);
    sn_value *y = sn_b_op(b, path, "MatMul", SN_IN(x, w), SN_NO_ATTRS);
    return sn_b_op(b, path, "Add", SN_IN(bias, y), SN_NO_ATTRS);
}
