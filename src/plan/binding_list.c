/* SPDX-License-Identifier: Apache-2.0 */
/* A program's bindings: the most recently used ones are kept, each is made once.
 *
 * The program's lock guards the list and nothing else. A thread that finds no binding for its
 * inputs notes that it makes one, lets go of the lock, makes it, and puts it into the list:
 *
 *     others with the same inputs   wait until it is done (or failed: then the next one tries)
 *     everybody else                goes on
 *
 * Tuning comes after that. The binding is in the list already, with steps cut as the cost model
 * says, and other runs use it while one of them measures. If another cut is faster somewhere, a
 * second binding is made and takes the place of the first in one step; runs under way finish with
 * the one they have. A run that is cancelled while it measures leaves the rest to the next one. */
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "plan/binding.h"
#include "plan/tuning.h"

enum { MAX_BINDINGS = 16 };

/* A binding that is being made; lies on its maker's stack. */
typedef struct sn_bind_job {
    const sn_signature *signature;
    struct sn_bind_job *next;
} sn_bind_job;

/* What a caller of sn_binding_get wants. */
typedef struct request {
    sn_program *p;
    const sn_slot *const *in;
    int threads;
    sn_signature signature;
    sn_pool *pool;
    const sn_stop *stop;
    sonde_error *err;
} request;

/* ------------------------------------------------------------------ signature */

/* Per input: kind, dtype, rank, dims…; then the thread count. */
static size_t signature_length(const sn_program *p, const sn_slot *const *in)
{
    size_t n = 1;
    for (uint32_t i = 0; i < p->n_inputs; i++)
        n += 3 + (in[i]->kind == SN_KIND_TENSOR ? (size_t)in[i]->t.rank : 0);
    return n;
}

static void signature_fill(const sn_program *p, const sn_slot *const *in, int threads, int64_t *sig)
{
    for (uint32_t i = 0; i < p->n_inputs; i++) {
        bool tensor = in[i]->kind == SN_KIND_TENSOR;
        *sig++ = in[i]->kind;
        *sig++ = tensor ? (int64_t)in[i]->t.dtype : 0;
        *sig++ = tensor ? in[i]->t.rank : 0;
        for (int d = 0; tensor && d < in[i]->t.rank; d++)
            *sig++ = in[i]->t.dims[d];
    }
    *sig = threads;
}

static bool same(const sn_signature *a, const sn_signature *b)
{
    return a->hash == b->hash && a->n == b->n &&
           memcmp(a->words, b->words, a->n * sizeof *a->words) == 0;
}

/* ------------------------------------------------------------------ the list, with the lock held
 */

/* A new reference, or NULL. */
static sn_binding *find(sn_program *p, const sn_signature *signature)
{
    for (sn_binding **q = &p->bindings; *q; q = &(*q)->next) {
        sn_binding *b = *q;
        if (!same(&b->signature, signature))
            continue;
        if (b != p->bindings) { /* to the front */
            *q = b->next;
            b->next = p->bindings;
            p->bindings = b;
        }
        return sn_binding_ref(b);
    }
    return NULL;
}

/* Adds b to the front. Returns the least recently used one when there are too many, for the caller
 * to let go of without the lock; else NULL. */
static sn_binding *remember(sn_program *p, sn_binding *b)
{
    b->next = p->bindings;
    p->bindings = sn_binding_ref(b);
    if (++p->n_bindings <= MAX_BINDINGS)
        return NULL;
    sn_binding **q = &p->bindings;
    while ((*q)->next)
        q = &(*q)->next;
    sn_binding *last = *q;
    *q = NULL;
    p->n_bindings--;
    return last;
}

/* `b` takes the place of the one for the same inputs. Returns one for the caller to let go of. */
static sn_binding *replace(sn_program *p, sn_binding *b)
{
    for (sn_binding **q = &p->bindings; *q; q = &(*q)->next)
        if (same(&(*q)->signature, &b->signature)) {
            sn_binding *old = *q;
            b->next = old->next;
            *q = sn_binding_ref(b);
            return old;
        }
    return remember(p, b); /* it left the list meanwhile */
}

sn_binding *sn_binding_latest(sn_program *p)
{
    sn_fork_lock_take(&p->lock);
    sn_binding *b = p->bindings ? sn_binding_ref(p->bindings) : NULL;
    sn_fork_lock_give(&p->lock);
    return b;
}

/* Is a thread at it? Those of a process that this one was forked from are not here. */
static bool is_being_made(sn_program *p, const sn_signature *signature)
{
    sn_program_adopt(p);
    for (const sn_bind_job *j = p->bind_jobs; j; j = j->next)
        if (same(j->signature, signature))
            return true;
    return false;
}

