/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS on the matrix products, where it is installed: found at run, so that building needs
 * nothing. Some distributions put a word before or after its functions' names. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111 };

typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);
typedef void set_threads_fn(int n);

static struct {
    bool tried;
    sgemm_fn *sgemm;
    set_threads_fn *set_threads; /* NULL: it cannot be told */
} api;

static void *open_any(const char *given)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so", "libcblas.so.3",
                                        "libcblas.so"};
    if (given)
        return dlopen(given, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (lib)
            return lib;
    }
    return NULL;
}

static void find(void *lib, const char *name, void *function)
{
    static const char *const before[] = {"", "scipy_"};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        char symbol[64];
        snprintf(symbol, sizeof symbol, "%s%s", before[i], name);
        void *found = dlsym(lib, symbol);
        if (found) {
            memcpy(function, &found, sizeof found);
            return;
        }
    }
}

static bool open_once(const bench_setup *s)
{
    if (api.tried)
        return api.sgemm != NULL;
    api.tried = true;
    void *lib = open_any(s->openblas);
    if (lib) {
        find(lib, "cblas_sgemm", &api.sgemm);
        find(lib, "openblas_set_num_threads", &api.set_threads);
    }
    if (!api.sgemm)
        fprintf(stderr, "OpenBLAS is not installed: left out\n");
    return api.sgemm != NULL;
}

typedef struct work {
    bench_gemm g;
    int threads;
    float *a, *b, *c;
} work;

static void prepare(void *state)
{
    const work *w = state;
    if (api.set_threads)
        api.set_threads(w->threads);
}

static void run(void *state)
{
    const work *w = state;
    const int m = (int)w->g.m, n = (int)w->g.n, k = (int)w->g.k;
    api.sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, w->a, k, w->b, n, 0, w->c, n);
}

static void release(void *state)
{
    work *w = state;
    free(w->a), free(w->b), free(w->c);
    free(w);
}

bool bench_openblas(const bench_setup *s, int slot, const bench_case *c, bench_runner *out)
{
    if (c->is_conv || !open_once(s))
        return false;
    work *w = bench_alloc(sizeof *w);
    w->g = c->gemm;
    w->threads = s->threads[slot];
    w->a = bench_floats((size_t)(w->g.m * w->g.k) * sizeof(float));
    w->b = bench_floats((size_t)(w->g.k * w->g.n) * sizeof(float));
    w->c = bench_floats((size_t)(w->g.m * w->g.n) * sizeof(float));
    *out = (bench_runner){.by = "openblas",
                          .threads = w->threads,
                          .prepare = prepare,
                          .run = run,
                          .free = release,
                          .state = w};
    return true;
}
