/* SPDX-License-Identifier: Apache-2.0 */
/* splitmix64: weights of built-in models and seeded tensors depend on every bit of it. */
#include "base/random.h"

#include "test.h"

TEST(numbers_of_a_seed_are_the_published_ones)
{
    static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
                                        9817491932198370423u, 4593380528125082431u,
                                        16408922859458223821u};
    for (uint64_t i = 0; i < 5; i++)
        CHECK(sn_mix64(1234567 + (i + 1) * SN_MIX64_STEP) == expected[i]);
}

TEST_MAIN()
