/* SPDX-License-Identifier: Apache-2.0 */
/* Check sums of zip and gzip. */
#include "base/crc32.h"
#include "test.h"

TEST(crc32_of_the_usual_text_is_the_published_one)
{
    CHECK_EQ(sn_crc32(0, "123456789", 9), 0xCBF43926u);
    CHECK_EQ(sn_crc32(0, "", 0), 0u);
}

TEST(crc32_in_pieces_is_that_of_the_whole)
{
    const char text[] = "the quick brown fox jumps over the lazy dog";
    for (size_t n = 0; n < sizeof text; n++)
        CHECK_EQ(sn_crc32(sn_crc32(0, text, n), text + n, sizeof text - n),
                 sn_crc32(0, text, sizeof text));
}

TEST(crc32_of_every_byte_is_the_polynomial_s)
{
    for (unsigned i = 0; i < 256; i++) {
        const unsigned char byte = (unsigned char)i;
        uint32_t c = ~(uint32_t)0 ^ i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0xEDB88320u ^ c >> 1 : c >> 1;
        CHECK_EQ(sn_crc32(0, &byte, 1), ~c);
    }
}

TEST_MAIN()
