/* SPDX-License-Identifier: Apache-2.0 */
/* What this room keeps in a context: how programs are called, plainly or recorded, and the bindings
 * that records refer to. */
#include "exec/pins.h"
#include "exec/run.h"

sonde_status sn_exec_init_context(sn_context *ctx, sonde_error *err)
{
    sn_pins *pins = NULL;
    SN_TRY(sn_pins_create(&pins, ctx->alloc, err));
    ctx->pins = pins;
    atomic_store(&ctx->call, sn_call_plain);
    return SONDE_OK;
}

void sn_exec_fini_context(sn_context *ctx)
{
    if (!ctx->pins)
        return;
    sn_exec_clear(ctx);
    sn_pins_free(ctx->pins);
    ctx->pins = NULL;
}

void sn_exec_measure_cost(sn_context *ctx)
{
#if SONDE_RECORDER
    if (ctx->trace->record_ns == 0)
        sn_trace_measure_cost(ctx->trace);
#else
    (void)ctx;
#endif
}

sonde_status sn_exec_record(sn_context *ctx, int level, sonde_error *err)
{
#if SONDE_RECORDER
    if (level < 0 || level > 3)
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "the profiler has levels 0 to 3, not %d",
                       level);
    if (level)
        sn_exec_measure_cost(ctx);
    atomic_store(&ctx->trace->level, level);
    atomic_store(&ctx->call, level ? sn_call_recorded : sn_call_plain);
    return SONDE_OK;
#else
    (void)ctx;
    if (level == 0)
        return SONDE_OK;
    return sn_fail(err, SONDE_UNSUPPORTED, "this build of sonde has no recorder");
#endif
}

sn_binding *sn_exec_pinned(const sn_context *ctx, uint32_t table)
{
    return sn_pins_find(ctx->pins, table);
}

void sn_exec_clear(sn_context *ctx)
{
    sn_trace_clear(ctx->trace);
    if (ctx->pins)
        sn_pins_clear(ctx->pins);
}

void sn_exec_before_fork(sn_context *ctx)
{
    sn_trace_lock_names(ctx->trace);
    sn_pins_lock(ctx->pins);
}

void sn_exec_after_fork(sn_context *ctx)
{
    sn_pins_unlock(ctx->pins);
    sn_trace_unlock_names(ctx->trace);
}
