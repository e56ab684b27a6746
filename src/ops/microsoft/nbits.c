/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits of com.microsoft: activations times weights quantised to 2, 4 or 8 bits in blocks. */
#include "compute/nbits.h"
#include "ops/shared/converted.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS, N_IN };

typedef struct nbits_params {
    int64_t n, k, bits, block;
} nbits_params;

typedef struct nbits_bound {
    sn_nbits_plan plan;
    sn_piece in[N_IN], y; /* in f32 */
    sn_piece core;
} nbits_bound;

static sonde_status prepare_nbits(sn_prep *p)
{
    nbits_params *m = p->params;
    int64_t prepacked;
    SN_TRY(sn_prep_int(p, "N", 0, &m->n));
    SN_TRY(sn_prep_int(p, "K", 0, &m->k));
    SN_TRY(sn_prep_int(p, "bits", 4, &m->bits));
    SN_TRY(sn_prep_int(p, "block_size", 0, &m->block));
    SN_TRY(sn_prep_int(p, "weight_prepacked", 0, &prepacked));
    if (m->n < 0 || m->k < 1 || m->n > INT32_MAX || m->k > INT32_MAX)
        return sn_prep_fail(p, "N is %lld and K is %lld", (long long)m->n, (long long)m->k);
    if (m->bits != 2 && m->bits != 4 && m->bits != 8)
        return sn_prep_fail(p, "weights of %lld bits are not supported", (long long)m->bits);
    if (m->block < 16 || m->block > INT32_MAX || (m->block & (m->block - 1)))
        return sn_prep_fail(p, "attribute 'block_size' is %lld", (long long)m->block);
    if (prepacked)
        return sn_prep_fail(p, "weights packed for another device are not supported");
    return SONDE_OK;
}

static sonde_status infer_nbits(sn_infer *c)
{
    const nbits_params *m = c->params;
    const sn_type *a = &c->in[A]->type;
    sn_dim dims[SN_MAX_RANK];
    if (a->rank < 0)
        return sn_infer_tensor(c, 0, a->dtype, NULL, -1);
    if (a->rank == 0 || (sn_dim_known(a->dims[a->rank - 1]) && a->dims[a->rank - 1] != m->k))
        return sn_infer_fail(c, "the last dimension of A is not K = %lld", (long long)m->k);
    memcpy(dims, a->dims, sizeof(sn_dim) * (size_t)a->rank);
    dims[a->rank - 1] = m->n;
    return sn_infer_tensor(c, 0, a->dtype, dims, a->rank);
}

static sonde_status expect(sn_bind *b, uint32_t i, sn_dtype t, int64_t count, const char *what)
{
    int64_t n = 0;
    if (b->in[i]->type.dtype != t || !sn_type_count(&b->in[i]->type, &n) || n != count)
        return sn_bind_fail(b, SONDE_INVALID_MODEL, "%s must be %lld numbers of type %s", what,
                            (long long)count, sn_dtype_onnx_name(t));
    return SONDE_OK;
}

