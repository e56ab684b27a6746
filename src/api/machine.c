/* SPDX-License-Identifier: Apache-2.0 */
/* What a user may ask of his machine: facts, measured peaks, and counting while something runs. */
#include "sonde/experimental/machine.h"

#include "api/internal.h"

static sonde_machine_peak shown(const sn_peaks *p)
{
    return (sonde_machine_peak){.threads = p->threads,
                                .gflops = p->gops[SN_ARITH_F32],
                                .l2_gbps = p->l2_gbps,
                                .l3_gbps = p->l3_gbps,
                                .memory_gbps = p->memory_gbps};
}

_Static_assert(SN_ARITH_COUNT - 1 <= SONDE_MACHINE_RATES, "there are more kinds than rates");

static void list_rates(sonde_machine_info *info, const sn_machine *m, const sn_peaks *one,
                       const sn_peaks *all)
{
    for (int a = 1; a < SN_ARITH_COUNT; a++) {
        const char *instructions = sn_machine_instructions(m, (sn_arithmetic)a);
        if (*instructions)
            info->rates[info->rate_count++] =
                (sonde_machine_rate){.arithmetic = sn_arithmetic_name((sn_arithmetic)a),
                                     .instructions = instructions,
                                     .one_gops = one->gops[a],
                                     .all_gops = all->gops[a]};
    }
}

static void fill(sonde_context *c, sonde_machine_info *info)
{
    const sn_cpu *cpu = &c->core.cpu;
    sn_machine *m = &c->machine;
    sn_peaks one, all_threads;
    uint64_t measured_at_s;
    sn_machine_peaks(m, &one, &all_threads, &measured_at_s);
    sonde_machine_info all = {.struct_size = info->struct_size,
                              .cpu = cpu->model,
                              .level = sn_cpu_level_name(cpu->flags),
                              .found = sn_cpu_level_name(cpu->found),
                              .levels = m->levels,
                              .cores = cpu->cores,
                              .usable_cores = cpu->usable_cores,
                              .threads = c->core.threads,
                              .quota_cores = cpu->quota_cores,
                              .l1_bytes = cpu->l1_bytes,
                              .l2_bytes = cpu->l2_bytes,
                              .l3_bytes = cpu->l3_bytes,
                              .build = sn_machine_build_note(),
                              .measured = all_threads.threads > 0,
                              .measured_at_s = measured_at_s,
                              .one = shown(&one),
                              .all = shown(&all_threads),
                              .cache_file = m->path,
                              .unused = m->unused};
    list_rates(&all, m, &one, &all_threads);
    const sn_topology *t;
    if (sn_topology_get(&c->core.topology, c->core.system_root, &c->alloc, &t, NULL) == SONDE_OK) {
        all.sockets = t->packages;
        all.memory_nodes = t->n_nodes;
        all.physical_cores = t->cores;
        all.usable_physical_cores = t->usable_cores;
        all.threads_per_core = t->threads_per_core;
        if (*c->core.system_root) { /* a copy of another machine's files */
            all.cores = t->n_cpus;
            all.usable_cores = t->usable_cpus;
            all.quota_cores = 0;
        }
    }
    memcpy(info, &all, info->struct_size < sizeof all ? info->struct_size : sizeof all);
}

static sonde_status check_info(const sonde_machine_info *info, sonde_error *err)
{
    SN_REQUIRE(info, err);
    if (info->struct_size < sizeof(size_t))
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "struct_size is not set; initialise the struct with SONDE_INIT");
    return SONDE_OK;
}

sonde_status sonde_machine_peaks(sonde_context *context, sonde_machine_info *info, sonde_error *err)
{
    SN_TRY(check_info(info, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    fill(c, info);
    sonde_context_release(c);
    return SONDE_OK;
}

sonde_status sonde_machine_calibrate(sonde_context *context, sonde_machine_info *info,
                                     sonde_error *err)
{
    SN_TRY(check_info(info, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    const sonde_status st = sn_machine_calibrate(&c->machine, err);
    if (st == SONDE_OK)
        fill(c, info);
    sonde_context_release(c);
    return st;
}

/* ------------------------------------------------------------------ counters */
sonde_status sonde_counters_start(sonde_context *context, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    const sonde_status st = sn_machine_counters_start(&c->machine, err);
    sonde_context_release(c);
    return st;
}

sonde_status sonde_counters_stop(sonde_context *context, sonde_error *err)
{
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    const sonde_status st = sn_machine_counters_stop(&c->machine, err);
    sonde_context_release(c);
    return st;
}
