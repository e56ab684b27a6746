/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a profile as numbers: what the timing table prints. */
#include "api/internal.h"
#include "sonde/experimental/profile.h"

struct sonde_profile_rows {
    sonde_context *context;
    sn_prof_summary summary;
    SN_VEC(sonde_profile_row) list;
};

/* False: out of memory. */
static bool add_row(sonde_profile_rows *rows, const sn_profile *p, const sn_prof_row *r)
{
    const sn_prof_step *step = r->step < p->steps.n ? &p->steps.data[r->step] : NULL;
    const char *dtype = step && step->n_inputs ? step->inputs[0].dtype : "";
    const char *bound = "";
    char arithmetic[SN_ARITH_TEXT];
    sn_arithmetic_text(r->arithmetic, arithmetic);
    if (!r->bracket && r->calls > 0)
        (void)sn_prof_attained(p, r->peak_ns / r->calls, r->bytes / r->calls, r->mean_ns / r->calls,
                               &bound);
    const sonde_profile_row row = {.struct_size = sizeof row,
                                   .name = r->name,
                                   .op_type = r->op_type,
                                   .node = r->example,
                                   .kernel = r->kernel,
                                   .dtype = sn_arena_strdup(&rows->summary.arena, dtype),
                                   .calls = r->calls,
                                   .mean_ns = r->mean_ns,
                                   .share = r->share,
                                   .per_call_mean_ns = r->per_call_mean_ns,
                                   .per_call_p50_ns = r->per_call_p50_ns,
                                   .per_call_p99_ns = r->per_call_p99_ns,
                                   .flops = r->flops,
                                   .bytes = r->bytes,
                                   .roofline = sn_prof_roofline(p, r),
                                   .bound = bound,
                                   .instructions = r->hw.instructions,
                                   .cycles = r->hw.cycles,
                                   .cache_misses = r->hw.cache_misses,
                                   .branch_misses = r->hw.branch_misses,
                                   .bracket = r->bracket,
                                   .dynamic = step && step->dynamic,
                                   .nodes = r->nodes ? r->nodes : "",
                                   .arithmetic = sn_arena_strdup(&rows->summary.arena, arithmetic)};
    return row.dtype && row.arithmetic && sn_vec_push(&rows->list, &rows->context->alloc, row);
}

sonde_status sonde_profile_rows_get(const sonde_profile *profile, sonde_by by,
                                    sonde_profile_rows **rows, sonde_error *err)
{
    static const sn_prof_key keys[] = {[SONDE_BY_OP] = SN_BY_OP,
                                       [SONDE_BY_NODE] = SN_BY_NODE,
                                       [SONDE_BY_SHAPE] = SN_BY_SHAPE,
                                       [SONDE_BY_KERNEL] = SN_BY_KERNEL};
    SN_REQUIRE(rows, err);
    *rows = NULL;
    SN_REQUIRE(profile, err);
    if ((size_t)by >= sizeof keys / sizeof keys[0])
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%d is not a way to group rows", (int)by);
    sonde_context *c = profile->context;
    sonde_profile_rows *made = sn_alloc_zero(&c->alloc, sizeof *made);
    if (!made)
        return sn_fail_memory(err, sizeof *made);
    const sonde_status st = sn_profile_summarise(profile->core, keys[by], &made->summary, err);
    if (st != SONDE_OK) {
        sn_free(&c->alloc, made, sizeof *made);
        return st;
    }
    made->context = sn_api_context_ref(c);
    for (size_t i = 0; i < made->summary.rows.n; i++)
        if (!add_row(made, profile->core, &made->summary.rows.data[i])) {
            sonde_profile_rows_release(made);
            return sn_fail_memory(err, sizeof(sonde_profile_row));
        }
    *rows = made;
    return SONDE_OK;
}

size_t sonde_profile_rows_count(const sonde_profile_rows *rows)
{
    return rows ? rows->list.n : 0;
}

sonde_status sonde_profile_rows_row(const sonde_profile_rows *rows, size_t index,
                                    sonde_profile_row *row, sonde_error *err)
{
    SN_REQUIRE(rows, err);
    SN_REQUIRE(row, err);
    if (index >= rows->list.n)
        return sn_fail(err, SONDE_NOT_FOUND, "there are %zu rows, so row %zu does not exist",
                       rows->list.n, index);
    return sn_api_copy_out(row, &rows->list.data[index], sizeof *row, err);
}

void sonde_profile_rows_release(sonde_profile_rows *rows)
{
    if (!rows)
        return;
    sonde_context *c = rows->context;
    sn_vec_free(&rows->list, &c->alloc);
    sn_prof_summary_free(&rows->summary);
    sn_free(&c->alloc, rows, sizeof *rows);
    sonde_context_release(c);
}
