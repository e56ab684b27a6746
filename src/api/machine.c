/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the machine and its measured peaks. The file that keeps them is text: one line per
 * processor, instruction level, number of cores and number of threads, whole numbers only (MFLOP/s
 * and MB/s), so that no locale matters. A line that is not understood is skipped, a file that
 * cannot be read or written costs a warning: peaks then last as long as the context. */
#include "sonde/experimental/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/internal.h"
#include "base/cache.h"

#define HEADING "sonde peaks 2"
static const char file_name[] = "peaks";
enum { MAX_LINES = 64, LINE = 320, MAX_FILE_BYTES = 1 << 20 };

/* What makes figures of this build useless to others; such peaks are not kept. */
static const char *build_note(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return "address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    return "thread sanitizer";
#elif !defined(__OPTIMIZE__)
    return "no optimisation (a debug build)";
#else
    return "";
#endif
}

/* ------------------------------------------------------------------ the file */
typedef struct entry {
    int threads, cores;
    char level[24];
    uint64_t mflops, l2, l3, memory, at_s;
    char cpu[64];
} entry;

static bool parse(const char *line, entry *e)
{
    int used = 0;
    *e = (entry){.threads = 0};
    if (sscanf(line, "%d %d %23s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n",
               &e->threads, &e->cores, e->level, &e->mflops, &e->l2, &e->l3, &e->memory, &e->at_s,
               &used) != 8 ||
        !used)
        return false;
    snprintf(e->cpu, sizeof e->cpu, "%s", line + used);
    e->cpu[strcspn(e->cpu, "\n")] = 0;
    const uint64_t most = (uint64_t)1 << 40; /* a million times what machines do */
    return e->threads > 0 && e->mflops > 0 && e->mflops < most && e->l2 < most && e->l3 < most &&
           e->memory < most;
}

static entry entry_of(const sonde_context *c, const sn_peaks *p, uint64_t at_s)
{
    const sn_cpu *cpu = &c->core.cpu;
    entry e = {.threads = p->threads,
               .cores = cpu->cores,
               .mflops = (uint64_t)(p->gflops * 1e3 + 0.5),
               .l2 = (uint64_t)(p->l2_gbps * 1e3 + 0.5),
               .l3 = (uint64_t)(p->l3_gbps * 1e3 + 0.5),
               .memory = (uint64_t)(p->memory_gbps * 1e3 + 0.5),
               .at_s = at_s};
    snprintf(e.level, sizeof e.level, "%s", sn_cpu_level_name(cpu->flags));
    snprintf(e.cpu, sizeof e.cpu, "%s", cpu->model);
    e.cpu[strcspn(e.cpu, "\n")] = 0;
    return e;
}

static bool same_key(const entry *a, const entry *b)
{
    return a->threads == b->threads && a->cores == b->cores && strcmp(a->level, b->level) == 0 &&
           strcmp(a->cpu, b->cpu) == 0;
}

/* "" when there is no home to keep anything in. */
static void find_path(char *path, size_t bytes)
{
    const size_t n = sn_api_user_cache(path, bytes);
    if (!n || n + 1 + sizeof file_name > bytes)
        path[0] = 0;
    else
        snprintf(path + n, bytes - n, "/%s", file_name);
}

/* The folder of the file; false: there is none, or it was refused: that is said once. */
static bool open_folder(sonde_context *c, char *folder, size_t bytes, bool make, sn_cache *cache)
{
    sonde_error err = {.status = SONDE_OK};
    if (!sn_api_user_cache(folder, bytes))
        return false;
    const sonde_status st = sn_cache_open(cache, folder, make, &err);
    if (st && st != SONDE_NOT_FOUND) {
        sn_log_write(&c->core.log, SN_LOG_WARN, "measured peaks are neither read nor kept: %s",
                     err.message);
        c->machine.path[0] = 0;
    }
    return st == SONDE_OK;
}

