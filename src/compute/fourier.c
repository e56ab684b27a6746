/* SPDX-License-Identifier: Apache-2.0 */
/* Every task has one line's buffer and takes an even range of the lines. */
#include "compute/fourier.h"

#include <string.h>

#include "compute/element.h"
#include "compute/split.h"

void sn_fourier_share(sn_fourier_work *w, int64_t lines, int threads)
{
    w->lines = lines;
    w->tasks = sn_max(sn_min(lines, threads), 1);
    const size_t tasks = (size_t)w->tasks;
    w->line = sn_carve_each(&w->workspace, tasks, 2 * (size_t)w->fft.n * sizeof(double));
    w->core = sn_carve_each(&w->workspace, tasks, w->fft.workspace.bytes);
}

typedef struct job {
    const sn_fourier_work *work;
    const sn_dft *dft; /* or */
    const sn_stft *stft;
    void *y;
    const void *x, *window;
    void *workspace;
} job;

static void dft_line(const job *j, int64_t line, double *z, void *core)
{
    const sn_dft *d = j->dft;
    const int64_t outer = line / d->inner, inner = line % d->inner, length = d->work.fft.n;
    const bool to_real = d->inverse && d->onesided;
    const int64_t use = to_real ? sn_min(d->in, length / 2 + 1) : sn_min(d->in, length);
    memset(z, 0, 2 * (size_t)length * sizeof *z);
    for (int64_t i = 0; i < use; i++) {
        const int64_t at = ((outer * d->in + i) * d->inner + inner) * d->in_parts;
        z[2 * i] = sn_elem_f64(d->dtype, j->x, at);
        z[2 * i + 1] = d->in_parts > 1 ? sn_elem_f64(d->dtype, j->x, at + 1) : 0.0;
    }
    if (to_real) { /* the other half of the spectrum is the conjugate of the first */
        z[1] = 0;
        if (length % 2 == 0)
            z[length + 1] = 0;
        for (int64_t i = length / 2 + 1; i < length; i++) {
            z[2 * i] = z[2 * (length - i)];
            z[2 * i + 1] = -z[2 * (length - i) + 1];
        }
    }
    sn_fft_run(&d->work.fft, z, d->inverse, core);
    const double scale = d->inverse ? 1.0 / (double)length : 1.0;
    for (int64_t i = 0; i < d->out; i++)
        for (int64_t part = 0; part < d->out_parts; part++)
            sn_elem_set_f64(d->dtype, j->y,
                            ((outer * d->out + i) * d->inner + inner) * d->out_parts + part,
                            z[2 * i + part] * scale);
}

static void stft_frame(const job *j, int64_t line, double *z, void *core)
{
    const sn_stft *d = j->stft;
    const int64_t length = d->work.fft.n, batch = line / d->frames,
                  first = line % d->frames * d->step;
    const bool windowed = d->window >= 0;
    const int64_t use = sn_min(windowed ? d->window : length, d->signal - first);
    memset(z, 0, 2 * (size_t)length * sizeof *z);
    for (int64_t i = 0; i < use; i++) {
        const int64_t at = (batch * d->signal + first + i) * d->in_parts;
        const double w = windowed ? sn_elem_f64(d->dtype, j->window, i) : 1.0;
        z[2 * i] = w * sn_elem_f64(d->dtype, j->x, at);
        z[2 * i + 1] = d->in_parts > 1 ? w * sn_elem_f64(d->dtype, j->x, at + 1) : 0.0;
    }
    sn_fft_run(&d->work.fft, z, false, core);
    for (int64_t i = 0; i < 2 * d->out; i++)
        sn_elem_set_f64(d->dtype, j->y, line * d->out * 2 + i, z[i]);
}

static void lines_task(void *arg, size_t task, int worker)
{
    const job *j = arg;
    const sn_fourier_work *w = j->work;
    double *z = sn_pieces_at(j->workspace, w->line, task);
    void *core = sn_pieces_at(j->workspace, w->core, task);
    const size_t n = (size_t)w->lines, tasks = (size_t)w->tasks;
    (void)worker;
    for (size_t i = sn_split(n, tasks, task); i < sn_split(n, tasks, task + 1); i++) {
        if (j->dft)
            dft_line(j, (int64_t)i, z, core);
        else
            stft_frame(j, (int64_t)i, z, core);
    }
}

void sn_dft_run(const sn_dft *d, void *y, const void *x, void *workspace, sn_pool *pool)
{
    job j = {.work = &d->work, .dft = d, .y = y, .x = x, .workspace = workspace};
    sn_pool_run(pool, (size_t)d->work.tasks, lines_task, &j);
}

void sn_stft_run(const sn_stft *d, void *y, const void *x, const void *window, void *workspace,
                 sn_pool *pool)
{
    job j = {.work = &d->work, .stft = d, .y = y, .x = x, .window = window, .workspace = workspace};
    sn_pool_run(pool, (size_t)d->work.tasks, lines_task, &j);
}
