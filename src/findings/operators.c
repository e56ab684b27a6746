/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the operators: which take the time, and what keeps them from being faster. A share of
 * the run says how much a remedy could bring. */
#include <string.h>

#include "findings/check.h"
#include "findings/plain_kernel.h"

void sn_check_what_dominates(sn_case *c)
{
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->ops.rows.n && w.n < SN_FEW; i++) {
        const sn_prof_row *r = &c->ops.rows.data[i];
        if (!r->bracket && r->share >= 0.01)
            sn_few_add(&w, r->name, r->share);
    }
    const sn_prof_stats *wall = &c->ops.wall_ns;
    sn_found(c, SONDE_GOOD, 0, "operators",
             SN_SAY(c, "a run of %.0f steps takes %s (mean %s, p99 %s)", c->ops.ops,
                    sn_say_time(c, wall->p50), sn_say_time(c, wall->mean),
                    sn_say_time(c, wall->p99)),
             sn_say_few(c, &w), "");
}

void sn_check_plain_kernels(sn_case *c)
{
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->kernels.rows.n; i++) {
        const sn_prof_row *r = &c->kernels.rows.data[i];
        if (!r->bracket && sn_kernel_is_plain(r->kernel))
            sn_few_add(&w, r->kernel, r->share);
    }
    if (w.share >= 0.01)
        sn_found(c, SONDE_SLOW, w.share, "kernels",
                 SN_SAY(c, "%.1f %% of the time is spent in plain C kernels", w.share * 100),
                 sn_say_few(c, &w),
                 "use all instruction sets (no --cpu), f32 instead of f64, or a shape that has a "
                 "SIMD kernel");
}

/* Transposes of the model's own; changes of layout are the doctor's to look at. */
void sn_check_moving_data(sn_case *c)
{
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->ops.rows.n; i++)
        if (strcmp(c->ops.rows.data[i].op_type, "Transpose") == 0)
            sn_few_add(&w, "Transpose", c->ops.rows.data[i].share);
    if (w.share >= 0.05)
        sn_found(c, SONDE_SLOW, w.share, "layout",
                 SN_SAY(c, "%.1f %% of the time is spent in transposes", w.share * 100),
                 sn_say_few(c, &w),
                 "export the model in the layout of the operators (NCHW), and remove pairs of "
                 "transposes");
}

void sn_check_tiny_steps(sn_case *c)
{
    double calls = 0, share = 0;
    for (size_t i = 0; i < c->nodes.rows.n; i++) {
        const sn_prof_row *r = &c->nodes.rows.data[i];
        if (r->bracket || !(r->calls > 0) || r->per_call_p50_ns >= 1000)
            continue;
        calls += r->calls;
        share += r->share;
    }
    if (calls >= 20 && calls > 0.5 * c->ops.ops)
        sn_found(c, SONDE_NOTE, share, "small steps",
                 SN_SAY(c, "%.0f of %.0f steps take less than a microsecond", calls, c->ops.ops),
                 SN_SAY(c, "together %.1f %% of the run", share * 100),
                 "the overhead of starting steps dominates: simplify the graph when exporting, or "
                 "run larger batches");
}

void sn_check_below_roofline(sn_case *c)
{
    sn_few w = {.n = 0};
    bool known = false;
    for (size_t i = 0; i < c->nodes.rows.n; i++) {
        const sn_prof_row *r = &c->nodes.rows.data[i];
        const double roofline = sn_prof_roofline(c->p, r);
        known |= roofline >= 0;
        if (roofline >= 0 && roofline < 0.2 && r->share >= 0.01)
            sn_few_add(&w, sn_row_node(r), r->share);
    }
    if (w.share >= 0.05)
        sn_found(c, SONDE_NOTE, w.share, "roofline",
                 SN_SAY(c,
                        "%.1f %% of the time is spent in operators below 20 %% of the machine's "
                        "peak",
                        w.share * 100),
                 sn_say_few(c, &w),
                 "'sonde op MODEL --node NAME' measures one of them in every variant");
    if (!known && !sn_is_foreign(c->p))
        sn_found(c, SONDE_NOTE, 0, "roofline", "the percentage of the machine's peak is unknown",
                 "there are no measured peaks for this number of threads",
                 "sonde doctor --calibrate");
}

/* The peak a row is nearest to: "compute", "l2", "l3", "memory"; "" for none. */
static const char *bound_of(const sn_case *c, const sn_prof_row *r)
{
    const char *bound = "";
    if (!r->bracket && r->calls > 0)
        (void)sn_prof_attained(c->p, r->peak_ns / r->calls, r->bytes / r->calls,
                               r->mean_ns / r->calls, &bound);
    return bound;
}

