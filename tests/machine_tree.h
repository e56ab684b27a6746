/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of what /sys and /proc show of machines that are not here, made in a folder:
 *     char root[TEMP_PATH];
 *     temp_make(root);
 *     machine_tree(root, &(machine){.sockets = 2, .nodes = 1, .cores = 32, .threads = 2});
 *     … sn_topology_read(&t, root, alloc, &err) …
 *     temp_remove(root);
 * CPUs are numbered as Linux numbers them on x86: the first threads of all cores, then the second
 * ones. What is special about a machine is put or removed afterwards. */
#ifndef SONDE_TESTS_MACHINE_TREE_H
#define SONDE_TESTS_MACHINE_TREE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temp_folder.h"

typedef struct machine {
    int sockets, nodes, cores, threads; /* nodes of a socket, cores of a node, threads of a core */
    int cache_cores;                    /* that share a last-level cache; 0: those of a node */
    const char *allowed;                /* CPUs that the process may use; NULL: all */
} machine;

static inline void tree_path(char *full, size_t bytes, const char *root, const char *path)
{
    if ((size_t)snprintf(full, bytes, "%s%s", root, path) >= bytes)
        abort();
}

/* Writes root + path, making its folders. */
static inline void tree_put_bytes(const char *root, const char *path, const void *data,
                                  size_t bytes)
{
    char full[512];
    tree_path(full, sizeof full, root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0700);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f))
        abort();
}

__attribute__((format(printf, 3, 4))) static inline void
tree_put(const char *root, const char *path, const char *fmt, ...)
{
    char text[8192];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    tree_put_bytes(root, path, text, strlen(text));
}

static inline void tree_remove(const char *root, const char *path)
{
    char full[512];
    tree_path(full, sizeof full, root, path);
    if (unlink(full) != 0 && !temp_remove(full))
        abort();
}

/* The numbers of `threads` threads of cores first … first + n - 1, of `cores` cores in all. */
static inline const char *tree_list(char *text, int first, int n, int cores, int threads)
{
    int at = 0;
    for (int k = 0; k < threads; k++)
        at += n > 1 ? sprintf(text + at, "%s%d-%d", k ? "," : "", k * cores + first,
                              k * cores + first + n - 1)
                    : sprintf(text + at, "%s%d", k ? "," : "", k * cores + first);
    return text;
}

static inline void tree_cache(const char *root, int cpu, int index, int level, const char *type,
                              const char *shared)
{
    char path[128];
    sprintf(path, "/sys/devices/system/cpu/cpu%d/cache/index%d/level", cpu, index);
    tree_put(root, path, "%d\n", level);
    sprintf(path, "/sys/devices/system/cpu/cpu%d/cache/index%d/type", cpu, index);
    tree_put(root, path, "%s\n", type);
    sprintf(path, "/sys/devices/system/cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, index);
    tree_put(root, path, "%s\n", shared);
}

static inline void tree_cpu(const char *root, const machine *m, int cpu)
{
    const int per_node = m->cores, cores = m->sockets * m->nodes * per_node, core = cpu % cores;
    const int group = m->cache_cores ? m->cache_cores : per_node;
    char path[128], text[128];
    sprintf(path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    tree_put(root, path, "%d\n", core / (per_node * m->nodes));
    sprintf(path, "/sys/devices/system/cpu/cpu%d/topology/core_id", cpu);
    tree_put(root, path, "%d\n", core % (per_node * m->nodes));
    sprintf(path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    tree_put(root, path, "%s\n", tree_list(text, core, 1, cores, m->threads));
    tree_cache(root, cpu, 0, 1, "Data", text);
    tree_cache(root, cpu, 1, 1, "Instruction", text);
    tree_cache(root, cpu, 2, 2, "Unified", text);
    tree_cache(root, cpu, 3, 3, "Unified",
               tree_list(text, core / group * group, group, cores, m->threads));
}

static inline void tree_node(const char *root, const machine *m, int node)
{
    const int nodes = m->sockets * m->nodes, cores = nodes * m->cores;
    char path[128], text[1024];
    int at = 0;
    sprintf(path, "/sys/devices/system/node/node%d/cpulist", node);
    tree_put(root, path, "%s\n", tree_list(text, node * m->cores, m->cores, cores, m->threads));
    sprintf(path, "/sys/devices/system/node/node%d/meminfo", node);
    tree_put(root, path,
             "Node %d MemTotal:       67108864 kB\nNode %d MemFree:        33554432 kB\n", node,
             node);
    for (int k = 0; k < nodes; k++)
        at += sprintf(text + at, "%s%d", k ? " " : "",
                      k == node                         ? 10
                      : k / m->nodes == node / m->nodes ? 12
                                                        : 21);
    sprintf(path, "/sys/devices/system/node/node%d/distance", node);
    tree_put(root, path, "%s\n", text);
}

static inline void machine_tree(const char *root, const machine *m)
{
    const int nodes = m->sockets * m->nodes, cpus = nodes * m->cores * m->threads;
    tree_put(root, "/sys/devices/system/cpu/online", "0-%d\n", cpus - 1);
    tree_put(root, "/sys/devices/system/node/online", nodes > 1 ? "0-%d\n" : "%d\n", nodes - 1);
    for (int cpu = 0; cpu < cpus; cpu++)
        tree_cpu(root, m, cpu);
    for (int node = 0; node < nodes; node++)
        tree_node(root, m, node);
    char all[32];
    sprintf(all, "0-%d", cpus - 1);
    tree_put(root, "/proc/self/status",
             "Name:\tsonde\nCpus_allowed_list:\t%s\n"
             "Mems_allowed_list:\t0-%d\n",
             m->allowed ? m->allowed : all, nodes - 1);
    tree_put(root, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
}

#endif