static void end_job(sn_program *p, const sn_bind_job *job)
{
    for (sn_bind_job **q = &p->bind_jobs; *q; q = &(*q)->next)
        if (*q == job) {
            *q = job->next;
            break;
        }
    pthread_cond_broadcast(&p->bind_done);
}

/* ------------------------------------------------------------------ making and tuning */

/* With the lock held, which is given away meanwhile. *gone: see remember. */
static sonde_status make(const request *r, sn_binding **b, sn_binding **gone)
{
    sn_program *p = r->p;
    sn_bind_job job = {&r->signature, p->bind_jobs};
    p->bind_jobs = &job;
    sn_fork_lock_give(&p->lock);
    const sonde_status st = sn_binding_make(p, r->in, r->threads, &r->signature, b, r->err);
    sn_fork_lock_take(&p->lock);
    if (!st)
        *gone = remember(p, *b);
    end_job(p, &job);
    return st;
}

static void say_tuned(const sn_binding *b)
{
    sn_log_write(&b->program->ctx->log, SN_LOG_INFO, "tuned: %u of %u steps changed", b->n_tuned,
                 b->n_steps);
}

/* Measures what is not known of *b, for whose tuning this thread is responsible; without a lock. *b
 * becomes the binding that came of it, and *made true if that is another one. */
static sonde_status tune(const request *r, sn_binding **b, bool *made)
{
    sn_program *p = r->p;
    sn_trace *trace = p->ctx->trace;
    sn_binding *tuned = NULL, *gone = NULL;
    bool better = false;
    const uint64_t t = sn_span_begin(trace);
    sonde_status st = sn_tune_binding(*b, r->pool, r->stop, &better, r->err);
    sn_tuning_save(p->tuning); /* also of what was cancelled */
    sn_span_end(trace, t, "tune", NULL);
    if (!st && better)
        st = sn_binding_make(p, r->in, r->threads, &r->signature, &tuned, r->err);
    sn_fork_lock_take(&p->lock);
    (*b)->tuned = st ? SN_TUNE_WANTED : SN_TUNED;
    if (tuned) {
        tuned->tuned = SN_TUNED; /* whatever could not be measured */
        gone = replace(p, tuned);
    }
    sn_fork_lock_give(&p->lock);
    sn_binding_unref(gone);
    if (tuned) {
        sn_binding_unref(*b);
        *b = tuned;
        *made = true;
    }
    if (!st)
        say_tuned(*b);
    return st;
}

/* With the lock held, which is given back: *b as found, or NULL; it is made, or tuned, if it has to
 * be. */
static sonde_status make_ready(const request *r, sn_binding **b, bool *made)
{
    sn_program *p = r->p;
    sn_binding *gone = NULL;
    sonde_status st = SONDE_OK;
    while (!*b && !st && is_being_made(p, &r->signature)) {
        st = sn_stop_wait(r->stop, &p->bind_done, &p->lock.mutex, r->err);
        if (!st)
            *b = find(p, &r->signature);
    }
    if (!*b && !st) {
        *made = true;
        st = make(r, b, &gone);
    }
    const bool tunes = !st && (*b)->tuned == SN_TUNE_WANTED;
    if (tunes)
        (*b)->tuned = SN_TUNE_BEGUN;
    sn_fork_lock_give(&p->lock);
    sn_binding_unref(gone);
    if (tunes)
        st = tune(r, b, made);
    else if (!st && *made && p->tuning)
        say_tuned(*b);
    if (st) {
        sn_binding_unref(*b);
        *b = NULL;
    }
    return st;
}

sonde_status sn_binding_get(sn_program *p, const sn_slot *const *in, int threads, sn_pool *pool,
                            const sn_stop *stop, sn_binding **out, bool *made, sonde_error *err)
{
    int64_t small[256], *words = small;
    const size_t n = signature_length(p, in);
    if (n > sizeof small / sizeof *small) {
        words = sn_alloc(p->ctx->alloc, n * sizeof *words);
        if (!words)
            return sn_fail_memory(err, n * sizeof *words);
    }
    signature_fill(p, in, threads, words);
    const request r = {.p = p,
                       .in = in,
                       .threads = threads,
                       .signature = {words, n, sn_hash(words, n * sizeof *words, 0)},
                       .pool = pool,
                       .stop = stop,
                       .err = err};
    sonde_status st = SONDE_OK;
    *made = false;
    sn_fork_lock_take(&p->lock);
    *out = find(p, &r.signature);
    if (*out && (*out)->tuned != SN_TUNE_WANTED)
        sn_fork_lock_give(&p->lock);
    else
        st = make_ready(&r, out, made);
    if (words != small)
        sn_free(p->ctx->alloc, words, n * sizeof *words);
    return st;
}
