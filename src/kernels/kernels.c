/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch. A table is filled by walking the rows in order: a later row whose CPU flags are all
 * there replaces an earlier one. Tables are kept in a small static array and published with an
 * atomic state, so that any thread may ask at any time and nothing is ever freed. */
#include "kernels/kernels.h"

#include <sched.h>
#include <stdatomic.h>

enum { TABLES = 32 };

typedef struct table {
    _Atomic int state; /* 0 free, 1 being filled, 2 ready */
    uint32_t flags;
    sn_kernels kernels;
} table;

enum {
#define SN_SLOT(slot, signature, read, weights, written, arrangement) SLOT_##slot,
#include "kernels/slots.inc"
#undef SN_SLOT
};

static const sn_kernel_slot slots[] = {
#define SN_SLOT(slot, signature, read, weights, written, arrangement)                              \
    {#slot,                                                                                        \
     #signature,                                                                                   \
     SONDE_DTYPE_##read,                                                                           \
     SONDE_DTYPE_##weights,                                                                        \
     SONDE_DTYPE_##written,                                                                        \
     SN_WEIGHTS_##arrangement},
#include "kernels/slots.inc"
#undef SN_SLOT
};

/* "sn_f32_relu_avx512" is shown to people without the prefix. */
#define SHOWN(symbol) (&#symbol[3])

static const sn_kernel_row rows[] = {
#define SN_KERNEL(slot, flags, symbol, ulp, geometry)                                              \
    {&slots[SLOT_##slot],      SHOWN(symbol), flags,                                               \
     {SN_GEOMETRY_##geometry}, ulp,           (void (*)(void))symbol},
#include "kernels/kernels.inc"
#undef SN_KERNEL
};

/* What base says of the list must be what the list has, on the architecture that is compiled. */
enum {
    USED = 0
#define SN_KERNEL(slot, flags, symbol, ulp, geometry) | (flags)
#include "kernels/kernels.inc"
#undef SN_KERNEL
};
_Static_assert(USED == (SN_CPU_WITH_KERNELS & SN_CPU_HERE),
               "base/instruction_sets.inc does not say truly which of its rows kernels.inc needs");

static void fill(sn_kernels *k, uint32_t have)
{
#define SN_KERNEL(s, needs, symbol, ulp, geometry)                                                 \
    if (((needs) & ~have) == 0) {                                                                  \
        k->s = symbol;                                                                             \
        k->s##_name = SHOWN(symbol);                                                               \
        k->s##_geometry = (sn_geometry){SN_GEOMETRY_##geometry};                                   \
    }
#include "kernels/kernels.inc"
#undef SN_KERNEL
}

/* Filling takes microseconds; longer only when the thread that fills has lost its core, which it
 * gets back sooner when this one gives its own away. */
static void wait_until_ready(table *t)
{
    enum { PAUSES = 100 };
    int pauses = 0;
    while (atomic_load_explicit(&t->state, memory_order_acquire) != 2) {
        if (pauses < PAUSES) {
            pauses++;
            sn_cpu_pause();
        } else {
            sched_yield();
        }
    }
}

const sn_kernels *sn_kernels_get(uint32_t cpu_flags)
{
    static table tables[TABLES];
    uint32_t flags = cpu_flags & USED;
    for (size_t i = 0; i < TABLES; i++) {
        table *t = &tables[i];
        int state = atomic_load_explicit(&t->state, memory_order_acquire);
        if (state == 0 && atomic_compare_exchange_strong(&t->state, &state, 1)) {
            /* The last table serves every set that comes too late: it runs everywhere. */
            t->flags = i + 1 < TABLES ? flags : 0;
            fill(&t->kernels, t->flags);
            atomic_store_explicit(&t->state, 2, memory_order_release);
        }
        wait_until_ready(t);
        if (t->flags == flags)
            return &t->kernels;
    }
    return &tables[TABLES - 1].kernels;
}

const sn_kernel_row *sn_kernel_row_get(size_t k)
{
    return k < sizeof rows / sizeof rows[0] ? &rows[k] : NULL;
}
