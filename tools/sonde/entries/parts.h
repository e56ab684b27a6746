/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `sonde history`, and what `profile` and `bench` put into it. */
#ifndef SONDE_TOOL_ENTRIES_PARTS_H
#define SONDE_TOOL_ENTRIES_PARTS_H

#include "sonde/experimental/history.h"
#include "tool.h"

/* ---- options.c ---- */
typedef struct history_options {
    common_options common;
    const char *db;
    const char *model, *kind, *runtime, *commit, *machine, *note, *options, *since, *until;
    int64_t count;
    bool all;
    const char *across, *op, *by, *fail; /* fail: "" without a percentage */
    int64_t keep;
    bool only_profiles;
    table_options table;
    /* made of those above: */
    sonde_history_filter filter;
    unsigned across_set;
    double limit; /* 0.05 for 5 %; < 0: --fail-on-regression was not given */
} history_options;
extern const option_group history_groups[];
/* What the texts say. Returns as options_parse does. */
int history_options_check(history_options *o);
/* "2026-01-31", "2026-01-31 12:00", "7d" before now; false: it is none. Milliseconds since 1970. */
bool history_date(const char *said, int64_t *ms);

/* ---- the verbs of cmd_history.c; the words are those behind the verb's ---- */
int history_list(history_options *o, sonde_history *h);
int history_show(history_options *o, sonde_history *h, const char *reference, bool quiet);
int history_trend(history_options *o, sonde_history *h);
int history_diff(history_options *o, sonde_history *h, const char *old_one, const char *new_one);
int history_remove(history_options *o, sonde_history *h, const char *const *references, size_t n);
int history_prune(const history_options *o, sonde_history *h);

/* ---- words.c ---- */
char *entry_date(int64_t at_ms); /* "2026-01-31 12:00", local; from malloc */
/* "1 thread, batch 8" of the options of an entry, printable; from malloc. */
char *entry_options(const char *json);
void entry_json(text *t, const sonde_history_entry *e); /* without the closing brace */
char *short_commit(const char *commit);                 /* printable, at most 8; from malloc */
/* The record of what `reference` names. EXIT_OK, or an exit code after an error that was said. */
int entry_get(sonde_history *h, const char *reference, const sonde_history_filter *f,
              sonde_history_record **record, sonde_history_entry *e);

/* ---- save.c ---- */
/* Adds an entry to the history that --save names; `model` is what people typed. Says where. */
int history_save(const keep_options *k, const common_options *o, const char *model,
                 sonde_history_new *what);

#endif
