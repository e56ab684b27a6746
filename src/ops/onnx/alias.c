/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that are another one under a second name or number: those com.microsoft has of the
 * standard domain, and first versions that later ones cover. Each phase hands over to the other
 * descriptor with that descriptor's own params; nothing is written twice. */
#include <string.h>

#include "ops/framework/op.h"

typedef struct alias_params {
    const sn_op *target;
    void *inner;
} alias_params;

typedef struct alias_bound {
    sonde_status (*run)(const sn_step *, sn_frame *);
    const void *inner;
} alias_bound;

static const struct {
    const char *domain, *name;          /* of the node */
    const char *target_domain, *target; /* what it stands for */
    int64_t version;
} aliases[] = {
    {SN_MS_DOMAIN, "FusedConv", "sonde", "FusedConv", 1},
    {SN_MS_DOMAIN, "QuantizeLinear", "", "QuantizeLinear", 21},
    {SN_MS_DOMAIN, "DequantizeLinear", "", "DequantizeLinear", 21},
    {SN_MS_DOMAIN, "Trilu", "", "Trilu", 14},
    {SN_MS_DOMAIN, "Gelu", "", "Gelu", 20},
    {SN_MS_DOMAIN, "GatherND", "", "GatherND", 13},
    {SN_MS_DOMAIN, "Pad", "", "Pad", 13},
    {"", "Gemm", "", "Gemm", 7},
    {"", "Selu", "", "Selu", 6},
    {"", "RNN", "", "RNN", 7},
    {"", "GRU", "", "GRU", 7},
    {"", "LSTM", "", "LSTM", 7},
};

static sonde_status prepare_alias(sn_prep *p)
{
    alias_params *a = p->params;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i].name, p->node->op_type) == 0 &&
            strcmp(aliases[i].domain, p->node->domain) == 0)
            a->target =
                sn_op_find(aliases[i].target_domain, aliases[i].target, aliases[i].version, NULL);
    if (!a->target)
        return sn_prep_fail(p, "the operator it is an alias of is missing");
    if (a->target->params_size > 0) {
        a->inner = sn_arena_alloc(p->arena, a->target->params_size, _Alignof(max_align_t));
        if (!a->inner)
            return sn_fail_memory(p->err, a->target->params_size);
    }
    sn_prep inner = *p;
    inner.params = a->inner;
    return a->target->prepare ? a->target->prepare(&inner) : SONDE_OK;
}

static sonde_status infer_alias(sn_infer *c)
{
    const alias_params *a = c->params;
    sn_infer inner = *c;
    inner.params = a->inner;
    return a->target->infer(&inner);
}

static sonde_status pack_alias(sn_pack_request *p)
{
    const alias_params *a = p->params;
    if (!a->target->pack)
        return SONDE_OK;
    p->params = a->inner;
    sonde_status st = a->target->pack(p);
    p->params = a;
    return st;
}

static sonde_status bind_alias(sn_bind *b)
{
    const alias_params *a = b->params;
    alias_bound *k = SN_NEW(b->arena, alias_bound);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    sonde_status (*own)(const sn_step *, sn_frame *) = b->run;
    b->params = a->inner;
    b->run = a->target->run;
    sonde_status st = a->target->bind ? a->target->bind(b) : SONDE_OK;
    k->run = b->run;
    k->inner = b->bound;
    b->params = a;
    b->run = own;
    b->bound = k;
    return st;
}

static sonde_status run_alias(const sn_step *s, sn_frame *f)
{
    const alias_params *a = s->params;
    const alias_bound *k = s->bound;
    sn_step inner = *s;
    inner.params = a->inner;
    inner.bound = k->inner;
    return k->run(&inner, f);
}

static const sn_op_signature *in_blocks_alias(const sn_node *node, const void *params, int block)
{
    const alias_params *a = params;
    return a->target->in_blocks ? a->target->in_blocks(node, a->inner, block) : NULL;
}

#define ALIAS(symbol, NAME, DOMAIN, UNTIL, MIN_IN, MAX_IN, MIN_OUT, MAX_OUT, ...)                  \
    const sn_op symbol[] = {{.name = NAME,                                                         \
                             .domain = DOMAIN,                                                     \
                             .since = 1,                                                           \
                             .until = UNTIL,                                                       \
                             .min_in = MIN_IN,                                                     \
                             .max_in = MAX_IN,                                                     \
                             .min_out = MIN_OUT,                                                   \
                             .max_out = MAX_OUT,                                                   \
                             .params_size = sizeof(alias_params),                                  \
                             .prepare = prepare_alias,                                             \
                             .infer = infer_alias,                                                 \
                             .pack = pack_alias,                                                   \
                             .bind = bind_alias,                                                   \
                             .run = run_alias,                                                     \
                             .in_blocks = in_blocks_alias,                                         \
                             __VA_ARGS__},                                                         \
                            {.name = NULL}};
#define MS_ALIAS(symbol, NAME, MIN_IN, MAX_IN, ...)                                                \
    ALIAS(symbol, NAME, SN_MS_DOMAIN, 0, MIN_IN, MAX_IN, 1, 1, __VA_ARGS__)
MS_ALIAS(sn_op_ms_fused_conv, "FusedConv", 2, 4, .types = "f32 f64 f16")
MS_ALIAS(sn_op_ms_quantize_linear, "QuantizeLinear", 2, 3, .flags = SN_OP_ELEMENTWISE,
         .types = "f32 f16")
MS_ALIAS(sn_op_ms_dequantize_linear, "DequantizeLinear", 2, 3, .flags = SN_OP_ELEMENTWISE,
         .types = "i8 u8 i16 u16 i32 i4 u4")
MS_ALIAS(sn_op_ms_trilu, "Trilu", 1, 2, .flags = SN_OP_INPLACE0, .types = "all")
MS_ALIAS(sn_op_ms_gelu, "Gelu", 1, 1, .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE,
         .half = SN_HALF_IN_F32, .types = "f32 f64 f16 bf16")
MS_ALIAS(sn_op_ms_gather_nd, "GatherND", 2, 2, .types = "all")
MS_ALIAS(sn_op_ms_pad, "Pad", 2, 3, .types = "f32 f64 f16")
ALIAS(sn_op_gemm_1, "Gemm", "", 6, 3, 3, 1, 1, .half = SN_HALF_IN_F32, .narrow_in = 1 << 1,
      .types = "f32 f64 f16")
ALIAS(sn_op_selu_1, "Selu", "", 5, 1, 1, 1, 1, .flags = SN_OP_INPLACE0 | SN_OP_ELEMENTWISE,
      .half = SN_HALF_IN_F32, .types = "f32 f64 f16")
ALIAS(sn_op_rnn_1, "RNN", "", 6, 3, 6, 0, 2, .types = "f32 f64 f16")
ALIAS(sn_op_gru_1, "GRU", "", 6, 3, 6, 0, 2, .types = "f32 f64 f16")
ALIAS(sn_op_lstm_1, "LSTM", "", 6, 3, 8, 0, 3, .types = "f32 f64 f16")
