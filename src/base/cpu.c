/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor can do is one question, whether the operating system saves the registers it
 * takes is another: a level counts as found only when both answers are yes. Whether this process
 * may use the registers of AMX is a third, which is not asked before it has to be: asking makes
 * the signal frames of the whole process three times as large. */
#include "base/cpu.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#else
#include <sys/auxv.h>
#endif

typedef struct level {
    uint32_t flag;
    const char *text;
} level;

/* All rows of the list, lowest first. */
static const level levels[] = {
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...) {SN_CPU_##name, word},
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
};
enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

#if defined(__x86_64__)
/* Bits of XCR0: the state the operating system saves when it switches threads. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xE6, XCR0_AMX = 0x60000 };
/* arch_prctl: which large registers the kernel can save, and asking for those with one number. */
enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

static uint64_t read_xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return ((uint64_t)hi << 32) | lo;
}

static bool has(uint64_t word, uint64_t bits)
{
    return (word & bits) == bits;
}

static bool is_amd(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx &&
           d == signature_AMD_edx;
}

static bool kernel_supports_amx(void)
{
    uint64_t supported = 0;
    return syscall(SYS_arch_prctl, ARCH_GET_XCOMP_SUPP, &supported) == 0 &&
           has(supported, 1ull << XFEATURE_XTILEDATA);
}

static bool ask_for_amx(void)
{
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* How an instruction set is found: all these bits, and all these flags. */
typedef struct detection {
    uint32_t flag, on_top_of;
    uint64_t xcr0;                            /* what the operating system saves */
    uint32_t leaf1_ecx;                       /* of cpuid 1 */
    uint32_t leaf7_ebx, leaf7_ecx, leaf7_edx; /* of cpuid 7 */
    uint32_t leaf7_1_eax;                     /* of cpuid 7, 1 */
    bool (*also)(void);                       /* NULL: nothing else */
} detection;

#define DETECT_X86_64(...) {__VA_ARGS__},
#define DETECT_AARCH64(...)

/* What this machine has; false: too old for any row. */
static bool read_machine(detection *m)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &m->leaf1_ecx, &d) || !has(m->leaf1_ecx, bit_OSXSAVE))
        return false;
    m->xcr0 = read_xcr0();
    if (!__get_cpuid_count(7, 0, &a, &m->leaf7_ebx, &m->leaf7_ecx, &m->leaf7_edx))
        return false;
    if (a >= 1) /* sub-leaves */
        __get_cpuid_count(7, 1, &m->leaf7_1_eax, &b, &c, &d);
    return true;
}

static bool is_there(const detection *d, const detection *m)
{
    return has(m->xcr0, d->xcr0) && has(m->leaf1_ecx, d->leaf1_ecx) &&
           has(m->leaf7_ebx, d->leaf7_ebx) && has(m->leaf7_ecx, d->leaf7_ecx) &&
           has(m->leaf7_edx, d->leaf7_edx) && has(m->leaf7_1_eax, d->leaf7_1_eax) &&
           (!d->also || d->also());
}

static void find_model(char *model, size_t bytes)
{
    uint32_t words[12] = {0};
    for (uint32_t i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                         &words[4 * i + 3]))
            break;
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    const char *p = text + strspn(text, " ");
    snprintf(model, bytes, "%s", *p ? p : "x86_64");
}
#else
static bool ask_for_amx(void)
{
    return false;
}

/* How an instruction set is found: all these bits, and all these flags. */
typedef struct detection {
    uint32_t flag, on_top_of;
    unsigned long hwcap, hwcap2; /* the kernel's AT_HWCAP and AT_HWCAP2 */
} detection;

#define DETECT_X86_64(...)
#define DETECT_AARCH64(...) {__VA_ARGS__},

static bool read_machine(detection *m)
{
    m->hwcap = getauxval(AT_HWCAP);
    m->hwcap2 = getauxval(AT_HWCAP2);
    return true;
}

static bool is_there(const detection *d, const detection *m)
{
    return (m->hwcap & d->hwcap) == d->hwcap && (m->hwcap2 & d->hwcap2) == d->hwcap2;
}

static void find_model(char *model, size_t bytes)
{
    snprintf(model, bytes, "aarch64");
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (!f)
        return;
    char line[256], text[64];
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %63[^\n]", text) == 1 ||
            sscanf(line, "Model : %63[^\n]", text) == 1) {
            snprintf(model, bytes, "%s", text);
            break;
        }
    fclose(f);
}
#endif

/* The rows of this architecture. */
static const detection detections[] = {
#define SN_INSTRUCTION_SET(name, bit, word, architecture, used, ...)                               \
    DETECT_##architecture(.flag = SN_CPU_##name, __VA_ARGS__)
#include "base/instruction_sets.inc"
#undef SN_INSTRUCTION_SET
};

static uint32_t find_flags(void)
{
    detection machine = {0};
    uint32_t flags = 0;
    if (!read_machine(&machine))
        return 0;
    for (size_t i = 0; i < sizeof detections / sizeof *detections; i++) {
        const detection *d = &detections[i];
        if ((d->on_top_of & ~flags) == 0 && is_there(d, &machine))
            flags |= d->flag;
    }
    return flags;
}

