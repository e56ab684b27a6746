/* SPDX-License-Identifier: Apache-2.0 */
/* Options as tables: one row says short and long name, where the value goes and what it does, so
 * parsing, --help and suggestions cannot disagree. A verb has a struct for its options, which
 * begins with common_options, and a list of groups of rows: its own, beside its cmd_*.c, and those
 * it shares with other verbs (option_groups.h). */
#ifndef SONDE_TOOL_OPTIONS_H
#define SONDE_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct list {
    const char **items;
    size_t n;
} list;
void list_add(list *l, const char *item);
void list_free(list *l);
void list_free_texts(list *l); /* and the items, which came from malloc */

/* What an option takes, and the type of its field. */
typedef enum option_kind {
    OPT_FLAG,  /* nothing; bool */
    OPT_COUNT, /* nothing, counts how often it is given; int */
    OPT_INT,   /* a whole number that is not negative; int64_t */
    OPT_SIZE,  /* bytes: 500M, 2G; int64_t */
    OPT_LIMIT, /* the same, or "none" and 0: -1 */
    OPT_REAL,  /* a number that is not negative; double */
    OPT_TEXT,  /* const char * */
    OPT_LIST,  /* a text each time it is given; list */
    OPT_FILE,  /* as OPT_TEXT: a file to write, whose place is looked at before the verb works */
    OPT_FILES, /* as OPT_LIST: the same */
    OPT_MODEL, /* as OPT_FILE: a model, which may take the place of the one that is read */
    OPT_MAYBE  /* a text that may be left out, and then is empty, as --name=TEXT; const char * */
} option_kind;

typedef struct option_row {
    char letter; /* 0: none */
    const char *name;
    option_kind kind;
    size_t at;         /* offset in the struct of its group */
    const char *value; /* what stands for the value in help */
    const char *help;  /* NULL: another spelling of the row above */
} option_row;

/* Rows under one title of --help. */
typedef struct option_group {
    const char *title;      /* the same as that of the group before: its part goes on */
    const option_row *rows; /* ended by one without a name */
    size_t at;              /* of the struct that the rows fill, in the verb's; its own rows: 0 */
    int (*check)(void *values); /* of that struct, after all were parsed: returns as options_parse
                                   does. NULL: nothing to check */
} option_group;

/* What every verb takes. The first member of every verb's struct. */
typedef struct common_options {
    list rest; /* arguments that are no options */
    bool help, version, quiet;
    int verbose;
} common_options;

typedef struct verb_options {
    const char *verb;
    const char *details;        /* of --help, below the summary; may be NULL */
    const option_group *groups; /* ended by one without rows. An option that two groups have is that
                                   of the first */
    void (*behind)(void);       /* prints the end of --help; may be NULL */
} verb_options;

/* Parses argv (without program and verb) into the struct that begins with *values and holds the
 * defaults. Returns -1 to go on, or an exit code: after --help, or after an error, which has been
 * said. */
int options_parse(const verb_options *v, common_options *values, int argc, char **argv);
/* Frees the lists of all rows, also after an error. */
void options_free(const verb_options *v, common_options *values);

/* options_help.c */
void options_help(const verb_options *v);
/* Group k of a verb; behind its own comes the one that all verbs have. NULL: no more. */
const option_group *options_group(const verb_options *v, size_t k);

#endif