static size_t parse_lines(const char *text, size_t bytes, entry *list)
{
    const char *end = text + bytes;
    size_t n = 0;
    for (const char *at = text + sizeof HEADING, *stop; at < end && n < MAX_LINES; at = stop + 1) {
        char line[LINE];
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            break;
        const size_t length = (size_t)(stop - at) < sizeof line ? (size_t)(stop - at) : 0;
        memcpy(line, at, length);
        line[length] = 0;
        n += parse(line, &list[n]);
    }
    return n;
}

static size_t read_lines(sonde_context *c, const sn_cache *cache, entry *list)
{
    sonde_error err = {.status = SONDE_OK};
    sn_file f;
    const sonde_status st =
        sn_cache_read_text(cache, file_name, HEADING, MAX_FILE_BYTES, &c->alloc, &f, &err);
    if (st && st != SONDE_NOT_FOUND)
        sn_log_write(&c->core.log, SN_LOG_WARN, "peaks have to be measured again: %s", err.message);
    if (st)
        return 0;
    const size_t n = parse_lines((const char *)f.data, f.bytes, list);
    sn_file_close(&f);
    return n;
}

/* The newest lines first; the oldest falls off the end. */
static void write_lines(sonde_context *c, const entry *fresh, size_t n_fresh)
{
    char folder[sizeof c->machine.path];
    sonde_error err = {.status = SONDE_OK};
    sn_cache cache;
    if (!open_folder(c, folder, sizeof folder, true, &cache))
        return;
    entry kept[MAX_LINES];
    const size_t n = read_lines(c, &cache, kept);
    char text[sizeof HEADING + (size_t)MAX_LINES * LINE];
    size_t at = (size_t)snprintf(text, sizeof text, "%s\n", HEADING), lines = 0;
    for (size_t i = 0; i < n_fresh + n && lines < MAX_LINES; i++) {
        const entry *e = i < n_fresh ? &fresh[i] : &kept[i - n_fresh];
        bool replaced = false;
        for (size_t k = 0; k < n_fresh && i >= n_fresh; k++)
            replaced |= same_key(e, &fresh[k]);
        if (replaced)
            continue;
        at += (size_t)snprintf(
            text + at, sizeof text - at,
            "%d %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", e->threads,
            e->cores, e->level, e->mflops, e->l2, e->l3, e->memory, e->at_s, e->cpu);
        lines++;
    }
    if (sn_cache_write_text(&cache, file_name, text, at, &c->alloc, &err))
        sn_log_write(&c->core.log, SN_LOG_WARN, "measured peaks are not kept: %s", err.message);
    sn_cache_close(&cache);
}

/* ------------------------------------------------------------------ peaks of a context */
static sn_peaks peaks_of(const entry *e)
{
    return (sn_peaks){.threads = e->threads,
                      .gflops = (double)e->mflops / 1e3,
                      .l2_gbps = (double)e->l2 / 1e3,
                      .l3_gbps = (double)e->l3 / 1e3,
                      .memory_gbps = (double)e->memory / 1e3};
}

/* With the machine's lock held. */
static void look(sonde_context *c)
{
    sn_machine *m = &c->machine;
    if (m->looked)
        return;
    m->looked = true;
    find_path(m->path, sizeof m->path);
    sn_cpu_level_list(c->core.cpu.found, m->levels, sizeof m->levels);
    entry list[MAX_LINES];
    char folder[sizeof m->path];
    sn_cache cache;
    size_t n = 0;
    if (open_folder(c, folder, sizeof folder, false, &cache)) {
        n = read_lines(c, &cache, list);
        sn_cache_close(&cache);
    }
    const sn_peaks single = {.threads = 1}, own = {.threads = c->core.threads};
    const entry one = entry_of(c, &single, 0), all = entry_of(c, &own, 0);
    for (size_t i = 0; i < n; i++) {
        if (same_key(&list[i], &one) && !m->one.threads)
            m->one = peaks_of(&list[i]);
        if (same_key(&list[i], &all) && !m->all.threads) {
            m->all = peaks_of(&list[i]);
            m->measured_at_s = list[i].at_s;
        }
    }
}