static sonde_status bind_nbits(sn_bind *b)
{
    const nbits_params *m = b->params;
    nbits_bound *k = SN_NEW(b->arena, nbits_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    const sn_type *a = &b->in[A]->type;
    int64_t total = 0;
    if (!sn_type_count(a, &total) || sn_compute_float(a->dtype) != SONDE_DTYPE_F32)
        return sn_bind_fail(b, SONDE_UNSUPPORTED, "element type %s is not supported",
                            sn_dtype_onnx_name(a->dtype));
    SN_TRY(sn_nbits_plan_make(&k->plan, total / m->k, m->n, m->k, (int)m->bits, m->block,
                              b->cpu_flags, b->threads, b->err));
    const sn_nbits_plan *p = &k->plan;
    SN_TRY(expect(b, B, SONDE_DTYPE_U8, m->n * p->blocks * p->blob, "B"));
    SN_TRY(expect(b, SCALES, a->dtype, m->n * p->blocks, "scales"));
    const bool zeros = b->n_in > ZEROS && b->in[ZEROS];
    if (zeros && b->in[ZEROS]->type.dtype == SONDE_DTYPE_U8)
        SN_TRY(expect(b, ZEROS, SONDE_DTYPE_U8, m->n * p->zero_row, "zero_points"));
    else if (zeros)
        SN_TRY(expect(b, ZEROS, a->dtype, m->n * p->blocks, "zero_points"));
    if (b->n_in > GROUPS && b->in[GROUPS]) {
        /* Writers pad it to whole blocks. */
        int64_t n = 0;
        if (b->in[GROUPS]->type.dtype != SONDE_DTYPE_I32 ||
            !sn_type_count(&b->in[GROUPS]->type, &n) || n < m->k)
            return sn_bind_fail(b, SONDE_INVALID_MODEL,
                                "g_idx must be at least K numbers of type i32");
    }
    if (b->n_in > BIAS && b->in[BIAS])
        SN_TRY(expect(b, BIAS, a->dtype, m->n, "bias"));
    for (uint32_t i = 0; i < b->n_in && i < N_IN; i++)
        if (b->in[i] && sn_is_half(b->in[i]->type.dtype))
            k->in[i] = sn_converted_carve(&b->workspace, b->in[i], SONDE_DTYPE_F32);
    k->y = sn_converted_carve(&b->workspace, &b->out[0], SONDE_DTYPE_F32);
    k->core = sn_carve_bytes(&b->workspace, p->workspace_bytes);
    b->bound = k;
    b->kernel = p->name;
    b->flops = p->flops;
    return SONDE_OK;
}

static const float *input(const sn_step *s, const sn_frame *f, uint32_t i)
{
    const nbits_bound *k = s->bound;
    return sn_converted_in(s, f, i, SONDE_DTYPE_F32, k->in[i]);
}

static sonde_status run_nbits(const sn_step *s, sn_frame *f)
{
    const nbits_bound *k = s->bound;
    sn_nbits_args a = {.a = input(s, f, A),
                       .w = sn_in(s, f, B)->data,
                       .scales = input(s, f, SCALES),
                       .bias = input(s, f, BIAS),
                       .y = sn_converted_out(s, f, 0, SONDE_DTYPE_F32, k->y)};
    if (sn_has(s, ZEROS) && sn_in(s, f, ZEROS)->dtype == SONDE_DTYPE_U8)
        a.zeros = sn_in(s, f, ZEROS)->data;
    else
        a.zeros_f32 = input(s, f, ZEROS);
    if (sn_has(s, GROUPS)) {
        a.groups = sn_in(s, f, GROUPS)->data;
        for (int64_t i = 0; i < k->plan.k; i++)
            if (a.groups[i] < 0 || a.groups[i] >= k->plan.blocks)
                return sn_run_fail(s, f, "g_idx has %d, there are %lld blocks", (int)a.groups[i],
                                   (long long)k->plan.blocks);
    }
    sn_nbits_run(&k->plan, &a, sn_piece_ptr(f, k->core), f->pool);
    sn_converted_done(s, f, 0, SONDE_DTYPE_F32, k->y);
    return SONDE_OK;
}

const sn_op sn_op_ms_matmul_nbits[] = {
    {.name = "MatMulNBits",
     .domain = SN_MS_DOMAIN,
     .since = 1,
     .min_in = 3,
     .max_in = N_IN,
     .min_out = 1,
     .max_out = 1,
     .params_size = sizeof(nbits_params),
     .prepare = prepare_nbits,
     .infer = infer_nbits,
     .bind = bind_nbits,
     .run = run_nbits,
     .types = "f32 f16 bf16",
     .attributes = "K N accuracy_level bits block_size weight_prepacked"},
    {.name = NULL}};
