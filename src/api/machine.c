/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the machine and its measured peaks. The file that keeps them is text: one line per
 * processor, instruction level, number of cores and number of threads, whole numbers only (MFLOP/s
 * and MB/s), so that no locale matters. A line that is not understood is skipped, a file that
 * cannot be read or written does not matter: peaks then last as long as the context. */
#include "sonde/experimental/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "api/internal.h"

#define HEADING "sonde peaks 1\n"
enum { MAX_LINES = 64, LINE = 320 };

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
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    if (cache && cache[0] == '/') /* relative ones are to be ignored, says the standard */
        n = snprintf(path, bytes, "%s/sonde/peaks", cache);
    else if (home && home[0] == '/')
        n = snprintf(path, bytes, "%s/.cache/sonde/peaks", home);
    if (n <= 0 || (size_t)n >= bytes)
        path[0] = 0;
}

static size_t read_lines(const char *path, entry *list)
{
    char line[LINE];
    size_t n = 0;
    struct stat st;
    FILE *f = *path && stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    if (!f)
        return 0;
    bool ours = fgets(line, sizeof line, f) && strcmp(line, HEADING) == 0;
    for (int tries = 0; ours && n < MAX_LINES && tries < 4 * MAX_LINES; tries++) {
        if (!fgets(line, sizeof line, f))
            break;
        n += parse(line, &list[n]);
    }
    fclose(f);
    return n;
}

static void make_folders(const char *path)
{
    char part[1024];
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            (void)mkdir(part, 0777);
            *p = '/';
        }
}

/* The newest lines first; the oldest falls off the end. */
static void write_lines(const char *path, const entry *fresh, size_t n_fresh)
{
    entry kept[MAX_LINES];
    const size_t n = read_lines(path, kept);
    char text[sizeof HEADING + (size_t)MAX_LINES * LINE];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", HEADING), lines = 0;
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
    make_folders(path);
    (void)sn_file_write(path, text, at, NULL);
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
    const size_t n = read_lines(m->path, list);
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
            write_lines(m->path, fresh, all.threads > 1 ? 2 : 1);
        pthread_mutex_unlock(&m->lock);
        fill(c, info);
    }
    sonde_context_release(c);
    return st;
}