void sn_api_describe_peaks(sonde_context *c, sn_profile *p)
{
    sn_api_peaks_for(c, c->core.threads, p);
}

void sn_api_peaks_for(sonde_context *c, int threads, sn_profile *p)
{
    sn_machine *m = &c->machine;
    pthread_mutex_lock(&m->lock);
    look(c);
    const sn_peaks peaks = threads == 1 ? m->one : m->all;
    pthread_mutex_unlock(&m->lock);
    if (!peaks.threads || peaks.threads != threads)
        return;
    p->peak_gflops = peaks.gflops;
    p->peak_gbps = peaks.memory_gbps;
    p->caches[0] = (sn_prof_cache){.bytes = (double)c->core.cpu.l2_bytes * (double)peaks.threads,
                                   .gbps = peaks.l2_gbps};
    p->caches[1] = (sn_prof_cache){.bytes = (double)c->core.cpu.l3_bytes, .gbps = peaks.l3_gbps};
}

static sonde_machine_peak shown(const sn_peaks *p)
{
    return (sonde_machine_peak){.threads = p->threads,
                                .gflops = p->gflops,
                                .l2_gbps = p->l2_gbps,
                                .l3_gbps = p->l3_gbps,
                                .memory_gbps = p->memory_gbps};
}

static void fill(sonde_context *c, sonde_machine_info *info)
{
    const sn_cpu *cpu = &c->core.cpu;
    sn_machine *m = &c->machine;
    pthread_mutex_lock(&m->lock);
    look(c);
    const sonde_machine_info all = {.struct_size = info->struct_size,
                                    .cpu = cpu->model,
                                    .level = sn_cpu_level_name(cpu->flags),
                                    .found = sn_cpu_level_name(cpu->found),
                                    .levels = m->levels,
                                    .cores = cpu->cores,
                                    .usable_cores = cpu->usable_cores,
                                    .threads = c->core.threads,
                                    .quota_cores = cpu->quota_cores,
                                    .l1_bytes = cpu->l1_bytes,
                                    .l2_bytes = cpu->l2_bytes,
                                    .l3_bytes = cpu->l3_bytes,
                                    .build = build_note(),
                                    .measured = m->all.threads > 0,
                                    .measured_at_s = m->measured_at_s,
                                    .one = shown(&m->one),
                                    .all = shown(&m->all),
                                    .cache_file = m->path};
    pthread_mutex_unlock(&m->lock);
    memcpy(info, &all, info->struct_size < sizeof all ? info->struct_size : sizeof all);
}

static sonde_status check_info(const sonde_machine_info *info, sonde_error *err)
{
    SN_REQUIRE(info, err);
    if (info->struct_size < sizeof(size_t))
        return sn_fail(err, SONDE_INVALID_ARGUMENT, "struct_size is not set; use SONDE_INIT");
    return SONDE_OK;
}

sonde_status sonde_machine_peaks(sonde_context *context, sonde_machine_info *info, sonde_error *err)
{
    SN_TRY(check_info(info, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    fill(c, info);
    sonde_context_release(c);
    return SONDE_OK;
}

sonde_status sonde_machine_calibrate(sonde_context *context, sonde_machine_info *info,
                                     sonde_error *err)
{
    SN_TRY(check_info(info, err));
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_machine *m = &c->machine;
    sn_peaks one, all;
    const sonde_status st =
        sn_peaks_measure(&c->core.cpu, c->core.pool, &c->alloc, &one, &all, err);
    if (st == SONDE_OK) {
        pthread_mutex_lock(&m->lock);
        look(c);
        m->one = one;
        m->all = all;
        m->measured_at_s = sn_wall_ns() / 1000000000u;
        const entry fresh[2] = {entry_of(c, &all, m->measured_at_s),
                                entry_of(c, &one, m->measured_at_s)};
        if (*m->path && !*build_note())
            write_lines(c, fresh, all.threads > 1 ? 2 : 1);
        pthread_mutex_unlock(&m->lock);
        fill(c, info);
    }
    sonde_context_release(c);
    return st;
}
