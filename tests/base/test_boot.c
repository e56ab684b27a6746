/* SPDX-License-Identifier: Apache-2.0 */
#include "base/boot.h"

#include "base/clock.h"
#include "test.h"

TEST(a_moment_lies_between_what_both_clocks_say_before_and_after)
{
    const uint64_t mono = sn_now_ns();
    const sn_moment m = sn_moment_now();
    CHECK(m.mono_ns >= mono && m.mono_ns <= sn_now_ns());
    CHECK(m.wall_ns > UINT64_C(1600000000000000000)); /* 2020 */
}

TEST(the_boot_has_the_same_name_every_time)
{
    char a[SN_BOOT_BYTES], b[SN_BOOT_BYTES];
    sn_boot_name(a);
    sn_boot_name(b);
    CHECK_STR(a, b);
    CHECK(strlen(a) < SN_BOOT_BYTES && !strchr(a, '\n'));
}

TEST_MAIN()
