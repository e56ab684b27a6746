/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that stops one thread at a chosen allocation until the test lets it go on: whatever
 * that thread is making stays half made meanwhile, and the test sees who waits for it. */
#ifndef SONDE_TESTS_API_GATED_MEMORY_H
#define SONDE_TESTS_API_GATED_MEMORY_H

#include <pthread.h>
#include <sched.h>

#include "zoo_session.h"

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    long after;   /* allocations of the thread before the one that stops it */
    size_t large; /* smaller ones do not count */
    bool reached, open, over;
    bool fails; /* the allocation that stopped it is refused in the end */
} gate;

/* The gate of the calling thread; NULL: it is not stopped. */
static _Thread_local gate *my_gate;

static inline void gate_init(gate *g, long after, size_t large)
{
    *g = (gate){.after = after, .large = large};
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->moved, NULL);
}

/* True: the allocation is refused. */
static inline bool gate_pass(gate *g)
{
    pthread_mutex_lock(&g->lock);
    const bool mine = g->after-- == 0;
    g->reached |= mine;
    pthread_cond_broadcast(&g->moved);
    while (mine && !g->open)
        pthread_cond_wait(&g->moved, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return mine && g->fails;
}

/* Waits until the thread is stopped, or has ended (gate_end) without coming so far: false. */
static inline bool gate_wait(gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->reached && !g->over)
        pthread_cond_wait(&g->moved, &g->lock);
    const bool reached = g->reached;
    pthread_mutex_unlock(&g->lock);
    return reached;
}

static inline void gate_open(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

static inline void gate_end(gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

static inline void *gated_alloc(void *user, size_t bytes)
{
    (void)user;
    if (my_gate && bytes >= my_gate->large && gate_pass(my_gate))
        return NULL;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static inline void gated_free(void *user, void *ptr, size_t bytes)
{
    (void)user, (void)bytes;
    free(ptr);
}

/* ------------------------------------------------------------------ a session on such memory */
typedef struct gated_session {
    sonde_context *context;
    sonde_model *model;
    sonde_session *session;
} gated_session;

/* `tune`: a folder, or NULL. `log` may be NULL. */
static inline void gated_open(gated_session *s, const char *model, const char *tune,
                              void (*log)(void *user, int level, const char *line), void *log_user)
{
    sonde_error err;
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    *s = (gated_session){NULL, NULL, NULL};
    o.threads = 1;
    o.alloc = gated_alloc;
    o.free = gated_free;
    o.log = log;
    o.log_user = log_user;
    o.log_level = log ? 3 : 0;
    so.tune = tune;
    CHECK_OK(sonde_context_create(&o, &s->context, &err));
    CHECK_OK(zoo_model(s->context, model, &s->model, &err));
    CHECK_OK(sonde_session_create(s->model, &so, &s->session, &err));
}

static inline void gated_close(gated_session *s)
{
    sonde_session_release(s->session);
    sonde_model_release(s->model);
    sonde_context_release(s->context);
}

/* ------------------------------------------------------------------ a run on a thread */
typedef struct runner {
    const gated_session *s;
    gate *gate;         /* NULL: none */
    int64_t batch;      /* of the input: its shape */
    const char *output; /* NULL: the model's own */
    sonde_cancel_token *cancel;
    bool asks;         /* whether to go on, see below */
    _Atomic int asked; /* times it was asked */
    _Atomic int stop;  /* what is answered */
    pthread_t thread;
    sonde_status status; /* of the run */
    float first;         /* number of the result */
} runner;

static inline int runner_asked(void *user)
{
    runner *r = user;
    const int stop = atomic_load(&r->stop);
    atomic_fetch_add(&r->asked, 1);
    return stop;
}

/* An input of that many equal rows: then the first numbers of results are the same for all. */
static inline sonde_status equal_rows(const gated_session *s, int64_t batch, sonde_value **in,
                                      sonde_error *err)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    sonde_status st = sonde_session_input_info(s->session, 0, &info, err);
    int64_t dims[8] = {batch}, row = 1;
    for (int i = 1; !st && i < info.rank && i < 8; i++)
        row *= dims[i] = info.dims[i];
    if (!st)
        st = sonde_tensor_create(s->context, SONDE_DTYPE_F32, dims, (size_t)info.rank, NULL,
                                 (size_t)(batch * row) * sizeof(float), in, err);
    for (int64_t i = 0; !st && i < batch * row; i++)
        ((float *)sonde_tensor_data(*in))[i] = (float)(i % row % 17) / 16;
    return st;
}

static inline void run_once(runner *r)
{
    sonde_error err = {.status = SONDE_OK};
    sonde_value *in = NULL, *out = NULL;
    sonde_run_options o = SONDE_INIT(sonde_run_options);
    o.cancel = r->cancel;
    o.interrupt = r->asks ? runner_asked : NULL;
    o.interrupt_user = r;
    gate *mine = my_gate;
    my_gate = NULL; /* the input is not what is to be stopped */
    r->status = equal_rows(r->s, r->batch, &in, &err);
    my_gate = mine;
    if (!r->status)
        r->status = sonde_session_run(r->s->session, &o, NULL, &in, 1,
                                      r->output ? &r->output : NULL, &out, 1, &err);
    my_gate = NULL;
    r->first = r->status ? 0 : ((const float *)sonde_tensor_data(out))[0];
    sonde_value_release(in);
    sonde_value_release(out);
}

static inline void *runner_main(void *arg)
{
    runner *r = arg;
    my_gate = r->gate;
    run_once(r);
    if (r->gate)
        gate_end(r->gate);
    return NULL;
}

static inline void runner_start(runner *r)
{
    CHECK_EQ(pthread_create(&r->thread, NULL, runner_main, r), 0);
}

static inline sonde_status runner_join(runner *r)
{
    pthread_join(r->thread, NULL);
    return r->status;
}

/* Until the run has asked so often: it waits for somebody, or works on something long. */
static inline void runner_wait_asked(runner *r, int times)
{
    while (atomic_load(&r->asked) < times)
        sched_yield();
}

#endif
