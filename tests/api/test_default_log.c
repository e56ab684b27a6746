/* SPDX-License-Identifier: Apache-2.0 */
/* Who listens to the process default context. */
#include <stdlib.h>

#include "sonde/sonde.h"
#include "test.h"

typedef struct listener {
    int lines;
    char last[512];
} listener;

static void listen(void *user, int level, const char *line)
{
    listener *l = user;
    l->lines++;
    snprintf(l->last, sizeof l->last, "%d: %s", level, line);
}

/* A model of IR version 99 with an empty graph: it is read, and warned of. */
static void load(void)
{
    static const uint8_t bytes[] = {0x08, 99, 0x42, 2, 0x10, 21, 0x3A, 3, 0x12, 1, 'g'};
    sonde_model *model = NULL;
    sonde_error err;
    (void)sonde_model_load_memory(NULL, bytes, sizeof bytes, NULL, &model, &err);
    sonde_model_release(model);
}

TEST(warnings_of_the_default_context_reach_who_listens_now)
{
    if (getenv("SONDE_LOG"))
        SKIP_TEST("SONDE_LOG is set: stderr has them");
    listener first = {0}, second = {0};
    load(); /* nobody listens */
    sonde_default_log(listen, &first);
    load();
    CHECK_EQ(first.lines, 1);
    CHECK_HAS(first.last, "2: the model has IR version 99");
    sonde_default_log(listen, &second);
    load();
    sonde_default_log(NULL, NULL);
    load();
    CHECK_EQ(first.lines, 1);
    CHECK_EQ(second.lines, 1);
}

TEST_MAIN()