void sn_check_bound_by_memory(sn_case *c)
{
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->ops.rows.n; i++) {
        const sn_prof_row *r = &c->ops.rows.data[i];
        const char *bound = bound_of(c, r);
        if (sn_prof_roofline(c->p, r) >= 0.5 &&
            (strcmp(bound, "memory") == 0 || strcmp(bound, "l3") == 0))
            sn_few_add(&w, r->name, r->share);
    }
    if (w.share >= 0.1)
        sn_found(c, SONDE_NOTE, 0, "bandwidth",
                 SN_SAY(c, "%.1f %% of the time is limited by memory bandwidth, not by arithmetic",
                        w.share * 100),
                 sn_say_few(c, &w),
                 "use larger batches, which reuse weights, or smaller dtypes, which move fewer "
                 "bytes");
}

static bool computes_halves(const sn_prof_row *r)
{
    const uint32_t halves =
        1u << SN_ARITH_BF16_TILES | 1u << SN_ARITH_F16_TILES | 1u << SN_ARITH_F16_SPLIT;
    return (r->arithmetic & halves) != 0;
}

/* 16-bit floats go in, and products are of f32. */
static bool widens_halves(const sn_case *c, const sn_prof_row *r)
{
    const sn_prof_step *step = sn_row_step(c, r);
    const char *dtype = step && step->n_inputs ? step->inputs[0].dtype : "";
    return (strcmp(dtype, "f16") == 0 || strcmp(dtype, "bf16") == 0) &&
           r->arithmetic == 1u << SN_ARITH_F32;
}

/* Where products are of 16-bit floats, f32 would be slower, whatever the other steps do. */
void sn_check_half_floats(sn_case *c)
{
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->ops.rows.n; i++)
        if (computes_halves(&c->ops.rows.data[i]))
            return;
    for (size_t i = 0; i < c->ops.rows.n; i++)
        if (widens_halves(c, &c->ops.rows.data[i]))
            sn_few_add(&w, c->ops.rows.data[i].name, c->ops.rows.data[i].share);
    if (w.share >= 0.05)
        sn_found(c, SONDE_SLOW, w.share, "types",
                 SN_SAY(c,
                        "%.1f %% of the time is spent on 16-bit floats, which are computed in f32",
                        w.share * 100),
                 sn_say_few(c, &w),
                 "use the model in f32: it is faster on this processor, but needs more memory");
}

/* Elementwise steps that a pass could have put behind a Conv or a MatMul. */
void sn_check_not_fused(sn_case *c)
{
    static const char *const light[] = {
        "Relu",      "Clip",      "Sigmoid", "Add", "Mul",  "BatchNormalization",
        "LeakyRelu", "HardSwish", "Sub",     "Div", "Tanh", "Erf"};
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->ops.rows.n; i++)
        for (size_t k = 0; k < sizeof light / sizeof *light; k++)
            if (strcmp(c->ops.rows.data[i].op_type, light[k]) == 0)
                sn_few_add(&w, c->ops.rows.data[i].name, c->ops.rows.data[i].share);
    if (w.share >= 0.05)
        sn_found(c, SONDE_NOTE, w.share, "fusion",
                 SN_SAY(c,
                        "%.1f %% of the time is spent in elementwise operators that were not fused",
                        w.share * 100),
                 sn_say_few(c, &w),
                 sn_is_foreign(c->p)
                     ? "check that graph optimisations are on in the program that wrote this "
                       "profile; 'sonde profile MODEL' shows what sonde fuses"
                     : "check that --no-optimize and --disable-pass are not set; 'sonde inspect "
                       "MODEL --optimized --nodes' shows what is between them and the operator "
                       "before");
}

void sn_check_shapes_from_data(sn_case *c)
{
    sn_few w = {.n = 0};
    for (size_t i = 0; i < c->nodes.rows.n; i++) {
        const sn_prof_row *r = &c->nodes.rows.data[i];
        const sn_prof_step *step = sn_row_step(c, r);
        if (step && step->dynamic)
            sn_few_add(&w, sn_row_node(r), r->share);
    }
    if (w.n > 0)
        sn_found(c, w.share >= 0.05 ? SONDE_SLOW : SONDE_NOTE, w.share, "shapes",
                 SN_SAY(c, "%d steps have data-dependent shapes (%.1f %% of the time)", w.n,
                        w.share * 100),
                 sn_say_few(c, &w), "set sizes with -s, or export the model with fixed sizes");
}
