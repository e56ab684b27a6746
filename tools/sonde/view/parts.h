/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `sonde view`: what is served, where it comes from, and the browser. The thread that
 * serves never waits for one that measures or reads: it hands out the page that was made last. */
#ifndef SONDE_VIEW_PARTS_H
#define SONDE_VIEW_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "runner.h"
#include "view/http.h"

/* ---- page.c ---- */
enum { TOKEN_BYTES = 16 };

/* What is served. All fields are read and written with the lock, save those that never change. */
typedef struct shown {
    pthread_mutex_t lock;
    pthread_cond_t news;             /* somebody asks, or it is over */
    char token[2 * TOKEN_BYTES + 1]; /* does not change while it is served */
    int port;                        /* the same */
    bool once;                       /* the same: over after everything was fetched once */
    char *policy;                    /* that of the page, for its header */
    http_body *page, *data;          /* the page, and the profile that stands in it */
    unsigned version;                /* of both */
    bool live;                       /* more comes */
    bool asked;                      /* for data, since they were made last; or the first is due */
    bool finishing;                  /* the next page is the last one */
    bool over;
} shown;

int shown_open(shown *s); /* makes the token */
void shown_close(shown *s);
/* Serves this profile from now on; `live`: more comes. The page is made here, which takes as long
 * as 'sonde report -o x.html'; `how` has its other options and may be NULL. */
int shown_set(shown *s, const sonde_profile *profile, const sonde_export_options *how, bool live);
void shown_end(shown *s);    /* what is served is all: nothing more comes */
void shown_finish(shown *s); /* the next page is the last one, and nobody need ask for it */
void shown_stop(shown *s);   /* it is over */
/* Waits so long, in ms; false as soon as it is over. */
bool shown_wait(shown *s, double ms);
void shown_ask(shown *s); /* as if somebody had asked for data */
/* Waits so long, and then until somebody asks for data; false as soon as it is over, or the next
 * page is the last. */
bool shown_wait_asked(shown *s, double ms);
http_site shown_site(shown *s, bool (*over)(void *user));

/* ---- sources.c ---- */
/* What `sonde profile` takes, for a model that runs while its page is shown. */
typedef struct view_run {
    runner r;
    const run_setup *setup;
    const char *title;
    bool memory;
    _Atomic bool measured; /* a run has ended that counts */
} view_run;
/* Loads the model and shows what there is before the first run. */
int source_open_model(view_run *v, shown *s, const char *model);
/* Measures, with new pages as they are asked for, and shows the whole profile in the end. */
int source_run_model(view_run *v, shown *s);
void source_close_model(view_run *v);

/* A saved profile, which may still be written by another process. */
typedef struct watched watched;
/* False, without a word: it is not a profile. What is no file counts as one. */
bool source_is_profile(const char *path, int64_t max_memory);
int source_open_file(watched **w, shown *s, const common_options *o, int64_t max_memory,
                     const char *path);
/* Shows the file again whenever it has changed, until it is over. */
void source_watch_file(watched *w, shown *s);
void source_close_file(watched *w); /* NULL accepted */

/* Two saved profiles, compared. */
int source_open_two(shown *s, const common_options *o, int64_t max_memory, const char *old_path,
                    const char *new_path);

/* ---- browser.c ---- */
/* Whether one was started; where there is no desktop, none is. */
bool browser_open(const char *address);

#endif
