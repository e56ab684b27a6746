/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the bind and run phases: outputs whose shape only the run knows, and error sentences.
 */
#include "ops/framework/op.h"

sonde_status sn_bind_fail(sn_bind *b, sonde_status st, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    st = sn_node_fail_va(b->err, st, b->node, fmt, args);
    va_end(args);
    return st;
}

sonde_status sn_run_fail(const sn_step *s, sn_frame *f, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    sonde_status st = sn_node_fail_va(f->err, SONDE_RUNTIME, s->node, fmt, args);
    va_end(args);
    return st;
}

sonde_status sn_run_output(const sn_step *s, sn_frame *f, uint32_t o, sn_dtype dtype,
                           const int64_t *dims, int rank, sn_tensor **t)
{
    *t = NULL;
    if (!sn_wants(s, o))
        return SONDE_OK;
    sn_slot *slot = sn_out_slot(s, f, o);
    sn_slot_clear(slot);
    SN_TRY(sn_slot_new_tensor(slot, dtype, dims, rank, f->alloc, f->err));
    *t = &slot->t;
    return SONDE_OK;
}

sonde_status sn_run_strings(const sn_step *s, sn_frame *f, uint32_t o, const int64_t *dims,
                            int rank, const sonde_string *elems)
{
    if (!sn_wants(s, o))
        return SONDE_OK;
    sn_slot *slot = sn_out_slot(s, f, o);
    sn_slot_clear(slot);
    return sn_slot_new_strings(slot, dims, rank, elems, f->alloc, f->err);
}

sonde_status sn_fail_cancelled(sn_frame *f)
{
    return sn_fail(f->err, SONDE_CANCELLED, "cancelled");
}
