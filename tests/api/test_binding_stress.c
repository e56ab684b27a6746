/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that bind, tune, pack, run, cancel, record and release at once, on shapes and outputs
 * that are too many to be kept. Made for ThreadSanitizer; without it, it shows crashes, hangs and
 * wrong answers. SONDE_STRESS_ROUNDS: things each thread does, else 150. */
#include <stdatomic.h>
#include <unistd.h>

#include "gated_memory.h"
#include "sonde/experimental/inspect.h"
#include "sonde/experimental/profile.h"

enum { THREADS = 6, BATCHES = 20, MAX_NAMES = 24, TOKENS = 3 };

typedef struct shared {
    gated_session all[3]; /* two that share their program, and a tuned one */
    char dir[32];
    const char *names[MAX_NAMES]; /* of values, and the first number of each */
    float expected[MAX_NAMES];
    size_t n_names;
    sonde_cancel_token *tokens[TOKENS];
    _Atomic int wrong, runs, cancelled;
    int rounds;
} shared;

typedef struct actor {
    shared *all;
    uint64_t state; /* of its random numbers */
    pthread_t thread;
} actor;

static uint32_t pick(actor *a, uint32_t below)
{
    uint64_t z = (a->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return (uint32_t)((z ^ (z >> 31)) % below);
}

static void run_on(actor *a, const gated_session *s, bool inner, sonde_cancel_token *token)
{
    shared *all = a->all;
    const size_t k = inner ? pick(a, (uint32_t)all->n_names) : all->n_names - 1;
    runner r = {.s = s, .batch = 1 + pick(a, BATCHES), .cancel = token, .asks = pick(a, 2) == 0};
    r.output = inner ? all->names[k] : NULL;
    run_once(&r);
    atomic_fetch_add(&all->runs, 1);
    atomic_fetch_add(&all->cancelled, r.status == SONDE_CANCELLED);
    if (r.status == SONDE_CANCELLED && token)
        return;
    if (r.status || fabsf(r.first - all->expected[k]) > 1e-3f) {
        atomic_fetch_add(&all->wrong, 1);
        fprintf(stderr, "%s: status %d, %g instead of %g\n", all->names[k], (int)r.status,
                (double)r.first, (double)all->expected[k]);
    }
}

static const gated_session *any_session(actor *a)
{
    return &a->all->all[pick(a, 3)];
}

/* A session that comes and goes, with the options of one that stays or others. */
static void passing_session(actor *a)
{
    sonde_error err;
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    gated_session own = *any_session(a);
    o.no_prepack = (int)pick(a, 2);
    o.threads = (int)pick(a, 3);
    if (sonde_session_create(own.model, &o, &own.session, &err)) {
        atomic_fetch_add(&a->all->wrong, 1);
        return;
    }
    run_on(a, &own, pick(a, 2), NULL);
    sonde_session_release(own.session);
}

static void look_at(actor *a)
{
    sonde_error err;
    const gated_session *s = any_session(a);
    sonde_value *in = NULL;
    sonde_inspection *seen = NULL;
    if (equal_rows(s, 1 + pick(a, BATCHES), &in, &err) ||
        sonde_inspect_session(s->session, NULL, &in, 1, &seen, &err))
        atomic_fetch_add(&a->all->wrong, 1);
    sonde_inspection_release(seen);
    sonde_value_release(in);
}

static void profile(actor *a)
{
    sonde_context *c = any_session(a)->context;
    sonde_profile *p = NULL;
    switch (pick(a, 3)) {
    case 0:
        (void)sonde_profiler_start(c, 1 + (int)pick(a, 3), NULL);
        break;
    case 1:
        (void)sonde_profiler_stop(c, &p, NULL);
        sonde_profile_release(p);
        break;
    default:
        (void)sonde_profiler_clear(c, NULL);
    }
}

static void *actor_main(void *arg)
{
    actor *a = arg;
    for (int i = 0; i < a->all->rounds; i++) {
        sonde_cancel_token *token = a->all->tokens[pick(a, TOKENS)];
        switch (pick(a, 12)) {
        case 0:
            passing_session(a);
            break;
        case 1:
            look_at(a);
            break;
        case 2:
            profile(a);
            break;
        case 3:
            sonde_cancel(token);
            break;
        case 4:
        case 5:
            sonde_cancel_reset(token);
            break;
        case 6:
            run_on(a, any_session(a), false, token);
            break;
        case 7:
        case 8:
        case 9:
            run_on(a, any_session(a), true, pick(a, 4) ? NULL : token);
            break;
        default:
            run_on(a, any_session(a), false, NULL);
        }
    }
    return NULL;
}

/* One context and one model for all; what is expected of every value. */
static void set_up(shared *all)
{
    sonde_error err;
    snprintf(all->dir, sizeof all->dir, "/tmp/sonde-bind-XXXXXX");
    CHECK(mkdtemp(all->dir) != NULL);
    gated_open(&all->all[0], "tiny_cnn", NULL, NULL, NULL);
    all->all[1] = all->all[2] = all->all[0];
    sonde_session_options o = SONDE_INIT(sonde_session_options);
    CHECK_OK(sonde_session_create(all->all[0].model, &o, &all->all[1].session, &err));
    o.tune = all->dir;
    o.threads = 2;
    CHECK_OK(sonde_session_create(all->all[0].model, &o, &all->all[2].session, &err));
    for (const sn_node *n = all->all[0].model->core->graph->first; n; n = n->next) {
        if (!*n->out[0]->name || all->n_names == MAX_NAMES)
            continue;
        runner r = {.s = &all->all[0], .batch = 1, .output = n->out[0]->name};
        run_once(&r);
        CHECK_EQ(r.status, SONDE_OK);
        all->names[all->n_names] = r.output;
        all->expected[all->n_names++] = r.first;
    }
    for (int i = 0; i < TOKENS; i++)
        CHECK_OK(sonde_cancel_token_create(&all->tokens[i], &err));
}

TEST(nothing_is_lost_when_bindings_and_programs_come_and_go)
{
    shared all = {.rounds = 150};
    actor actors[THREADS];
    const char *rounds = getenv("SONDE_STRESS_ROUNDS");
    if (rounds && *rounds)
        all.rounds = atoi(rounds);
    set_up(&all);
    CHECK_EQ(test_errors, 0);
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (actor){.all = &all, .state = test_seed * 1000 + (uint64_t)i};
        CHECK_EQ(pthread_create(&actors[i].thread, NULL, actor_main, &actors[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(actors[i].thread, NULL);
    CHECK_EQ(all.wrong, 0);
    CHECK_MSG(all.runs > all.rounds, "%d runs, %d cancelled", all.runs, all.cancelled);
    for (int i = 0; i < TOKENS; i++)
        sonde_cancel_token_release(all.tokens[i]);
    sonde_session_release(all.all[1].session);
    sonde_session_release(all.all[2].session);
    gated_close(&all.all[0]);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", all.dir);
    CHECK_EQ(system(command), 0);
}

TEST_MAIN()
