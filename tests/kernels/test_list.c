/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of slots and kernels, and the tables that are filled from them. */
#include "rows.h"

TEST(every_signature_belongs_to_a_family_that_is_tested)
{
    static const char *const tested[] = {
#define KERNEL_FAMILY(family, signature) #signature,
#include "families.inc"
#undef KERNEL_FAMILY
    };
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        bool found = false;
        for (size_t i = 0; i < sizeof tested / sizeof *tested; i++)
            found |= strcmp(tested[i], sn_kernel_row_get(k)->slot->signature) == 0;
        CHECK_MSG(found, "families.inc has no row for %s", sn_kernel_row_get(k)->slot->signature);
    }
}

TEST(the_first_row_of_every_slot_is_plain_c)
{
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k);
        CHECK_MSG(reference_of(row)->flags == 0, "%s", row->slot->name);
    }
}

TEST(tables_are_filled_upward_and_shared)
{
    sn_cpu cpu;
    CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
    const sn_kernels *plain = sn_kernels_get(0), *best = sn_kernels_get(cpu.flags);
    CHECK(plain->f32_conv == sn_f32_conv_ref);
    CHECK_STR(plain->f32_conv_name, "f32_conv_ref");
    CHECK(best == sn_kernels_get(cpu.flags));
#define SN_SLOT(slot, signature, read, weights, written, arrangement)                              \
    CHECK(plain->slot != NULL && best->slot != NULL);
#include "kernels/slots.inc"
#undef SN_SLOT
}

TEST_MAIN()
