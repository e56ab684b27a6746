/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of the machine and its measured peaks. The file that keeps them is text: one line per
 * processor, instruction level, number of cores and number of threads, whole numbers only (MFLOP/s
 * and MB/s), so that no locale matters. Below it a line "types …" has the peaks of arithmetic that
 * is not f32, by name; files of earlier versions have none, and those versions skip it. A line that
 * is not understood is skipped, a file that cannot be read or written costs a warning: peaks then
 * last as long as the context. */
#include "records/machine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"

#define HEADING "sonde peaks 2"
static const char file_name[] = "peaks";
enum { MAX_ENTRIES = 64, LINE = 320, MAX_FILE_BYTES = 1 << 20 };

/* What makes figures of this build useless to others; such peaks are not kept. */
const char *sn_machine_build_note(void)
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
    uint64_t mops[SN_ARITH_COUNT], l2, l3, memory, at_s;
    char cpu[64];
} entry;

static const uint64_t most = (uint64_t)1 << 40; /* a million times what machines do */

static void take_cpu(entry *e, const char *name)
{
    snprintf(e->cpu, sizeof e->cpu, "%s", name);
    e->cpu[strcspn(e->cpu, "\n")] = 0;
}

static bool parse(const char *line, entry *e)
{
    int used = 0;
    *e = (entry){.threads = 0};
    if (sscanf(line, "%d %d %23s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n",
               &e->threads, &e->cores, e->level, &e->mops[SN_ARITH_F32], &e->l2, &e->l3, &e->memory,
               &e->at_s, &used) != 8 ||
        !used)
        return false;
    take_cpu(e, line + used);
    const uint64_t mflops = e->mops[SN_ARITH_F32];
    return e->threads > 0 && mflops > 0 && mflops < most && e->l2 < most && e->l3 < most &&
           e->memory < most;
}

/* "types 2 8 amx i8=700000 i8_tiles=6000000 of Intel(R) Xeon(R)": whose they are, and what of it.
 * Names that are not known here are of later versions. */
static bool parse_types(const char *line, entry *e)
{
    int used = 0;
    *e = (entry){.threads = 0};
    if (sscanf(line, "types %d %d %23s %n", &e->threads, &e->cores, e->level, &used) != 3 || !used)
        return false;
    for (;;) {
        char name[24];
        uint64_t mops;
        int next = 0;
        line += used;
        if (sscanf(line, "%23[a-z0-9_]=%" SCNu64 " %n", name, &mops, &next) != 2 || !next)
            break;
        used = next;
        const sn_arithmetic a = sn_arithmetic_named(name, strlen(name));
        if (a != SN_ARITH_NONE && a != SN_ARITH_F32 && mops < most)
            e->mops[a] = mops;
    }
    if (strncmp(line, "of ", 3) != 0)
        return false;
    take_cpu(e, line + 3);
    return true;
}

static entry entry_of(const sn_machine *m, const sn_peaks *p, uint64_t at_s)
{
    const sn_cpu *cpu = &m->ctx->cpu;
    entry e = {.threads = p->threads,
               .cores = cpu->cores,
               .l2 = (uint64_t)(p->l2_gbps * 1e3 + 0.5),
               .l3 = (uint64_t)(p->l3_gbps * 1e3 + 0.5),
               .memory = (uint64_t)(p->memory_gbps * 1e3 + 0.5),
               .at_s = at_s};
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        e.mops[a] = (uint64_t)(p->gops[a] * 1e3 + 0.5);
    snprintf(e.level, sizeof e.level, "%s", sn_cpu_level_name(cpu->flags));
    take_cpu(&e, cpu->model);
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
    const size_t n = sn_cache_user_folder(path, bytes);
    if (!n || n + 1 + sizeof file_name > bytes)
        path[0] = 0;
    else
        snprintf(path + n, bytes - n, "/%s", file_name);
}

/* The folder of the file; false: there is none, or it was refused: that is said once. */
static bool open_folder(sn_machine *m, char *folder, size_t bytes, bool make, sn_cache *cache)
{
    sonde_error err = {.status = SONDE_OK};
    if (!sn_cache_user_folder(folder, bytes))
        return false;
    const sonde_status st = sn_cache_open(cache, folder, make, &err);
    if (st && st != SONDE_NOT_FOUND) {
        sn_log_write(&m->ctx->log, SN_LOG_WARN, "measured peaks are neither read nor stored: %s",
                     err.message);
        m->path[0] = 0;
    }
    return st == SONDE_OK;
}

