/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model, through the public API alone: load, make a session, run once on zeros. What
 * the bytes may cost is bounded: memory by the context, inputs by size, a run by a watcher that
 * cancels it. Whatever happens must be a status; crashes, leaks and hangs are what the fuzzer looks
 * for. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "sonde/sonde.h"

#define MAX_MEMORY      ((size_t)256 << 20)
#define MAX_INPUTS      64
#define MAX_RANK        16
#define MAX_INPUT_ELEMS ((int64_t)1 << 16)
#define RUN_SECONDS     2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the watcher: cancels a run that takes too long ---- */

typedef struct watch {
    pthread_mutex_t lock;
    pthread_cond_t done_changed;
    bool done;
    sonde_cancel_token *token;
} watch;

static void *watch_run(void *arg)
{
    watch *w = arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RUN_SECONDS;
    pthread_mutex_lock(&w->lock);
    int rc = 0;
    while (!w->done && rc == 0)
        rc = pthread_cond_timedwait(&w->done_changed, &w->lock, &until);
    if (!w->done)
        sonde_cancel(w->token);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- one model ---- */

/* A zero tensor for input i, free dims set to 1 or 2 as `bits` says; NULL when it would be large.
 */
static sonde_value *zero_input(sonde_context *ctx, const sonde_session *s, size_t i, unsigned bits)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    int64_t dims[MAX_RANK], count = 1;
    sonde_value *v = NULL;
    if (sonde_session_input_info(s, i, &info, NULL) != SONDE_OK)
        return NULL;
    if (info.kind == SONDE_KIND_SEQUENCE) {
        sonde_sequence_create(ctx, NULL, 0, &v, NULL);
        return v;
    }
    if (info.kind == SONDE_KIND_OPTIONAL) {
        sonde_optional_create(ctx, NULL, &v, NULL);
        return v;
    }
    if (info.kind != SONDE_KIND_TENSOR || info.rank > MAX_RANK)
        return NULL;
    size_t rank = info.rank < 0 ? 1 : (size_t)info.rank;
    for (size_t k = 0; k < rank; k++) {
        dims[k] =
            info.rank < 0 || info.dims[k] < 0 ? 1 + (int64_t)(bits >> (k & 7) & 1) : info.dims[k];
        if (dims[k] > MAX_INPUT_ELEMS || (count *= dims[k]) > MAX_INPUT_ELEMS)
            return NULL;
    }
    sonde_dtype dtype = info.dtype == SONDE_DTYPE_UNDEFINED ? SONDE_DTYPE_F32 : info.dtype;
    if (dtype == SONDE_DTYPE_STRING) {
        sonde_string *empty = calloc((size_t)count + 1, sizeof *empty);
        for (int64_t k = 0; empty && k < count; k++)
            empty[k].data = "";
        sonde_tensor_create_strings(ctx, dims, rank, empty, &v, NULL);
        free(empty);
        return v;
    }
    sonde_tensor_create(ctx, dtype, dims, rank, NULL, (size_t)count * sonde_dtype_bytes(dtype), &v,
                        NULL);
    return v;
}

static void run_session(sonde_context *ctx, sonde_session *s, unsigned bits)
{
    size_t n_in = sonde_session_input_count(s), n_out = sonde_session_output_count(s);
    sonde_value *in[MAX_INPUTS] = {0}, *out[MAX_INPUTS] = {0};
    const char *names[MAX_INPUTS];
    watch w = {.lock = PTHREAD_MUTEX_INITIALIZER, .done_changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    bool ready = n_in <= MAX_INPUTS && n_out <= MAX_INPUTS;
    for (size_t i = 0; ready && i < n_in; i++) {
        names[i] = sonde_session_input_name(s, i);
        in[i] = zero_input(ctx, s, i, bits);
        ready = in[i] != NULL;
    }
    if (ready && sonde_cancel_token_create(&w.token, NULL) == SONDE_OK) {
        if (pthread_create(&thread, NULL, watch_run, &w) == 0) {
            sonde_run_options options = SONDE_INIT(sonde_run_options);
            options.cancel = w.token;
            sonde_session_run(s, &options, names, in, n_in, NULL, out, n_out, NULL);
            pthread_mutex_lock(&w.lock);
            w.done = true;
            pthread_cond_signal(&w.done_changed);
            pthread_mutex_unlock(&w.lock);
            pthread_join(thread, NULL);
        }
        sonde_cancel_token_release(w.token);
    }
    for (size_t i = 0; i < MAX_INPUTS; i++) {
        sonde_value_release(in[i]);
        sonde_value_release(out[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sonde_context_options options = SONDE_INIT(sonde_context_options);
    sonde_context *ctx = NULL;
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_error err;
    options.threads = 1;
    options.max_memory = MAX_MEMORY;
    if (sonde_context_create(&options, &ctx, &err) != SONDE_OK)
        return 0;
    if (sonde_model_load_memory(ctx, data, size, NULL, &model, &err) == SONDE_OK) {
        /* The last byte steers what the model does not say. */
        unsigned bits = size ? data[size - 1] : 0;
        sonde_session_options how = SONDE_INIT(sonde_session_options);
        how.no_optimize = bits & 1;
        if (sonde_session_create(model, &how, &session, &err) == SONDE_OK)
            run_session(ctx, session, bits);
    }
    sonde_session_release(session);
    sonde_model_release(model);
    sonde_context_release(ctx);
    return 0;
}
