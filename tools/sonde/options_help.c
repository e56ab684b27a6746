/* SPDX-License-Identifier: Apache-2.0 */
/* --help of a verb, from the same rows that are parsed. */
#include <string.h>

#include "tool.h"

static void print_row(const option_row *r)
{
    char left[64];
    const bool maybe = r->kind == OPT_MAYBE;
    snprintf(left, sizeof left, "%c%c%c --%s%s%s%s", r->letter ? '-' : ' ',
             r->letter ? r->letter : ' ', r->letter ? ',' : ' ', r->name,
             !r->value ? ""
             : maybe   ? "[="
                       : " ",
             r->value ? r->value : "", maybe ? "]" : "");
    if (strlen(left) > 28)
        printf("  %s\n  %-28s  %s\n", left, "", r->help);
    else
        printf("  %-28s  %s\n", left, r->help);
}

/* Whether an earlier group has an option of the same name, which is the one that is parsed. */
static bool is_hidden(const verb_options *v, size_t group, const option_row *row)
{
    for (size_t k = 0; k < group; k++)
        for (const option_row *r = options_group(v, k)->rows; r->name; r++)
            if (strcmp(r->name, row->name) == 0)
                return true;
    return false;
}

static void print_usage(const char *verb)
{
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, verb) == 0)
            printf("Usage: sonde %s [OPTION]... %s\n\n%c%s.\n", verb, c->arguments,
                   c->summary[0] - ('a' <= c->summary[0] && c->summary[0] <= 'z' ? 'a' - 'A' : 0),
                   c->summary + 1);
}

void options_help(const verb_options *v)
{
    const option_group *g;
    const char *title = "";
    print_usage(v->verb);
    if (v->details)
        printf("%s", v->details);
    for (size_t k = 0; (g = options_group(v, k)); k++)
        for (const option_row *r = g->rows; r->name; r++) {
            if (!r->help || is_hidden(v, k, r))
                continue;
            if (strcmp(title, g->title) != 0)
                printf("\n%s:\n", g->title);
            title = g->title;
            print_row(r);
        }
    if (v->behind)
        v->behind();
}

void help_passes(void)
{
    printf("\nPasses:");
    for (size_t i = 0; sonde_pass_name(i); i++)
        printf("%s %s", i ? "," : "", sonde_pass_name(i));
    printf("\n");
}

void help_formats(void)
{
    printf("\nFormats:");
    for (size_t i = 0; sonde_format_suffix(i); i++)
        printf("%s %s", i ? "," : "", sonde_format_suffix(i));
    printf("\nCategories:");
    for (size_t i = 0; sonde_category_name(i); i++)
        printf("%s %s", i ? "," : "", sonde_category_name(i));
    printf("\n");
}
