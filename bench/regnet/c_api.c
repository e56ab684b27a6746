/* SPDX-License-Identifier: Apache-2.0 */
/* A program of one's own on sonde's C API, as small as they get: a driver of `sonde bench` (the
 * protocol is in docs/benchmarking.md), and with `--once MODEL INPUTS THREADS` the whole program.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sonde/experimental/tensor_file.h"
#include "sonde/sonde.h"

enum { MOST = 16, LONGEST = 8192 };

typedef struct program {
    char model[LONGEST], inputs[LONGEST];
    int threads;
    sonde_context *context;
    sonde_model *loaded;
    sonde_session *session;
    sonde_value_set *feed;
    const char *in_names[MOST], *out_names[MOST];
    sonde_value *in[MOST], *out[MOST];
    size_t n_in, n_out;
} program;

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static sonde_status load(program *p, sonde_error *err)
{
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = p->threads;
    sonde_status st = sonde_context_create(&o, &p->context, err);
    if (st == SONDE_OK)
        st = sonde_model_load(p->context, p->model, NULL, &p->loaded, err);
    if (st == SONDE_OK)
        st = sonde_session_create(p->loaded, NULL, &p->session, err);
    for (size_t i = 0; st == SONDE_OK && i < sonde_session_output_count(p->session); i++) {
        sonde_type_info info = SONDE_INIT(sonde_type_info);
        st = sonde_session_output_info(p->session, i, &info, err);
        if (st == SONDE_OK && p->n_out < MOST)
            p->out_names[p->n_out++] = info.name;
    }
    return st;
}

static sonde_status read_inputs(program *p, sonde_error *err)
{
    if (p->feed)
        return SONDE_OK;
    const sonde_status st = sonde_values_load(p->context, p->inputs, &p->feed, err);
    for (size_t i = 0; st == SONDE_OK && i < sonde_value_set_count(p->feed) && i < MOST; i++) {
        p->in_names[i] = sonde_value_set_name(p->feed, i);
        p->in[i] = sonde_value_set_value(p->feed, i);
        p->n_in = i + 1;
    }
    return st;
}

static void let_go(program *p)
{
    for (size_t i = 0; i < p->n_out; i++) {
        sonde_value_release(p->out[i]);
        p->out[i] = NULL;
    }
}

static void forget(program *p)
{
    sonde_value_set_release(p->feed);
    p->feed = NULL;
    p->inputs[0] = 0;
}

static sonde_status run(program *p, sonde_error *err)
{
    return sonde_session_run(p->session, NULL, p->in_names, p->in, p->n_in, p->out_names, p->out,
                             p->n_out, err);
}

static int once(program *p)
{
    sonde_error err;
    if (load(p, &err) || read_inputs(p, &err) || run(p, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const float *x = sonde_tensor_data(p->out[0]); /* what classifiers give */
    int64_t best = 0;
    for (int64_t i = 1; i < sonde_tensor_count(p->out[0]); i++)
        best = x[i] > x[best] ? i : best;
    printf("%s: largest at %lld\n", p->out_names[0], (long long)best);
    return 0;
}

static sonde_status answer(program *p, const char *word, const char *value, sonde_error *err)
{
    sonde_status st = SONDE_OK;
    if (strcmp(word, "load") == 0) {
        const long long begin = now_ns();
        st = load(p, err);
        if (st == SONDE_OK)
            printf("loaded %lld %s\n", now_ns() - begin, sonde_version());
    } else if (strcmp(word, "warmup") == 0 || strcmp(word, "run") == 0) {
        static long long took[65536];
        const long n = strtol(value, NULL, 10);
        long done = 0;
        for (st = read_inputs(p, err); st == SONDE_OK && done < n && done < 65536; done++) {
            let_go(p);
            const long long begin = now_ns();
            st = run(p, err);
            took[done] = now_ns() - begin;
        }
        if (st == SONDE_OK)
            printf("times");
        for (long i = 0; st == SONDE_OK && i < done; i++)
            printf(" %lld", took[i]);
        if (st == SONDE_OK)
            printf("\n");
    } else if (strcmp(word, "outputs") == 0) {
        st = sonde_values_save(value, p->out_names, p->out, p->n_out, err);
        if (st == SONDE_OK)
            printf("outputs saved\n");
    } else if (strcmp(word, "program") == 0) {
        char self[4096] = {0};
        if (readlink("/proc/self/exe", self, sizeof self - 1) > 0)
            printf("program %s\t--once\t%s\t%s\t%d\n", self, p->model, p->inputs, p->threads);
    } else if (strcmp(word, "full") == 0) {
        printf("unsupported this program decodes no images\n");
    } else {
        printf("unsupported '%s'\n", word);
    }
    return st;
}

int main(int argc, char **argv)
{
    static program p = {.threads = 1};
    if (argc == 5 && strcmp(argv[1], "--once") == 0) {
        snprintf(p.model, sizeof p.model, "%s", argv[2]);
        snprintf(p.inputs, sizeof p.inputs, "%s", argv[3]);
        p.threads = atoi(argv[4]);
        return once(&p);
    }
    char line[LONGEST];
    while (fgets(line, sizeof line, stdin) && strcmp(line, "quit\n") != 0) {
        line[strcspn(line, "\n")] = 0;
        char *value = strchr(line, ' ');
        if (value)
            *value++ = 0;
        value = value ? value : line + strlen(line);
        static const char *const ignored[] = {"label", "option",     "instances",
                                              "image", "preprocess", "reference"};
        bool skip = false;
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
            skip |= strcmp(line, ignored[i]) == 0;
        sonde_error err = {.status = SONDE_OK};
        if (strcmp(line, "model") == 0)
            snprintf(p.model, sizeof p.model, "%s", value);
        else if (strcmp(line, "inputs") == 0 && !p.inputs[0]) /* of several it takes the first */
            snprintf(p.inputs, sizeof p.inputs, "%s", value);
        else if (strcmp(line, "forget") == 0)
            forget(&p);
        else if (strcmp(line, "threads") == 0)
            p.threads = atoi(value);
        else if (!skip && strcmp(line, "inputs") != 0 && answer(&p, line, value, &err))
            printf("error %s\n", err.message);
        fflush(stdout);
    }
    return 0;
}
