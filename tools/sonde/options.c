/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing. GNU habits: -n 5, -n5, --iterations 5, --iterations=5, "--" ends options, options and
 * arguments may be mixed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const option_row common_rows[] = {
    {'v', "verbose", OPT_COUNT, offsetof(common_options, verbose), NULL,
     "print more; run and profile print every step of their first run, and do not measure it"},
    {'q', "quiet", OPT_FLAG, offsetof(common_options, quiet), NULL,
     "print no warnings and no progress"},
    {'h', "help", OPT_FLAG, offsetof(common_options, help), NULL, "print this text"},
    {0, "version", OPT_FLAG, offsetof(common_options, version), NULL, "print the version"},
    {0}};

static const option_group common_group = {"Common options", common_rows, 0, NULL};

const option_group *options_group(const verb_options *v, size_t k)
{
    size_t n = 0;
    while (v->groups[n].rows)
        n++;
    return k < n ? &v->groups[k] : k == n ? &common_group : NULL;
}

/* ------------------------------------------------------------------ finding */
typedef struct found_row { /* no row: there is none */
    const option_row *row;
    char *field;
} found_row;

/* By its name of `n` bytes, or by its letter where name is NULL. */
static found_row find(const verb_options *v, common_options *values, char letter, const char *name,
                      size_t n)
{
    const option_group *g;
    for (size_t k = 0; (g = options_group(v, k)); k++)
        for (const option_row *r = g->rows; r->name; r++)
            if (name ? strlen(r->name) == n && strncmp(r->name, name, n) == 0
                     : letter && r->letter == letter)
                return (found_row){r, (char *)values + g->at + r->at};
    return (found_row){NULL, NULL};
}

static int unknown(const verb_options *v, const char *word, const char *name)
{
    const option_group *g;
    list names = {.n = 0};
    for (size_t k = 0; (g = options_group(v, k)); k++)
        for (const option_row *r = g->rows; r->name; r++)
            if (r->help)
                list_add(&names, r->name);
    list_add(&names, NULL);
    const char *near = name ? closest(name, names.items) : NULL;
    list_free(&names);
    if (near)
        return fail_usage("unknown option '%s'; did you mean '--%s'?", word, near);
    return fail_usage("unknown option '%s'; see 'sonde %s --help'", word, v->verb);
}

/* ------------------------------------------------------------------ values */
static int set_size(int64_t *field, const option_row *r, const char *value)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    const long long n = strtoll(value, &end, 10);
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (n <= 0 || end == value || (*end && (!unit || end[1])) || n > INT64_MAX >> shift)
        return fail_usage("--%s takes a number of bytes such as 500M or 2G, not '%s'", r->name,
                          value);
    *field = (int64_t)n << shift;
    return -1;
}

/* A size, or no limit: "none" or 0, which become -1. */
static int set_limit(int64_t *field, const option_row *r, const char *value)
{
    if (strcmp(value, "none") != 0 && strcmp(value, "0") != 0)
        return set_size(field, r, value);
    *field = -1;
    return -1;
}

static int set_value(found_row f, const char *value)
{
    const option_row *r = f.row;
    void *field = f.field;
    char *end = NULL;
    errno = 0;
    switch (r->kind) {
    case OPT_FLAG:
        *(bool *)field = true;
        return -1;
    case OPT_COUNT:
        ++*(int *)field;
        return -1;
    case OPT_INT: {
        const long long n = strtoll(value, &end, 10);
        if (!*value || *end || errno || n < 0)
            return fail_usage("--%s takes a non-negative number, not '%s'", r->name, value);
        *(int64_t *)field = n;
        return -1;
    }
    case OPT_SIZE:
        return set_size(field, r, value);
    case OPT_LIMIT:
        return set_limit(field, r, value);
    case OPT_REAL: {
        const double x = strtod(value, &end);
        if (!*value || *end || !(x >= 0) || !isfinite(x))
            return fail_usage("--%s takes a non-negative number, not '%s'", r->name, value);
        *(double *)field = x;
        return -1;
    }
    case OPT_TEXT:
    case OPT_FILE:
    case OPT_MODEL:
    case OPT_MAYBE:
        *(const char **)field = value ? value : "";
        return -1;
    case OPT_LIST:
    case OPT_FILES:
        list_add(field, value);
        return -1;
    }
    return -1;
}

static bool takes_value(const option_row *r)
{
    return r->kind != OPT_FLAG && r->kind != OPT_COUNT;
}

