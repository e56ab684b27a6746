/* SPDX-License-Identifier: Apache-2.0 */
/* Error sentences: composed, prefixed, cut cleanly, and harmless without a place to go. */
#include "base/status.h"
#include "test.h"

TEST(a_failure_carries_status_and_sentence)
{
    sonde_error err = {0};
    CHECK_EQ(sn_fail(&err, SONDE_LIMIT, "%d of %s", 3, "four"), SONDE_LIMIT);
    CHECK_EQ(err.status, SONDE_LIMIT);
    CHECK_STR(err.message, "3 of four");
}

TEST(null_is_accepted_for_the_error)
{
    CHECK_EQ(sn_fail(NULL, SONDE_IO, "x"), SONDE_IO);
    sn_error_prefix(NULL, "x");
    CHECK_EQ(sn_fail_memory(NULL, 1), SONDE_OUT_OF_MEMORY);
}

TEST(a_prefix_goes_before_the_sentence)
{
    sonde_error err = {0};
    sn_fail(&err, SONDE_INVALID_MODEL, "no shape");
    sn_error_prefix(&err, "node '%s'", "conv1");
    CHECK_STR(err.message, "node 'conv1': no shape");
    CHECK_EQ(err.status, SONDE_INVALID_MODEL);
}

TEST(the_old_message_may_be_an_argument_of_the_new)
{
    sonde_error err = {0};
    sn_fail(&err, SONDE_IO, "inner");
    sn_fail(&err, SONDE_IO, "outer (%s)", err.message);
    CHECK_STR(err.message, "outer (inner)");
}

TEST(a_long_sentence_is_cut_at_a_whole_character)
{
    sonde_error err = {0};
    char text[4000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[sizeof text - 2] = '\0';
    sn_fail(&err, SONDE_IO, "%s", text);
    size_t n = strlen(err.message);
    CHECK_EQ(n, sizeof err.message - 2); /* 1019 bytes of room hold 1018 bytes of pairs */
    CHECK_EQ((unsigned char)err.message[n - 1], 0xA9);
    for (int i = 0; i < 3; i++)
        sn_error_prefix(&err, "%s", text);
    CHECK(strlen(err.message) < sizeof err.message);
}

TEST(memory_of_unknown_size_is_not_called_0_bytes)
{
    sonde_error err;
    CHECK_EQ(sn_fail_memory(&err, 12), SONDE_OUT_OF_MEMORY);
    CHECK_STR(err.message, "cannot allocate 12 bytes");
    CHECK_EQ(sn_fail_memory(&err, 0), SONDE_OUT_OF_MEMORY);
    CHECK_STR(err.message, "there is not enough memory");
}

TEST_MAIN()