/* The peaks of types belong to the line of the same key above them. */
static void add_types(entry *list, size_t n, const entry *types)
{
    for (size_t i = 0; i < n; i++)
        for (int a = 0; a < SN_ARITH_COUNT && same_key(&list[i], types); a++)
            if (types->mops[a])
                list[i].mops[a] = types->mops[a];
}

static size_t parse_lines(const char *text, size_t bytes, entry *list)
{
    const char *end = text + bytes;
    size_t n = 0;
    for (const char *at = text + sizeof HEADING, *stop; at < end; at = stop + 1) {
        entry e;
        char line[LINE];
        stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            break;
        const size_t length = (size_t)(stop - at) < sizeof line ? (size_t)(stop - at) : 0;
        memcpy(line, at, length);
        line[length] = 0;
        if (parse_types(line, &e))
            add_types(list, n, &e);
        else if (n < MAX_ENTRIES && parse(line, &e))
            list[n++] = e;
    }
    return n;
}

static size_t read_lines(const sn_machine *m, const sn_cache *cache, entry *list)
{
    sonde_error err = {.status = SONDE_OK};
    sn_file f;
    const sonde_status st =
        sn_cache_read_text(cache, file_name, HEADING, MAX_FILE_BYTES, m->ctx->alloc, &f, &err);
    if (st && st != SONDE_NOT_FOUND)
        sn_log_write(&m->ctx->log, SN_LOG_WARN,
                     "stored peaks are not used, run 'sonde doctor --calibrate' again: %s",
                     err.message);
    if (st)
        return 0;
    const size_t n = parse_lines((const char *)f.data, f.bytes, list);
    sn_file_close(&f);
    return n;
}

static size_t put_entry(char *text, size_t bytes, const entry *e)
{
    size_t at = (size_t)snprintf(
        text, bytes, "%d %d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
        e->threads, e->cores, e->level, e->mops[SN_ARITH_F32], e->l2, e->l3, e->memory, e->at_s,
        e->cpu);
    at +=
        (size_t)snprintf(text + at, bytes - at, "types %d %d %s ", e->threads, e->cores, e->level);
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        if (a != SN_ARITH_F32 && e->mops[a])
            at += (size_t)snprintf(text + at, bytes - at, "%s=%" PRIu64 " ",
                                   sn_arithmetic_name((sn_arithmetic)a), e->mops[a]);
    return at + (size_t)snprintf(text + at, bytes - at, "of %s\n", e->cpu);
}

/* What is too large for small stacks. */
typedef struct rewriting {
    entry kept[MAX_ENTRIES];
    char text[sizeof HEADING + (size_t)MAX_ENTRIES * 2 * LINE];
} rewriting;

/* The newest entries first; the oldest falls off the end. */
static void write_lines(sn_machine *m, const entry *fresh, size_t n_fresh)
{
    char folder[sizeof m->path];
    sonde_error err = {.status = SONDE_OK};
    sn_cache cache;
    if (!open_folder(m, folder, sizeof folder, true, &cache))
        return;
    rewriting *r = sn_alloc(m->ctx->alloc, sizeof *r);
    if (!r) {
        sn_cache_close(&cache);
        return;
    }
    const size_t n = read_lines(m, &cache, r->kept);
    size_t at = (size_t)snprintf(r->text, sizeof r->text, "%s\n", HEADING), entries = 0;
    for (size_t i = 0; i < n_fresh + n && entries < MAX_ENTRIES; i++) {
        const entry *e = i < n_fresh ? &fresh[i] : &r->kept[i - n_fresh];
        bool replaced = false;
        for (size_t k = 0; k < n_fresh && i >= n_fresh; k++)
            replaced |= same_key(e, &fresh[k]);
        if (replaced)
            continue;
        at += put_entry(r->text + at, sizeof r->text - at, e);
        entries++;
    }
    if (sn_cache_write_text(&cache, file_name, r->text, at, m->ctx->alloc, &err))
        sn_log_write(&m->ctx->log, SN_LOG_WARN, "measured peaks are not stored: %s", err.message);
    sn_free(m->ctx->alloc, r, sizeof *r);
    sn_cache_close(&cache);
}

