/* SPDX-License-Identifier: Apache-2.0 */
/* What the drivers of row_drivers_<family>.c share: the arrays of a call. A driver is a function
 * prepare_<signature>, which makes the arrays a call needs and says what it amounts to. Block sizes
 * and tiles come from the row's geometry, element types and the arrangement of weights from its
 * slot, so a new row needs no driver; a new signature does. */
#ifndef BENCH_KERNELS_ROW_DRIVERS_H
#define BENCH_KERNELS_ROW_DRIVERS_H

#include <stdlib.h>

#include "base/dtype.h"
#include "compute/cast.h"
#include "rows.h"

#define SN_SLOT(slot, signature, read, weights, written, arrangement)                              \
    void prepare_##signature(bench_row *r);
#include "kernels/slots.inc"
#undef SN_SLOT

static inline void *keep(bench_row *r, void *memory)
{
    if (r->arrays == BENCH_ROW_ARRAYS) {
        fprintf(stderr, "%s: more than %d arrays\n", r->row->name, BENCH_ROW_ARRAYS);
        exit(1);
    }
    return r->array[r->arrays++] = memory;
}

static inline float *floats(bench_row *r, size_t n)
{
    return keep(r, bench_floats(n * sizeof(float)));
}

static inline float *constants(bench_row *r, size_t n, float value)
{
    float *p = keep(r, bench_alloc(n * sizeof *p));
    for (size_t i = 0; i < n; i++)
        p[i] = value;
    return p;
}

/* n elements of one of the slot's types: small floats of both signs, or integers around zero. */
static inline void *elements(bench_row *r, sonde_dtype type, size_t n)
{
    float *wide = floats(r, n);
    if (type == SONDE_DTYPE_F32)
        return wide;
    if (!sn_cast_supported(type)) {
        fprintf(stderr, "%s: no elements of type %s can be made\n", r->row->name,
                sn_dtype_name(type));
        exit(1);
    }
    for (size_t i = 0; i < n && !sn_dtype_is_float(type); i++)
        wide[i] *= 100;
    void *narrow = keep(r, bench_alloc(n * sn_dtype_bytes(type)));
    sn_cast_run(0, type, narrow, SONDE_DTYPE_F32, wide, n, (sn_rounding){.saturate = true}, NULL);
    return narrow;
}

static inline void *read_by(bench_row *r, size_t n)
{
    return elements(r, r->row->slot->read, n);
}

static inline void *written_by(bench_row *r, size_t n)
{
    return elements(r, r->row->slot->written, n);
}

/* Bytes of n elements that are read and of `m` that are written. */
static inline double moved(const bench_row *r, size_t n, size_t m)
{
    const sn_kernel_slot *s = r->row->slot;
    return (double)(n * sn_dtype_bytes(s->read) + m * sn_dtype_bytes(s->written));
}

/* n elements in, n elements out. */
static inline void prepare_flat(bench_row *r, void (*call)(bench_row *))
{
    r->n = r->quick ? 37 : 4096;
    r->x = read_by(r, r->n);
    r->y = written_by(r, r->n);
    r->bytes = moved(r, r->n, r->n);
    r->call = call;
}

#endif
