/* SPDX-License-Identifier: Apache-2.0 */
/* Two convolutions as one. Channels of a depthwise convolution do not mix, so a chunk of output
 * channels of the first is all that a chunk of the second needs. A task is a chunk of an image and
 * runs on one thread with a buffer of its own. When all threads' caches together hold everything
 * between the two, they run one after the other instead, each over the whole pool. */
#include "compute/conv_chain.h"

#include <string.h>

#include "compute/split.h"

/* Channels of a chunk: blocks whose planes fill no more than half of the cache, and several chunks
 * for every thread. All channels when the layout is plain or the rest fits anyway. */
static int64_t pick_chunk(const sn_conv_desc *first, size_t l2_bytes, int threads)
{
    const int64_t block = first->out_block, l2 = (int64_t)l2_bytes;
    const int64_t pixels = first->out[1] * first->out[2];
    if (block == 0 || !first->packed || pixels <= 0 || first->oc % block == 1)
        return first->oc; /* a last chunk of one channel would be no depthwise convolution */
    const int64_t blocks = sn_ceil_div(first->oc, block), plane = pixels * block * 4;
    if (blocks < 3 || plane * blocks < l2 * threads / 4 * 3)
        return first->oc;
    const int64_t fit = sn_max(l2 / 2 / plane, 1), fair = sn_max(blocks / (threads * 3), 1);
    return sn_min(fit, fair) * block;
}

static sonde_status plan_part(sn_conv_chain *p, int part, const sn_conv_desc *first,
                              const sn_conv_desc *second, int64_t channels, uint32_t cpu_flags,
                              size_t l2_bytes, int threads, sonde_error *err)
{
    sn_conv_desc a = *first, b = *second;
    a.oc = b.c = b.oc = b.groups = channels;
    if (p->chunks > 1)
        a.n = b.n = 1;
    SN_TRY(sn_conv_plan_make(&p->first[part], &a, cpu_flags, l2_bytes, threads, err));
    return sn_conv_plan_make(&p->second[part], &b, cpu_flags, l2_bytes, threads, err);
}

static size_t plan_space(const sn_conv_chain *p, int part)
{
    const size_t a = sn_conv_workspace(&p->first[part]), b = sn_conv_workspace(&p->second[part]);
    return a > b ? a : b;
}

sonde_status sn_conv_chain_make(sn_conv_chain *p, const sn_conv_desc *first,
                                const sn_conv_desc *second, uint32_t cpu_flags, size_t l2_bytes,
                                int threads, sonde_error *err)
{
    const int64_t block = sn_max(first->out_block, 1);
    memset(p, 0, sizeof *p);
    p->threads = threads > 0 ? threads : 1;
    p->images = first->n;
    p->channels = first->oc;
    p->chunk = pick_chunk(first, l2_bytes, p->threads);
    p->chunks = sn_max(sn_ceil_div(p->channels, sn_max(p->chunk, 1)), 1);
    const bool apart = p->chunks > 1;
    const int inner_threads = apart ? 1 : p->threads;
    const int64_t last = p->channels - (p->chunks - 1) * p->chunk;
    SN_TRY(plan_part(p, 0, first, second, p->chunk, cpu_flags, l2_bytes, inner_threads, err));
    SN_TRY(plan_part(p, 1, first, second, last, cpu_flags, l2_bytes, inner_threads, err));
    /* Weights of whole blocks, as conv_pack.c lays them out. */
    const int64_t chunk_blocks = sn_ceil_div(p->chunk, block);
    p->first_weights = chunk_blocks * sn_ceil_div(first->c, block) * block * block;
    p->second_weights = chunk_blocks * second->kernel[1] * second->kernel[2] * block;
    p->in = sn_ceil_div(first->c, block) * block * first->in[1] * first->in[2];
    p->out = second->out[1] * second->out[2];
    size_t floats = (size_t)(apart ? 1 : sn_max(p->images, 0)), bytes;
    if (!sn_size_mul(floats, (size_t)(chunk_blocks * block), &floats) ||
        !sn_size_mul(floats, (size_t)(first->out[1] * first->out[2]), &floats) ||
        !sn_size_mul(floats, sizeof(float), &bytes) || bytes > PTRDIFF_MAX / 2)
        return sn_fail(err, SONDE_LIMIT, "the convolution's input is too large");
    p->between_bytes = sn_round_up(bytes, 64);
    const size_t spaces[2] = {plan_space(p, 0), plan_space(p, 1)};
    p->worker_bytes = p->between_bytes + sn_round_up(spaces[spaces[1] > spaces[0]], 64);
    for (int64_t i = 0; i < p->chunks; i++) {
        const int part = i + 1 == p->chunks;
        p->flops += p->first[part].flops + p->second[part].flops;
    }
    p->flops *= apart ? (uint64_t)sn_max(p->images, 0) : 1;
    return SONDE_OK;
}

size_t sn_conv_chain_workspace(const sn_conv_chain *p)
{
    return p->worker_bytes * (size_t)(p->chunks > 1 ? p->threads : 1);
}

typedef struct chain_job {
    const sn_conv_chain *p;
    const sn_conv_chain_call *c;
    uint8_t *space;
} chain_job;

static void run_part(const chain_job *j, int64_t image, int64_t chunk, uint8_t *space,
                     sn_pool *pool)
{
    const sn_conv_chain *p = j->p;
    const sn_conv_chain_call *c = j->c;
    const int part = chunk + 1 == p->chunks;
    const int64_t from = chunk * p->chunk, block = sn_max(p->first[0].d.out_block, 1);
    const int64_t padded = sn_ceil_div(p->channels, block) * block;
    const float *bias[2];
    for (int i = 0; i < 2; i++)
        bias[i] = c->bias[i] ? c->bias[i] + from : NULL;
    float *between = (float *)(void *)space, *y = c->y + (image * padded + from) * p->out;
    sn_conv_run(&p->first[part], c->x + image * p->in, c->w[0] + chunk * p->first_weights, bias[0],
                NULL, between, space + p->between_bytes, pool);
    sn_conv_run(&p->second[part], between, c->w[1] + chunk * p->second_weights, bias[1], NULL, y,
                space + p->between_bytes, pool);
}

static void chain_task(void *arg, size_t task, int worker)
{
    const chain_job *j = arg;
    run_part(j, (int64_t)task / j->p->chunks, (int64_t)task % j->p->chunks,
             j->space + (size_t)worker * j->p->worker_bytes, NULL);
}

void sn_conv_chain_run(const sn_conv_chain *p, const sn_conv_chain_call *c, void *workspace,
                       sn_pool *pool)
{
    chain_job j = {p, c, workspace};
    if (p->chunks == 1) {
        run_part(&j, 0, 0, workspace, pool);
        return;
    }
    if (sn_pool_threads(pool) > p->threads)
        pool = NULL;
    sn_pool_run(pool, (size_t)(p->images * p->chunks), chain_task, &j);
}
