/* SPDX-License-Identifier: Apache-2.0 */
/* SONDE_TIMING's value: space-separated key=value pairs. Whoever sets the variable wants a table,
 * so nothing here fails: a word that is not understood is told to the caller and left out. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/boolean.h"
#include "export/export.h"

typedef struct parser {
    sn_table_options *out;
    sn_arena *arena;
    void (*warn)(void *user, const char *message);
    void *user;
} parser;

static void complain(const parser *p, const char *what, const char *text, const char *expected)
{
    char message[400];
    snprintf(message, sizeof message, "%s '%.120s'; %s", what, text, expected);
    if (p->warn)
        p->warn(p->user, message);
}

static void set_bool(const parser *p, const char *value, bool *out)
{
    if (!sn_boolean_parse(value, out))
        complain(p, "bad value", value, "a boolean is 1, true, t, yes, y or 0, false, f, no, n");
}

static void set(const parser *p, const char *key, const char *value)
{
    sn_table_options *o = p->out;
    if (strcmp(key, "sort") == 0) {
        if (strcmp(value, "time") == 0 || strcmp(value, "name") == 0)
            o->sort_by_name = value[0] == 'n';
        else
            complain(p, "bad value", value, "sort is time or name");
    } else if (strcmp(key, "by-shape") == 0) {
        set_bool(p, value, &o->by_shape);
    } else if (strcmp(key, "by-node") == 0) {
        set_bool(p, value, &o->by_node);
    } else if (strcmp(key, "filter-op") == 0) {
        const char *copy = *value ? sn_arena_strdup(p->arena, value) : NULL;
        if (*value && !copy)
            complain(p, "no memory for", value, "filter-op is left out");
        o->filter_op = copy;
    } else {
        complain(p, "unknown key", key, "the keys are sort, by-shape, by-node and filter-op");
    }
}

void sn_table_options_parse(const char *text, sn_table_options *out, sn_arena *arena,
                            void (*warn)(void *user, const char *message), void *user)
{
    *out = (sn_table_options){0};
    parser p = {out, arena, warn, user};
    const char *s = text ? text : "";
    for (;;) {
        while (isspace((unsigned char)*s))
            s++;
        if (!*s)
            return;
        const char *end = s;
        while (*end && !isspace((unsigned char)*end))
            end++;
        char *word = sn_arena_strndup(arena, s, (size_t)(end - s));
        s = end;
        if (!word) {
            complain(&p, "no memory for", text, "the rest is left out");
            return;
        }
        char *equals = strchr(word, '=');
        bool on;
        if (equals) {
            *equals = 0;
            set(&p, word, equals + 1);
        } else if (!sn_boolean_parse(word, &on)) { /* SONDE_TIMING=1 only switches the table on */
            complain(&p, "no value in", word, "settings are written key=value");
        }
    }
}