/* A cache's size as the kernel tells it ("48K"), for machines whose libc does not know. */
static size_t cache_from_sys(int cache_level)
{
    for (int index = 0; index < 8; index++) {
        char path[96], type[32];
        int found = 0;
        size_t size = 0;
        char unit = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        FILE *f = fopen(path, "re");
        if (!f)
            return 0;
        if (fscanf(f, "%d", &found) != 1)
            found = 0;
        fclose(f);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        f = fopen(path, "re");
        if (!f || fscanf(f, "%31s", type) != 1)
            type[0] = '\0';
        if (f)
            fclose(f);
        if (found != cache_level || strcmp(type, "Instruction") == 0)
            continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        f = fopen(path, "re");
        if (!f)
            continue;
        int fields = fscanf(f, "%zu%c", &size, &unit);
        fclose(f);
        if (fields >= 1 && size < SIZE_MAX >> 20)
            return unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : size;
    }
    return 0;
}

static size_t cache_bytes(int sysconf_name, int cache_level, size_t guess)
{
    long told = sysconf(sysconf_name);
    if (told > 0)
        return (size_t)told;
    size_t found = cache_from_sys(cache_level);
    return found ? found : guess;
}

void sn_cpu_level_list(uint32_t found, char *text, size_t bytes)
{
    size_t n = (size_t)snprintf(text, bytes, "baseline");
    for (int i = 0; i < LEVEL_COUNT; i++)
        if ((levels[i].flag & found) && n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, ", %s", levels[i].text);
}

void sn_cpu_unused_list(uint32_t flags, char *text, size_t bytes)
{
    size_t n = 0;
    *text = 0;
    for (int i = 0; i < LEVEL_COUNT; i++)
        if ((levels[i].flag & flags & ~(uint32_t)SN_CPU_WITH_KERNELS) && n < bytes)
            n += (size_t)snprintf(text + n, bytes - n, "%s%s", n ? ", " : "", levels[i].text);
}

static sonde_status restrict_flags(sn_cpu *cpu, const char *word, sonde_error *err)
{
    if (strcmp(word, "baseline") == 0) {
        cpu->flags = 0;
        return SONDE_OK;
    }
    char words[128];
    sn_cpu_level_list(cpu->found, words, sizeof words);
    uint32_t below = 0;
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (!(levels[i].flag & SN_CPU_HERE))
            continue;
        below |= levels[i].flag;
        if (strcmp(word, levels[i].text) != 0)
            continue;
        if (!(levels[i].flag & cpu->found))
            return sn_fail(err, SONDE_UNSUPPORTED,
                           "this machine does not support the instruction set '%s'; it supports %s",
                           word, words);
        cpu->flags = cpu->found & below;
        return SONDE_OK;
    }
    return sn_fail(err, SONDE_INVALID_ARGUMENT,
                   "unknown instruction set '%s'; this machine supports %s", word, words);
}

sonde_status sn_cpu_detect(sn_cpu *cpu, const char *restrict_to, sonde_error *err)
{
    memset(cpu, 0, sizeof *cpu);
    cpu->found = find_flags();
    cpu->flags = cpu->found;
    cpu->on_request = (SN_CPU_AMX | SN_CPU_AMXFP16) & SN_CPU_WITH_KERNELS;
    cpu->request = sn_cpu_request_amx;
    find_model(cpu->model, sizeof cpu->model);
    cpu->l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 1, (size_t)32 << 10);
    cpu->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 2, (size_t)512 << 10);
    cpu->l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, 3, (size_t)4 << 20);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu->cores = online > 0 ? (int)online : 1;
    cpu->usable_cores = sn_cpu_usable_cores(&cpu->quota_cores);
    return restrict_to ? restrict_flags(cpu, restrict_to, err) : SONDE_OK;
}

bool sn_cpu_request_amx(void)
{
    enum { NOT_ASKED, GRANTED, REFUSED };
    static _Atomic int answer = NOT_ASKED;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == NOT_ASKED) {
        /* Threads that get here together all ask, which is harmless; one answer is kept. */
        const int now = ask_for_amx() ? GRANTED : REFUSED;
        if (atomic_compare_exchange_strong(&answer, &known, now))
            known = now;
    }
    return known == GRANTED;
}

bool sn_cpu_request(sn_cpu *cpu)
{
    const uint32_t wanted = cpu->flags & cpu->on_request;
    if (wanted == 0 || cpu->request())
        return true;
    atomic_fetch_and(&cpu->flags, ~wanted);
    return false;
}

const char *sn_cpu_level_name(uint32_t flags)
{
    const char *best = "baseline";
    for (int i = 0; i < LEVEL_COUNT; i++)
        if (levels[i].flag & flags & SN_CPU_WITH_KERNELS)
            best = levels[i].text;
    return best;
}

const char *sn_cpu_level_word(uint32_t flags, const char *word)
{
    for (int i = 0; i < LEVEL_COUNT; i++)
        if ((levels[i].flag & flags) && strcmp(levels[i].text, word) == 0)
            return levels[i].text;
    return NULL;
}
