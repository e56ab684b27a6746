/* SPDX-License-Identifier: Apache-2.0 */
/* A profile with weights of every kind the sheets tell apart, and a reader for what the archives
 * contain: deflate streams of stored blocks. Two measured runs of 12 ms each and a warm-up:
 *   Conv 1x1 4 ms, MatMul (60 % zeros) 2 ms, Gemm (10 outputs) 1 ms, Gemm (12 outputs) 3 ms,
 *   Add with a scalar 0.5 ms, memory 0.5 ms, the rest 1 ms; a folded node. */
#ifndef SONDE_TESTS_EXPORT_SPARSE_PROFILE_H
#define SONDE_TESTS_EXPORT_SPARSE_PROFILE_H

#include "export/memory_sink.h"

static inline uint32_t sparse_step(sn_profile *p, const char *op, const char *name,
                                   const char *attributes, sn_prof_tensor x, sn_prof_tensor w)
{
    sn_prof_tensor *in = SN_NEW_N(&p->arena, sn_prof_tensor, 2);
    in[0] = x;
    in[1] = w;
    uint32_t i = syn_step(p, op, name, "", "");
    p->steps.data[i].attributes = attributes;
    p->steps.data[i].inputs = in;
    p->steps.data[i].n_inputs = 2;
    if (w.constant && w.rank == 2) { /* y = x · w, which lies either way round */
        const int64_t n = w.dims[strstr(attributes, "transB=1") ? 0 : 1];
        sn_prof_tensor *y = SN_NEW(&p->arena, sn_prof_tensor);
        *y = syn_tensor(p, "y", "f16", 2, (int64_t[]){1, n});
        p->steps.data[i].outputs = y;
    }
    return i;
}

static inline sn_prof_tensor sparse_weight(sn_profile *p, int rank, const int64_t *dims,
                                           double zeros)
{
    sn_prof_tensor w = syn_tensor(p, "w", "f32", rank, dims);
    w.constant = true;
    w.zeros = zeros;
    return w;
}

static inline sn_profile *sparse_profile(sn_allocator *alloc)
{
    sn_profile *p = syn_profile(alloc);
    const sn_prof_tensor image = syn_tensor(p, "x", "f32", 4, (int64_t[]){1, 16, 4, 4});
    const sn_prof_tensor rows = syn_tensor(p, "x", "f32", 2, (int64_t[]){1, 32});
    const sn_prof_tensor scalar = syn_tensor(p, "s", "i64", 0, NULL);
    const uint64_t half_ms[] = {8, 4, 2, 6, 1}; /* by step */
    sparse_step(p, "Conv", "c", "", image, sparse_weight(p, 4, (int64_t[]){8, 16, 1, 1}, 0));
    sparse_step(p, "MatMul", "m", "", rows, sparse_weight(p, 2, (int64_t[]){32, 64}, 0.6));
    sparse_step(p, "Gemm", "g", "transB=1", rows, sparse_weight(p, 2, (int64_t[]){10, 32}, 0.25));
    sparse_step(p, "Gemm", "h", "alpha=2;transB=1", rows,
                sparse_weight(p, 2, (int64_t[]){12, 32}, -1));
    sparse_step(p, "Add", "=a,\"b\"\n", "", rows, scalar);
    const uint32_t folded = syn_step(p, "Shape", "gone", "", "");
    p->steps.data[folded].folded = true;
    p->steps.data[folded].n_inputs = p->steps.data[folded].n_outputs = 0;
    uint64_t t = 0;
    for (uint32_t run = 0; run < 3; run++) {
        sn_prof_span *s = syn_span(p, SN_CAT_ITERATION, 0, t, 12 * MS, "run");
        s->warmup = run == 0;
        s->iteration = run ? run - 1 : 0;
        const uint32_t it = s->id;
        uint64_t at = t;
        for (uint32_t i = 0; i < 5; i++) {
            const uint64_t ns = half_ms[i] * (MS / 2);
            syn_op(p, it, at, run ? ns : ns / 2, i);
            at += ns;
        }
        syn_span(p, SN_CAT_MEMORY, it, at, MS / 2, "alloc");
        t += 20 * MS;
    }
    return p;
}

static inline uint64_t little(const char *at, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)at[i] << (8 * i);
    return v;
}

/* Content of a stream of stored blocks, terminated, to be freed; NULL: it is not one. *used: its
 * bytes. */
static inline char *stored_content(const char *at, size_t n, size_t *used, size_t *content_bytes)
{
    char *out = calloc(1, n + 1);
    size_t i = 0, k = 0;
    for (bool last = false; !last;) {
        const size_t part = i + 5 <= n ? little(at + i + 1, 2) : n;
        if (i + 5 + part > n || (unsigned char)at[i] > 1 ||
            (part ^ little(at + i + 3, 2)) != 0xFFFF) {
            free(out);
            return NULL;
        }
        last = at[i] == 1;
        memcpy(out + k, at + i + 5, part);
        k += part;
        i += 5 + part;
    }
    *used = i;
    *content_bytes = k;
    return out;
}

#endif
