/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks: well-formed lines whose widths add up to the wall time of the summary. */
#include "export/memory_sink.h"
#include "test.h"

static const sn_exporter *folded(void)
{
    return sn_exporter_for_path("x.folded");
}

TEST(the_widths_of_a_flame_graph_add_up_to_the_wall_time)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_prof_summary s;
    sn_profile *p = syn_tiny(failing_init(&m));
    CHECK(folded() != NULL);
    CHECK_OK(folded()->write(p, memory_sink_init(&out), &err));
    CHECK_OK(sn_profile_summarise(p, SN_BY_NODE, &s, &err));
    double wall = s.wall_ns.mean * (double)s.iterations, sum = 0;
    size_t lines = 0;
    for (char *line = strtok(out.text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
        char *space = strrchr(line, ' ');
        CHECK_MSG(space && strchr(line, ' ') == space && strchr(line, ';'), "%s", line);
        sum += strtod(space + 1, NULL);
    }
    CHECK(lines > 0);
    CHECK_MSG(fabs(sum - wall) <= (double)lines, "%f of %f ns", sum,
              wall); /* each line is rounded */
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    free(out.text);
}

TEST(names_cannot_break_a_stack)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m));
    p->model_name = "a;b c\nd";
    CHECK_OK(folded()->write(p, memory_sink_init(&out), &err));
    CHECK_HAS(out.text, "a:b_c_d;");
    sn_profile_free(p);
    free(out.text);
}

TEST_MAIN()
