/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles made by hand, with times chosen so that every figure can be checked on paper. */
#ifndef SONDE_TESTS_PROFILE_SYNTHETIC_H
#define SONDE_TESTS_PROFILE_SYNTHETIC_H

#include <stdlib.h>
#include <string.h>

#include "failing_alloc.h"
#include "profile/profile.h"

#define MS 1000000u /* nanoseconds */

static inline sn_profile *syn_profile(sn_allocator *alloc)
{
    sn_profile *p = NULL;
    if (sn_profile_new(&p, alloc, NULL) != SONDE_OK)
        abort();
    p->model_name = "tiny";
    p->version = "0.1.0";
    p->cpu_model = "Test CPU";
    p->cpu_level = "avx2";
    p->precision = "bf16";
    p->cores = 4;
    p->threads = 2;
    p->level = 2;
    p->pid = 77;
    p->start_wall_ns = 1700000000000000000u;
    sn_prof_thread main_thread = {.os_tid = 4242, .name = "main"};
    sn_prof_thread worker = {.id = 1, .os_tid = 4243, .name = "worker 1"};
    if (!sn_vec_push(&p->threads_seen, alloc, main_thread) ||
        !sn_vec_push(&p->threads_seen, alloc, worker))
        abort();
    return p;
}

/* A tensor of that name, type and up to four dims (0 ends them; rank 0 has none). */
static inline sn_prof_tensor syn_tensor(sn_profile *p, const char *name, const char *dtype,
                                        int rank, const int64_t *dims)
{
    int64_t *copy = SN_NEW_N(&p->arena, int64_t, rank > 0 ? rank : 1);
    for (int d = 0; d < rank; d++)
        copy[d] = dims[d];
    return (sn_prof_tensor){.name = name, .dtype = dtype, .rank = rank, .dims = copy};
}

/* Returns the step's index. Inputs: x [1, 3, 4, 4], w [2, 3, 1, 1], none; output: y. */
static inline uint32_t syn_step(sn_profile *p, const char *op, const char *name, const char *post,
                                const char *kernel)
{
    sn_prof_step s = {.table = 1,
                      .index = (uint32_t)p->steps.n,
                      .op_type = op,
                      .name = name,
                      .post_op = post,
                      .kernel = kernel,
                      .attributes = "strides=1,1",
                      .flops = 1000000,
                      .bytes = 2000,
                      .bind_ns = 4000};
    sn_prof_tensor *in = SN_NEW_N(&p->arena, sn_prof_tensor, 3);
    in[0] = syn_tensor(p, "x", "f32", 4, (int64_t[]){1, 3, 4, 4});
    in[1] = syn_tensor(p, "w", "f32", 4, (int64_t[]){2, 3, 1, 1});
    in[2] = (sn_prof_tensor){.name = "", .dtype = "", .rank = -1};
    s.inputs = in;
    s.n_inputs = 3;
    sn_prof_tensor *out = SN_NEW(&p->arena, sn_prof_tensor);
    *out = syn_tensor(p, "y", "f16", 4, (int64_t[]){1, 2, 4, 4});
    s.outputs = out;
    s.n_outputs = 1;
    sn_prof_origin *origins = SN_NEW_N(&p->arena, sn_prof_origin, 3);
    origins[0] = (sn_prof_origin){name, op};
    s.origins = origins;
    s.n_origins = 1;
    if (post && *post) { /* "Add+Relu" stands for two more original nodes */
        origins[1] = (sn_prof_origin){"add1", "Add"};
        origins[2] = (sn_prof_origin){"relu1", "Relu"};
        s.n_origins = 3;
    }
    if (!sn_vec_push(&p->steps, p->alloc, s))
        abort();
    return s.index;
}

/* Appends a span on thread 0 and returns it; spans must come in order of start. */
static inline sn_prof_span *syn_span(sn_profile *p, sn_prof_cat cat, uint32_t parent,
                                     uint64_t start, uint64_t dur, const char *name)
{
    sn_prof_span s = {.id = (uint32_t)p->spans.n + 1,
                      .parent = parent,
                      .cat = cat,
                      .start_ns = start,
                      .dur_ns = dur,
                      .step = UINT32_MAX,
                      .name = name,
                      .args = ""};
    if (!sn_vec_push(&p->spans, p->alloc, s))
        abort();
    return &p->spans.data[p->spans.n - 1];
}

static inline uint32_t syn_op(sn_profile *p, uint32_t parent, uint64_t start, uint64_t dur,
                              uint32_t step)
{
    sn_prof_span *s = syn_span(p, SN_CAT_OPERATOR, parent, start, dur, p->steps.data[step].op_type);
    s->step = step;
    s->run = 1;
    return s->id;
}

/* One warm-up and two measured runs of Conv+Add+Relu (6 ms), MatMul (2 ms), 0.5 ms of memory and
 * 1.5 ms of nothing: 10 ms each; the second measured run's Conv takes 2 ms longer. The warm-up
 * binds. */
static inline sn_profile *syn_tiny(sn_allocator *alloc)
{
    sn_profile *p = syn_profile(alloc);
    uint32_t conv = syn_step(p, "Conv", "conv1", "Add+Relu", "f32_conv1x1_avx2");
    uint32_t matmul = syn_step(p, "MatMul", "fc", "", "f32_gemm_6x16_avx2");
    uint64_t t = 0;
    p->steps.data[conv].arithmetic = p->steps.data[matmul].arithmetic = SN_ARITH_F32;
    for (uint32_t run = 0; run < 3; run++) {
        uint64_t more = run == 2 ? 2 * MS : 0;
        uint32_t it;
        sn_prof_span *s = syn_span(p, SN_CAT_ITERATION, 0, t, 10 * MS + more,
                                   run ? (run == 1 ? "Iteration0" : "Iteration1") : "Warm-up0");
        s->warmup = run == 0;
        s->iteration = run ? run - 1 : 0;
        it = s->id;
        const size_t first = p->spans.n;
        syn_op(p, it, t + 1 * MS, 6 * MS + more, conv);
        syn_span(p, SN_CAT_MEMORY, it, t + 7 * MS + more, MS / 2, "alloc");
        syn_op(p, it, t + 8 * MS + more, 2 * MS, matmul);
        for (size_t i = first; i < p->spans.n; i++)
            p->spans.data[i].bound = run == 0 && p->spans.data[i].cat == SN_CAT_OPERATOR;
        t += 20 * MS;
    }
    return p;
}

#endif
