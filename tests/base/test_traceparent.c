/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent: what W3C Trace Context allows is read, everything else is no trace. */
#include "base/traceparent.h"
#include "test.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

TEST(a_traceparent_of_the_standard_is_read_and_written_again)
{
    static const char text[] = "00-" TRACE "-" SPAN "-01";
    char again[SN_TRACEPARENT_TEXT];
    sn_caller c;
    CHECK(sn_traceparent_parse(text, &c));
    CHECK_EQ(c.trace_id[0], 0x4b);
    CHECK_EQ(c.trace_id[15], 0x36);
    CHECK_EQ(c.span_id[0], 0x00);
    CHECK_EQ(c.span_id[7], 0xb7);
    CHECK_EQ(c.flags, SN_CALLER_SAMPLED);
    CHECK_STR(sn_traceparent_text(&c, again), text);
    CHECK(sn_traceparent_parse("00-" TRACE "-" SPAN "-00", &c));
    CHECK_EQ(c.flags & SN_CALLER_SAMPLED, 0);
    CHECK(sn_traceparent_parse("00-" TRACE "-" SPAN "-ff", &c));
    CHECK_EQ(c.flags, 0xff);
}

TEST(later_versions_are_read_as_far_as_this_one_goes)
{
    sn_caller c;
    CHECK(sn_traceparent_parse("01-" TRACE "-" SPAN "-01", &c));
    CHECK(sn_traceparent_parse("cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", &c));
    CHECK_EQ(c.flags, 1);
    CHECK(!sn_traceparent_parse("cc-" TRACE "-" SPAN "-01.what", &c));
}

TEST(what_the_standard_forbids_is_no_trace)
{
    static const char *const texts[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN,
        "00-" TRACE "-" SPAN "-",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-more", /* version 00 has no more */
        "00-" TRACE "-" SPAN "-011",
        "ff-" TRACE "-" SPAN "-01",
        "0g-" TRACE "-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", /* upper case */
        "00-" TRACE "_" SPAN "-01",
        "00 " TRACE "-" SPAN "-01",
        " 00-" TRACE "-" SPAN "-01",
        "00-" TRACE "-" SPAN "-0\n",
        "00-4bf92f3577b34da6a3ce929d0e0e47\xff\xfe-" SPAN "-01",
    };
    static const sn_caller nothing;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sn_caller c;
        memset(&c, 1, sizeof c);
        CHECK_MSG(!sn_traceparent_parse(texts[i], &c), "'%s'", texts[i]);
        CHECK_MSG(memcmp(&c, &nothing, sizeof c) == 0, "'%s' leaves a part", texts[i]);
    }
    sn_caller c;
    CHECK(!sn_traceparent_parse(NULL, &c));
}

TEST(a_text_is_never_read_beyond_its_end)
{
    static const char whole[] = "00-" TRACE "-" SPAN "-01";
    for (size_t n = 0; n < sizeof whole; n++) { /* a block of exactly that size, for sanitizers */
        char *part = malloc(n + 1);
        sn_caller c;
        memcpy(part, whole, n);
        part[n] = 0;
        CHECK_EQ(sn_traceparent_parse(part, &c), n == sizeof whole - 1);
        free(part);
    }
}

TEST_MAIN()
