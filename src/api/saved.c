/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles from files, their figures, and two of them compared. */
#include "api/internal.h"
#include "profile/compare.h"
#include "profile_readers/profile_readers.h"
#include "sonde/experimental/profile.h"

struct sonde_comparison {
    sonde_context *context;
    sn_comparison core;
};

sonde_status sonde_profile_load(sonde_context *context, const char *path, sonde_profile **profile,
                                sonde_error *err)
{
    return sonde_profile_load_with(context, path, NULL, profile, err);
}

sonde_status sonde_profile_load_with(sonde_context *context, const char *path,
                                     const sonde_load_options *options, sonde_profile **profile,
                                     sonde_error *err)
{
    SN_REQUIRE(profile, err);
    *profile = NULL;
    SN_REQUIRE(path, err);
    sonde_load_options o;
    SN_OPTIONS(o, options, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_profile *made = sn_alloc_zero(&c->alloc, sizeof *made);
    sonde_status st = made ? sn_profile_read_file(path, !o.no_mmap, &c->alloc, &made->core, err)
                           : sn_fail_memory(err, sizeof *made);
    if (st != SONDE_OK) {
        sn_free(&c->alloc, made, sizeof *made);
        sonde_context_release(c);
        return st;
    }
    made->context = c; /* the reference goes along */
    *profile = made;
    return SONDE_OK;
}

/* Hands `from` over, as much of it as the caller's version of the struct has. */
#define COPY_OUT(to, from, err)                                                                    \
    do {                                                                                           \
        const size_t size_ = (to)->struct_size;                                                    \
        if (size_ < sizeof(size_t))                                                                \
            return sn_fail(                                                                        \
                (err), SONDE_INVALID_ARGUMENT,                                                     \
                "struct_size of the result is not set; initialise the struct with SONDE_INIT");    \
        memcpy((to), &(from), size_ < sizeof(from) ? size_ : sizeof(from));                        \
        (to)->struct_size = size_;                                                                 \
    } while (0)

sonde_status sonde_profile_summary_get(const sonde_profile *profile, sonde_profile_summary *summary,
                                       sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(summary, err);
    const sn_profile *p = profile->core;
    sn_prof_summary s;
    SN_TRY(sn_profile_summarise(p, SN_BY_OP, &s, err));
    const sonde_profile_summary own = {
        .model = p->model_name,
        .version = p->version,
        .cpu = p->cpu_model,
        .cpu_level = p->cpu_level,
        .note = p->note ? p->note : "",
        .cores = p->cores,
        .threads = p->threads,
        .precision = p->precision,
        .level = p->level,
        .start_wall_ns = p->start_wall_ns,
        .spans = p->spans.n,
        .dropped = p->dropped,
        .iterations = s.iterations,
        .warmups = s.warmups,
        .ops = s.ops,
        .mean_ns = s.wall_ns.mean,
        .stddev_ns = s.wall_ns.stddev,
        .min_ns = s.wall_ns.min,
        .max_ns = s.wall_ns.max,
        .p50_ns = s.wall_ns.p50,
        .p90_ns = s.wall_ns.p90,
        .p95_ns = s.wall_ns.p95,
        .p99_ns = s.wall_ns.p99,
        .cost_ns = s.cost_ns,
    };
    sn_prof_summary_free(&s);
    COPY_OUT(summary, own, err);
    return SONDE_OK;
}

size_t sonde_profile_label_count(const sonde_profile *profile)
{
    return profile ? profile->core->labels.list.n : 0;
}

sonde_status sonde_profile_label_get(const sonde_profile *profile, size_t index, sonde_label *label,
                                     sonde_error *err)
{
    SN_REQUIRE(profile, err);
    SN_REQUIRE(label, err);
    if (index >= profile->core->labels.list.n)
        return sn_fail(err, SONDE_NOT_FOUND, "the profile has %zu labels, no label %zu",
                       profile->core->labels.list.n, index);
    const sn_label *own = &profile->core->labels.list.data[index];
    *label = (sonde_label){.key = own->key, .value = own->value};
    return SONDE_OK;
}

const char *sonde_verdict_text(sonde_verdict verdict)
{
    return sn_verdict_name((sn_verdict)verdict);
}

sonde_status sonde_profile_compare(const sonde_profile *old_profile,
                                   const sonde_profile *new_profile, sonde_by by,
                                   sonde_comparison **comparison, sonde_error *err)
{
    static const sn_prof_key keys[] = {
        [SONDE_BY_OP] = SN_BY_OP, [SONDE_BY_NODE] = SN_BY_NODE, [SONDE_BY_SHAPE] = SN_BY_SHAPE};
    SN_REQUIRE(old_profile, err);
    SN_REQUIRE(new_profile, err);
    SN_REQUIRE(comparison, err);
    *comparison = NULL;
    if ((unsigned)by >= sizeof keys / sizeof keys[0])
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "%d is not a way to group rows of a comparison",
                       (int)by);
    sonde_context *c = old_profile->context;
    sonde_comparison *made = sn_alloc_zero(&c->alloc, sizeof *made);
    sonde_status st = made ? sn_profile_compare(old_profile->core, new_profile->core, keys[by],
                                                &c->alloc, &made->core, err)
                           : sn_fail_memory(err, sizeof *made);
    if (st != SONDE_OK) {
        sn_free(&c->alloc, made, sizeof *made);
        return st;
    }
    made->context = sn_api_context_ref(c);
    *comparison = made;
    return SONDE_OK;
}

void sonde_comparison_release(sonde_comparison *comparison)
{
    if (!comparison)
        return;
    sonde_context *c = comparison->context;
    sn_comparison_free(&comparison->core);
    sn_free(&c->alloc, comparison, sizeof *comparison);
    sonde_context_release(c);
}

static sonde_status copy_change(const sn_compare_row *row, sonde_change *change, sonde_error *err)
{
    const sonde_change own = {
        .name = row->name,
        .op_type = row->op_type,
        .node = row->example,
        .old_ns = row->old_ns,
        .new_ns = row->new_ns,
        .old_share = row->old_share,
        .new_share = row->new_share,
        .old_calls = row->old_calls,
        .new_calls = row->new_calls,
        .old_median_ns = row->change.old_median,
        .new_median_ns = row->change.new_median,
        .ratio = row->change.ratio,
        .low = row->change.low,
        .high = row->change.high,
        .p = row->change.p,
        .verdict = (sonde_verdict)row->change.verdict,
        .turns = row->change.turns,
    };
    COPY_OUT(change, own, err);
    return SONDE_OK;
}

sonde_status sonde_comparison_total(const sonde_comparison *comparison, sonde_change *change,
                                    sonde_error *err)
{
    SN_REQUIRE(comparison, err);
    SN_REQUIRE(change, err);
    return copy_change(&comparison->core.total, change, err);
}

size_t sonde_comparison_count(const sonde_comparison *comparison)
{
    return comparison ? comparison->core.rows.n : 0;
}

sonde_status sonde_comparison_row(const sonde_comparison *comparison, size_t index,
                                  sonde_change *change, sonde_error *err)
{
    SN_REQUIRE(comparison, err);
    SN_REQUIRE(change, err);
    if (index >= comparison->core.rows.n)
        return sn_fail(err, SONDE_NOT_FOUND, "the comparison has %zu rows, no row %zu",
                       comparison->core.rows.n, index);
    return copy_change(&comparison->core.rows.data[index], change, err);
}
