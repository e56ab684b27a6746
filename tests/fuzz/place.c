/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts allocate through us, with sizes on both sides, so that one counter is enough. */
#include "fuzz/place.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_MEMORY ((size_t)32 << 20)
#define TICK_MS    10

/* ---- contexts ---- */

typedef struct place {
    const char *cpu;
    sonde_context *context;
    _Atomic size_t live_bytes;
    size_t idle_bytes; /* of the context alone */
} place;

static place places[] = {{.cpu = NULL}, {.cpu = "baseline"}, {.cpu = "avx2"}};

static void *take(void *user, size_t bytes)
{
    place *p = user;
    void *mem = NULL;
    if (posix_memalign(&mem, 64, bytes ? bytes : 1) != 0)
        return NULL;
    atomic_fetch_add(&p->live_bytes, bytes);
    return mem;
}

static void give_back(void *user, void *mem, size_t bytes)
{
    place *p = user;
    atomic_fetch_sub(&p->live_bytes, bytes);
    free(mem);
}

/* A level that this machine lacks falls back to the best. */
static place *place_get(uint32_t level)
{
    place *p = &places[level < sizeof places / sizeof *places ? level : 0];
    if (p->context)
        return p;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    o.max_memory = MAX_MEMORY;
    o.cpu = p->cpu;
    o.alloc = take;
    o.free = give_back;
    o.alloc_user = p;
    if (sonde_context_create(&o, &p->context, NULL) != SONDE_OK)
        return p != places ? place_get(0) : NULL;
    p->idle_bytes = p->live_bytes;
    return p;
}

sonde_context *place_context(uint32_t level)
{
    const place *p = place_get(level);
    return p ? p->context : NULL;
}

void place_check(uint32_t level)
{
    const place *p = place_get(level);
    if (p && p->live_bytes != p->idle_bytes)
        fuzz_fail("memory of a model is not given back", "");
}

/* ---- the watcher ---- */

static struct {
    pthread_once_t once;
    sonde_cancel_token *token;
    _Atomic unsigned serial; /* odd: a run is under way */
    _Atomic unsigned ms;     /* that it may take */
} watch = {.once = PTHREAD_ONCE_INIT};

static void *watch_runs(void *unused)
{
    unsigned last = 0, ticks = 0;
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
        unsigned now = watch.serial;
        ticks = now == last && now % 2 ? ticks + 1 : 0;
        last = now;
        if (ticks && ticks >= watch.ms / TICK_MS)
            sonde_cancel(watch.token);
    }
    return unused;
}

static void watch_start(void)
{
    pthread_t thread;
    if (sonde_cancel_token_create(&watch.token, NULL) != SONDE_OK ||
        pthread_create(&thread, NULL, watch_runs, NULL) != 0)
        fuzz_fail("no watcher", "");
    pthread_detach(thread);
}

sonde_cancel_token *watch_begin(unsigned ms)
{
    pthread_once(&watch.once, watch_start);
    sonde_cancel_reset(watch.token);
    watch.ms = ms;
    atomic_fetch_add(&watch.serial, 1);
    return watch.token;
}

void watch_end(void)
{
    atomic_fetch_add(&watch.serial, 1);
}

/* ---- failures ---- */

void fuzz_fail(const char *what, const char *message)
{
    fprintf(stderr, "fuzz: %s%s%s\n", what, *message ? ": " : "", message);
    abort();
}

void fuzz_check(sonde_status st, const sonde_error *err)
{
    if (st == SONDE_INTERNAL)
        fuzz_fail("internal error", err->message);
}