/* ------------------------------------------------------------------ peaks of a context */
static sn_peaks peaks_of(const entry *e)
{
    sn_peaks p = {.threads = e->threads,
                  .l2_gbps = (double)e->l2 / 1e3,
                  .l3_gbps = (double)e->l3 / 1e3,
                  .memory_gbps = (double)e->memory / 1e3};
    for (int a = 0; a < SN_ARITH_COUNT; a++)
        p.gops[a] = (double)e->mops[a] / 1e3;
    return p;
}

/* With the machine's lock held. */
static void look(sn_machine *m)
{
    if (m->looked)
        return;
    m->looked = true;
    find_path(m->path, sizeof m->path);
    sn_cpu_level_list(m->ctx->cpu.found, m->levels, sizeof m->levels);
    sn_cpu_unused_list(m->ctx->cpu.found, m->unused, sizeof m->unused);
    const size_t bytes = MAX_ENTRIES * sizeof(entry); /* too many for small stacks */
    entry *list = sn_alloc(m->ctx->alloc, bytes);
    char folder[sizeof m->path];
    sn_cache cache;
    size_t n = 0;
    if (list && open_folder(m, folder, sizeof folder, false, &cache)) {
        n = read_lines(m, &cache, list);
        sn_cache_close(&cache);
    }
    const sn_peaks single = {.threads = 1}, own = {.threads = m->ctx->threads};
    const entry one = entry_of(m, &single, 0), all = entry_of(m, &own, 0);
    for (size_t i = 0; i < n; i++) {
        if (same_key(&list[i], &one) && !m->one.threads)
            m->one = peaks_of(&list[i]);
        if (same_key(&list[i], &all) && !m->all.threads) {
            m->all = peaks_of(&list[i]);
            m->measured_at_s = list[i].at_s;
        }
    }
    if (list)
        sn_free(m->ctx->alloc, list, bytes);
}

void sn_machine_peaks(sn_machine *m, sn_peaks *one, sn_peaks *all, uint64_t *measured_at_s)
{
    pthread_mutex_lock(&m->lock);
    look(m);
    *one = m->one;
    *all = m->all;
    *measured_at_s = m->measured_at_s;
    pthread_mutex_unlock(&m->lock);
}

const char *sn_machine_instructions(const sn_machine *m, sn_arithmetic a)
{
    return sn_peaks_instructions(a, m->ctx->cpu.flags);
}

void sn_machine_describe_peaks(sn_machine *m, int threads, sn_profile *p)
{
    sn_peaks one, all;
    uint64_t at_s;
    sn_machine_peaks(m, &one, &all, &at_s);
    const sn_peaks peaks = threads == 1 ? one : all;
    if (!peaks.threads || peaks.threads != threads)
        return;
    memcpy(p->peak_gops, peaks.gops, sizeof p->peak_gops);
    p->peak_gbps = peaks.memory_gbps;
    p->caches[0] = (sn_prof_cache){.bytes = (double)m->ctx->cpu.l2_bytes * (double)peaks.threads,
                                   .gbps = peaks.l2_gbps};
    p->caches[1] = (sn_prof_cache){.bytes = (double)m->ctx->cpu.l3_bytes, .gbps = peaks.l3_gbps};
}

sonde_status sn_machine_calibrate(sn_machine *m, sonde_error *err)
{
    sn_peaks one, all;
    (void)sn_cpu_request(&m->ctx->cpu); /* what is refused has no flag afterwards */
    SN_TRY(sn_peaks_measure(&m->ctx->cpu, m->ctx->pool, m->ctx->alloc, &one, &all, err));
    pthread_mutex_lock(&m->lock);
    look(m);
    m->one = one;
    m->all = all;
    m->measured_at_s = sn_wall_ns() / 1000000000u;
    const entry fresh[2] = {entry_of(m, &all, m->measured_at_s),
                            entry_of(m, &one, m->measured_at_s)};
    if (*m->path && !*sn_machine_build_note())
        write_lines(m, fresh, all.threads > 1 ? 2 : 1);
    pthread_mutex_unlock(&m->lock);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ life */
void sn_machine_init(sn_machine *m, sn_context *ctx)
{
    *m = (sn_machine){.ctx = ctx};
    pthread_mutex_init(&m->lock, NULL);
}

void sn_machine_fini(sn_machine *m)
{
    sn_counters_close(m->hw);
    pthread_mutex_destroy(&m->lock);
}

void sn_machine_after_fork(sn_machine *m)
{
    pthread_mutex_init(&m->lock, NULL);
    m->counting = false;
    m->hw = NULL; /* it counts the parent's threads */
    atomic_store(&m->ctx->trace->counters, NULL);
}