/* ------------------------------------------------------------------ words */
static int parse_long(const verb_options *v, common_options *values, char **argv, int argc, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const found_row f = find(v, values, 0, name, n);
    if (!f.row) {
        char *word = text_of("%.*s", (int)n, name);
        const int code = unknown(v, argv[*i], word);
        free(word);
        return code;
    }
    if (f.row->kind == OPT_MAYBE)
        return set_value(f, equals ? equals + 1 : NULL);
    if (!takes_value(f.row))
        return equals ? fail_usage("--%s takes no value", f.row->name) : set_value(f, NULL);
    if (equals)
        return set_value(f, equals + 1);
    if (*i + 1 >= argc)
        return fail_usage("--%s needs a value: %s", f.row->name, f.row->value);
    return set_value(f, argv[++*i]);
}

/* -pv is -p -v; -n5 is -n 5. */
static int parse_letters(const verb_options *v, common_options *values, char **argv, int argc,
                         int *i)
{
    const char *word = argv[*i];
    for (const char *p = word + 1; *p; p++) {
        const found_row f = find(v, values, *p, NULL, 0);
        if (!f.row)
            return unknown(v, word, NULL);
        if (!takes_value(f.row)) {
            const int code = set_value(f, NULL);
            if (code >= 0)
                return code;
            continue;
        }
        if (p[1])
            return set_value(f, p[1] == '=' ? p + 2 : p + 1);
        if (*i + 1 >= argc)
            return fail_usage("-%c needs a value: %s", *p, f.row->value);
        return set_value(f, argv[++*i]);
    }
    return -1;
}

static int parse_words(const verb_options *v, common_options *values, int argc, char **argv)
{
    bool options_ended = false;
    for (int i = 0; i < argc; i++) {
        int code = -1;
        if (options_ended || argv[i][0] != '-' || !argv[i][1])
            list_add(&values->rest, argv[i]);
        else if (strcmp(argv[i], "--") == 0)
            options_ended = true;
        else if (argv[i][1] == '-')
            code = parse_long(v, values, argv, argc, &i);
        else
            code = parse_letters(v, values, argv, argc, &i);
        if (code >= 0)
            return code;
    }
    return -1;
}

/* What a value of an option may name: FILE, @FILE, NAME=FILE. */
static void add_read(list *read, const char *word)
{
    const char *equals = word ? strchr(word, '=') : NULL;
    if (!word || !*word)
        return;
    list_add(read, *word == '@' ? word + 1 : word);
    if (equals && equals[1])
        list_add(read, equals + 1);
}

/* The files that a row says to write, or may say to read. */
static void add_row(const option_row *r, const void *field, list *written, list *read)
{
    const bool one =
        r->kind == OPT_FILE || r->kind == OPT_MODEL || r->kind == OPT_TEXT || r->kind == OPT_MAYBE;
    const bool writes = r->kind == OPT_FILE || r->kind == OPT_FILES || r->kind == OPT_MODEL;
    const char *word = one ? *(const char *const *)field : NULL;
    const list *words = r->kind == OPT_FILES || r->kind == OPT_LIST ? field : NULL;
    if (word && writes)
        list_add(written, word);
    else
        add_read(read, word);
    for (size_t i = 0; words && i < words->n; i++)
        if (writes)
            list_add(written, words->items[i]);
        else
            add_read(read, words->items[i]);
}

/* Every file that the options say to write can be written, as far as its place tells, and is not
 * one that is read or written by another of them. */
static int check_files(const verb_options *v, common_options *values)
{
    list written = {0}, results = {0}, read = {0};
    for (const option_group *g = v->groups; g->rows; g++)
        for (const option_row *r = g->rows; r->name; r++)
            if (r->help) { /* else it is another spelling */
                const void *field = (const char *)values + g->at + r->at;
                add_row(r, field, &written, &read);
                if (r->kind == OPT_FILE || r->kind == OPT_FILES)
                    add_row(r, field, &results, &read);
            }
    int code = -1;
    for (size_t i = 0; i < written.n && code < 0; i++)
        code = output_check(written.items[i]);
    if (code < 0)
        code = check_outputs(&written, &read);
    if (code < 0)
        code = check_outputs(&results, &values->rest);
    list_free(&written);
    list_free(&results);
    list_free(&read);
    return code;
}

int options_parse(const verb_options *v, common_options *values, int argc, char **argv)
{
    int code = parse_words(v, values, argc, argv);
    if (code >= 0)
        return code;
    if (values->help) {
        options_help(v);
        return EXIT_OK;
    }
    if (values->version) {
        printf("sonde %s\n", sonde_version());
        return EXIT_OK;
    }
    for (const option_group *g = v->groups; g->rows && code < 0; g++)
        if (g->check)
            code = g->check((char *)values + g->at);
    return code < 0 ? check_files(v, values) : code;
}

void options_free(const verb_options *v, common_options *values)
{
    for (const option_group *g = v->groups; g->rows; g++)
        for (const option_row *r = g->rows; r->name; r++)
            if (r->kind == OPT_LIST || r->kind == OPT_FILES)
                list_free((list *)(void *)((char *)values + g->at + r->at));
    list_free(&values->rest);
}
