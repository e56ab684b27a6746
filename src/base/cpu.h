/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions this machine, its operating system and SONDE_CPU allow. */
#ifndef SN_BASE_CPU_H
#define SN_BASE_CPU_H

#include <stdatomic.h>

#include "base/status.h"

enum {
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...) SN_CPU_##name = 1 << bit,
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
};

/* The instructions that rows of kernels.inc need (checked there). The others of the list are found
 * and accepted as levels, but nothing runs differently with them, so no report says that they are
 * used.
 */
enum {
    SN_CPU_WITH_KERNELS = 0
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...) | ((used) ? 1 << bit : 0)
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
};

/* Those of the architecture that is compiled. */
#if defined(__x86_64__)
enum { SN_CPU_ON_X86_64 = -1, SN_CPU_ON_AARCH64 = 0 };
#else
enum { SN_CPU_ON_X86_64 = 0, SN_CPU_ON_AARCH64 = -1 };
#endif
enum {
    SN_CPU_HERE = 0
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...)                               \
    | (SN_CPU_ON_##architecture & 1 << bit)
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
};

typedef struct sn_cpu {
    /* SN_CPU_* that may be used. Changes only in sn_cpu_request, before the first session. */
    _Atomic uint32_t flags;
    uint32_t found;        /* SN_CPU_* the machine and its operating system support */
    uint32_t on_request;   /* SN_CPU_* that kernels need and sn_cpu_request has to ask for */
    bool (*request)(void); /* asks for them: sn_cpu_request_amx; tests have their own */
    char model[64];
    size_t l1_bytes, l2_bytes, l3_bytes; /* data caches; cautious guesses when unknown, never 0 */
    int cores;                           /* online */
    int usable_cores;                    /* after affinity and cgroup quota; at least 1 */
    double quota_cores;                  /* cgroup quota in cores, 0 = none */
} sn_cpu;

/* `restrict_to`: NULL, or a level ("baseline", "avx2", "avxvnni", "avx512", "vbmi", "vnni", "bf16",
 * "amx", "neon", ...): that level and all below it; a level the machine lacks or an unknown word is
 * an error. */
sonde_status sn_cpu_detect(sn_cpu *cpu, const char *restrict_to, sonde_error *err);

/* AMX has large registers. Linux keeps them from a process until it asks, because signal handlers
 * of all its threads need larger stacks from then on. So detection asks for nothing, and whoever is
 * about to use kernels asks first: every program that may need it, before it reads `flags`. Asks
 * only if kernels for `flags` need it. False: the system refused, and `flags` are without it from
 * now on. Thread-safe, cheap. */
bool sn_cpu_request(sn_cpu *cpu);
/* Asks for AMX, for the whole process and for ever. The system is asked once; the first answer
 * stays. Refused where seccomp forbids it or a thread has a signal stack that is too small. */
bool sn_cpu_request_amx(void);

/* Cores that affinity and cgroup quota leave (the quota rounded down, because threads beyond it
 * make the others wait); at least 1. `quota_cores` may be NULL. */
int sn_cpu_usable_cores(double *quota_cores);
/* The tightest cgroup quota (v2 cpu.max, v1 cfs) on the way from this process's group to the root,
 * in cores; 0 = none. `root` is put before /proc and /sys: "" is this machine, tests give a folder.
 */
double sn_cpu_quota(const char *root);
/* The same for memory (v2 memory.max, v1 limit_in_bytes), in bytes; 0 = none. */
double sn_memory_quota(const char *root);
/* Memory and swap of the machine, or what the quota leaves of them; 0: not known. */
double sn_usable_memory(void);

/* All of them, lowest first: "baseline, avx2, avx512", the words sn_cpu_detect takes. */
void sn_cpu_level_list(uint32_t flags, char *text, size_t bytes);
/* Those of them that no kernel uses: "vnni, bf16", or "". */
void sn_cpu_unused_list(uint32_t flags, char *text, size_t bytes);
/* The best level in `flags` that has kernels, as text ("avx512", "baseline"). */
const char *sn_cpu_level_name(uint32_t flags);
/* The word itself, static, if it is the level of one of these flags; else NULL. */
const char *sn_cpu_level_word(uint32_t flags, const char *word);

/* Inside a loop that waits for another thread: tells the core that nothing is to be gained by
 * racing ahead. Takes 10 to 150 cycles. A loop that may last goes on to sleep or to sched_yield. */
static inline void sn_cpu_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` is a no-op on most cores */
#endif
}

#endif
