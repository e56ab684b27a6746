/* SPDX-License-Identifier: Apache-2.0 */
/* Reading sysfs. Groups (cores, caches) are lists of CPUs in files of each member; a group is made
 * from the list of its first member and takes those that no group has yet. So the groups are a
 * partition whatever the files say, and a list that many CPUs share is read once. */
#include "base/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/affinity.h"

#define CPUS  "/sys/devices/system/cpu"
#define NODES "/sys/devices/system/node"
enum { NODE_LIMIT = 1024, TEXT_BYTES = 48 << 10, PATH_BYTES = 4096, MAX_CACHES = 16 };
enum { DISTANCE_HERE = 10, DISTANCE_AWAY = 20 }; /* what the firmware's table says by default */

typedef struct reader {
    sn_topology *t;
    const char *root;
    sn_id_set online, usable;
    char text[TEXT_BYTES]; /* a list of every second of 8192 CPUs takes 40 KB */
} reader;

/* ------------------------------------------------------------------ files */
long sn_topology_file(const char *root, const char *path, char *text, size_t bytes)
{
    char full[PATH_BYTES];
    struct stat st;
    if ((size_t)snprintf(full, sizeof full, "%s%s", root, path) >= sizeof full)
        return -1;
    const int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    size_t n = 0;
    bool fine = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    while (fine && n + 1 < bytes) {
        const ssize_t got = read(fd, text + n, bytes - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        fine = got >= 0;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    text[n] = 0;
    return fine ? (long)n : -1;
}

/* One file of a CPU or node: "/sys/devices/system/cpu/cpu%d/topology/core_id". */
static bool read_of(reader *r, const char *folder, const char *kind, int id, const char *file)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s%d/%s", folder, kind, id, file);
    return sn_topology_file(r->root, path, r->text, sizeof r->text) > 0;
}

/* A number of that file; `otherwise` where there is none, or one that no machine has. */
static int number_of(reader *r, int cpu, const char *file, int otherwise)
{
    char *end;
    if (!read_of(r, CPUS, "cpu", cpu, file))
        return otherwise;
    errno = 0;
    const long n = strtol(r->text, &end, 10);
    return end == r->text || errno || n < 0 || n > 1 << 24 ? otherwise : (int)n;
}

static bool list_in(reader *r, const char *path, sn_id_set *s)
{
    return sn_topology_file(r->root, path, r->text, sizeof r->text) > 0 &&
           sn_id_set_parse(r->text, s, NULL) && !sn_id_set_is_empty(s);
}

static bool list_of(reader *r, int cpu, const char *file, sn_id_set *s)
{
    return read_of(r, CPUS, "cpu", cpu, file) && sn_id_set_parse(r->text, s, NULL);
}

/* The numbers of folders "cpu7" or "node7". */
static void scan(const reader *r, const char *folder, const char *kind, sn_id_set *s)
{
    char path[PATH_BYTES];
    const size_t n = strlen(kind);
    snprintf(path, sizeof path, "%s%s", r->root, folder);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        sn_id_set one;
        if (strncmp(e->d_name, kind, n) == 0 && strspn(e->d_name + n, "0123456789") > 0 &&
            sn_id_set_parse(e->d_name + n, &one, NULL))
            sn_id_set_join(s, &one);
    }
    if (d)
        closedir(d);
}

/* A line "Name:\t0-3" of /proc/self/status. A cpuset limits both lists, so nothing else is asked.
 */
static bool allowed(reader *r, const char *name, sn_id_set *s)
{
    if (sn_topology_file(r->root, "/proc/self/status", r->text, sizeof r->text) <= 0)
        return false;
    for (char *line = r->text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        const size_t n = strlen(name);
        if (strncmp(line, name, n) == 0 && line[n] == ':')
            return sn_id_set_parse(line + n + 1, s, NULL);
    }
    return false;
}

/* ------------------------------------------------------------------ CPUs */
static void find_cpus(reader *r)
{
    const bool here = !*r->root;
    if (!list_in(r, CPUS "/online", &r->online))
        scan(r, CPUS, "cpu", &r->online);
    if (!(here ? sn_affinity_get(&r->usable) : allowed(r, "Cpus_allowed_list", &r->usable)))
        memset(&r->usable, 0, sizeof r->usable);
    if (here) /* a container's /sys may show less than the thread may use */
        sn_id_set_join(&r->online, &r->usable);
    if (sn_id_set_is_empty(&r->online))
        r->online = r->usable;
    if (sn_id_set_is_empty(&r->online))
        sn_id_set_add(&r->online, 0);
    sn_id_set_keep(&r->usable, &r->online);
    if (sn_id_set_is_empty(&r->usable)) /* somebody else's machine, or the files contradict */
        r->usable = r->online;
}

static sonde_status list_cpus(reader *r, sonde_error *err)
{
    sn_topology *t = r->t;
    t->n_cpus = sn_id_set_count(&r->online);
    const size_t bytes = (size_t)t->n_cpus * sizeof *t->cpus;
    t->cpus = sn_alloc(t->alloc, bytes);
    if (!t->cpus)
        return sn_fail_memory(err, bytes);
    int n = 0;
    for (int id = sn_id_set_next(&r->online, 0); id >= 0; id = sn_id_set_next(&r->online, id + 1))
        t->cpus[n++] = (sn_topo_cpu){.id = id,
                                     .package = -1,
                                     .core = -1,
                                     .l2 = -1,
                                     .cache = -1,
                                     .node = -1,
                                     .usable = sn_id_set_has(&r->usable, id)};
    return SONDE_OK;
}

static sn_topo_cpu *cpu_of(const sn_topology *t, int id)
{
    int low = 0, high = t->n_cpus;
    while (low < high) {
        const int mid = low + (high - low) / 2;
        if (t->cpus[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < t->n_cpus && t->cpus[low].id == id ? &t->cpus[low] : NULL;
}

/* Packages as the system numbers them become 0, 1, …; one whose number is not known is the first.
 */
static void find_packages(reader *r)
{
    sn_topology *t = r->t;
    for (int i = 0; i < t->n_cpus; i++) {
        sn_topo_cpu *c = &t->cpus[i];
        c->package = number_of(r, c->id, "topology/physical_package_id", 0);
    }
    /* Numbers have holes: those seen so far keep theirs with the sign turned. */
    for (int i = 0; i < t->n_cpus; i++) {
        if (t->cpus[i].package < 0)
            continue;
        const int raw = t->cpus[i].package, own = t->packages++;
        for (int k = i; k < t->n_cpus; k++)
            if (t->cpus[k].package == raw)
                t->cpus[k].package = -1 - own;
    }
    for (int i = 0; i < t->n_cpus; i++)
        t->cpus[i].package = -1 - t->cpus[i].package;
}

/* Where a CPU keeps the number of a kind of group. */
typedef int *place_fn(sn_topo_cpu *c);
static int *core_place(sn_topo_cpu *c)
{
    return &c->core;
}
static int *l2_place(sn_topo_cpu *c)
{
    return &c->l2;
}
static int *cache_place(sn_topo_cpu *c)
{
    return &c->cache;
}

/* The CPUs of `members` that are in no group yet, and `first` itself, are group `number`. */
static void make_group(sn_topology *t, sn_topo_cpu *first, const sn_id_set *members,
                       place_fn *place, int number)
{
    *place(first) = number;
    for (int id = sn_id_set_next(members, 0); id >= 0; id = sn_id_set_next(members, id + 1)) {
        sn_topo_cpu *c = cpu_of(t, id);
        if (c && *place(c) < 0)
            *place(c) = number;
    }
}

static void find_cores(reader *r)
{
    sn_topology *t = r->t;
    sn_id_set members;
    for (int i = 0; i < t->n_cpus; i++) {
        sn_topo_cpu *c = &t->cpus[i];
        if (c->core >= 0)
            continue;
        if (!list_of(r, c->id, "topology/core_cpus_list", &members) &&
            !list_of(r, c->id, "topology/thread_siblings_list", &members))
            memset(&members, 0, sizeof members); /* a core of its own */
        if (!sn_id_set_has(&members, c->id))
            memset(&members, 0, sizeof members);
        make_group(t, c, &members, core_place, t->cores++);
    }
    for (int i = 0; i < t->n_cpus; i++) {
        sn_topo_cpu *c = &t->cpus[i];
        for (int k = i - 1; k >= 0; k--)
            if (t->cpus[k].core == c->core) {
                c->thread = t->cpus[k].thread + 1;
                break;
            }
        if (c->thread >= t->threads_per_core)
            t->threads_per_core = c->thread + 1;
    }
}

/* The data caches of one CPU: the lists of its second and of its last level; false: none. */
static bool caches_of(reader *r, int cpu, sn_id_set *l2, sn_id_set *last)
{
    int deepest = 0;
    bool has_l2 = false;
    for (int k = 0; k < MAX_CACHES; k++) {
        char file[64];
        sn_id_set members;
        snprintf(file, sizeof file, "cache/index%d/level", k);
        const int level = number_of(r, cpu, file, 0);
        if (level < 2)
            continue;
        snprintf(file, sizeof file, "cache/index%d/type", k);
        if (read_of(r, CPUS, "cpu", cpu, file) && strncmp(r->text, "Instruction", 11) == 0)
            continue;
        snprintf(file, sizeof file, "cache/index%d/shared_cpu_list", k);
        if (!list_of(r, cpu, file, &members) || !sn_id_set_has(&members, cpu))
            continue;
        if (level == 2) {
            *l2 = members;
            has_l2 = true;
        }
        if (level > deepest) {
            *last = members;
            deepest = level;
        }
    }
    if (deepest && !has_l2) {
        memset(l2, 0, sizeof *l2);
        sn_id_set_add(l2, cpu);
    }
    return deepest > 0;
}

/* The CPUs that are like `c` in one number. */
static void alike(const sn_topology *t, const sn_topo_cpu *c, bool by_core, sn_id_set *members)
{
    memset(members, 0, sizeof *members);
    for (int i = 0; i < t->n_cpus; i++)
        if (by_core ? t->cpus[i].core == c->core : t->cpus[i].node == c->node)
            sn_id_set_add(members, t->cpus[i].id);
}

static void find_caches(reader *r)
{
    sn_topology *t = r->t;
    int l2_groups = 0;
    for (int i = 0; i < t->n_cpus; i++) {
        sn_topo_cpu *c = &t->cpus[i];
        sn_id_set l2, last;
        if (c->l2 >= 0 && c->cache >= 0)
            continue;
        if (!caches_of(r, c->id, &l2, &last)) {
            alike(t, c, true, &l2);
            alike(t, c, false, &last);
        }
        if (c->l2 < 0)
            make_group(t, c, &l2, l2_place, l2_groups++);
        if (c->cache < 0)
            make_group(t, c, &last, cache_place, t->caches++);
    }
}

/* ------------------------------------------------------------------ nodes */
/* "Node 0 MemTotal:       65536 kB" */
static bool meminfo_line(const char *text, const char *name, uint64_t *bytes)
{
    const char *at = strstr(text, name);
    char *end;
    if (!at)
        return false;
    at += strlen(name);
    errno = 0;
    const unsigned long long kib = strtoull(at, &end, 10);
    if (end == at || errno || kib > UINT64_MAX >> 11)
        return false;
    *bytes = (uint64_t)kib << 10;
    return true;
}

static void read_memory(reader *r, sn_topo_node *n, const sn_id_set *mems)
{
    n->has_memory = true; /* where nothing else is said */
    if (read_of(r, NODES, "node", n->id, "meminfo") &&
        meminfo_line(r->text, "MemTotal:", &n->memory_bytes)) {
        (void)meminfo_line(r->text, "MemFree:", &n->free_bytes);
        n->has_memory = n->memory_bytes > 0;
    }
    n->has_memory &= sn_id_set_has(mems, n->id);
}

/* "10 21 31": as many as there are nodes, or the line is not believed. */
static void read_distances(reader *r, int node)
{
    sn_topology *t = r->t;
    uint8_t *row = t->distances + (size_t)node * (size_t)t->n_nodes;
    for (int k = 0; k < t->n_nodes; k++)
        row[k] = k == node ? DISTANCE_HERE : DISTANCE_AWAY;
    if (!read_of(r, NODES, "node", t->nodes[node].id, "distance"))
        return;
    const char *at = r->text;
    for (int k = 0; k <= t->n_nodes; k++) {
        char *end;
        const long d = strtol(at, &end, 10);
        if ((end == at) != (k == t->n_nodes) || (end != at && (d < DISTANCE_HERE || d > 255)))
            return;
        at = end;
    }
    at = r->text;
    for (int k = 0; k < t->n_nodes; k++) {
        char *end;
        row[k] = (uint8_t)strtol(at, &end, 10);
        at = end;
    }
}

static sonde_status make_nodes(reader *r, const sn_id_set *ids, sonde_error *err)
{
    sn_topology *t = r->t;
    t->n_nodes = sn_id_set_count(ids);
    const size_t n = (size_t)t->n_nodes;
    t->nodes = sn_alloc_zero(t->alloc, n * sizeof *t->nodes);
    t->distances = sn_alloc_zero(t->alloc, n * n);
    if (!t->nodes || !t->distances)
        return sn_fail_memory(err, n * n + n * sizeof *t->nodes);
    int k = 0;
    for (int id = sn_id_set_next(ids, 0); id >= 0; id = sn_id_set_next(ids, id + 1))
        t->nodes[k++].id = id;
    return SONDE_OK;
}

static sonde_status find_nodes(reader *r, sonde_error *err)
{
    sn_topology *t = r->t;
    sn_id_set ids, mems, members;
    memset(&ids, 0, sizeof ids);
    if (!list_in(r, NODES "/online", &ids))
        scan(r, NODES, "node", &ids);
    memset(&ids.words[NODE_LIMIT / 64], 0, sizeof ids - NODE_LIMIT / 8);
    t->shows_nodes = !sn_id_set_is_empty(&ids);
    if (!t->shows_nodes)
        sn_id_set_add(&ids, 0);
    if (!allowed(r, "Mems_allowed_list", &mems) || sn_id_set_is_empty(&mems))
        mems = ids;
    SN_TRY(make_nodes(r, &ids, err));
    for (int k = 0; k < t->n_nodes; k++) {
        sn_topo_node *n = &t->nodes[k];
        read_memory(r, n, &mems);
        read_distances(r, k);
        if (!read_of(r, NODES, "node", n->id, "cpulist") ||
            !sn_id_set_parse(r->text, &members, NULL))
            continue;
        for (int id = sn_id_set_next(&members, 0); id >= 0; id = sn_id_set_next(&members, id + 1)) {
            sn_topo_cpu *c = cpu_of(t, id);
            if (c && c->node < 0)
                c->node = k;
        }
    }
    for (int i = 0; i < t->n_cpus; i++) /* in the list of no node */
        if (t->cpus[i].node < 0)
            t->cpus[i].node = 0;
    return SONDE_OK;
}

/* ------------------------------------------------------------------ sums */
static void count_all(sn_topology *t)
{
    for (int k = 0; k < t->n_nodes; k++)
        t->nodes[k].package = -1;
    for (int i = 0; i < t->n_cpus; i++) {
        const sn_topo_cpu *c = &t->cpus[i];
        sn_topo_node *n = &t->nodes[c->node];
        bool new_core = true, new_usable = c->usable;
        for (int k = 0; k < i && c->thread > 0; k++)
            if (t->cpus[k].core == c->core) {
                new_core &= t->cpus[k].node != c->node;
                new_usable &= !t->cpus[k].usable;
            }
        n->package = n->cpus == 0 || n->package == c->package ? c->package : -1;
        n->cpus++;
        n->cores += new_core;
        n->usable_cpus += c->usable;
        n->usable_cores += new_usable;
        t->usable_cpus += c->usable;
        t->usable_cores += new_usable;
    }
}

sonde_status sn_topology_read(sn_topology *t, const char *root, sn_allocator *alloc,
                              sonde_error *err)
{
    *t = (sn_topology){.alloc = alloc};
    reader *r = sn_alloc_zero(alloc, sizeof *r);
    if (!r)
        return sn_fail_memory(err, sizeof *r);
    r->t = t;
    r->root = root;
    find_cpus(r);
    sonde_status st = list_cpus(r, err);
    if (!st) {
        find_packages(r);
        find_cores(r);
        st = find_nodes(r, err);
    }
    if (!st) {
        find_caches(r);
        count_all(t);
    }
    sn_free(alloc, r, sizeof *r);
    return st;
}

void sn_topology_free(sn_topology *t)
{
    const size_t nodes = (size_t)t->n_nodes;
    sn_free(t->alloc, t->cpus, (size_t)t->n_cpus * sizeof *t->cpus);
    sn_free(t->alloc, t->nodes, nodes * sizeof *t->nodes);
    sn_free(t->alloc, t->distances, nodes * nodes);
    *t = (sn_topology){.alloc = t->alloc};
}

sonde_status sn_topology_get(_Atomic(sn_topology *) *where, const char *root, sn_allocator *alloc,
                             const sn_topology **t, sonde_error *err)
{
    sn_topology *known = atomic_load_explicit(where, memory_order_acquire), *own = NULL;
    if (!known) {
        own = sn_alloc_zero(alloc, sizeof *own);
        if (!own)
            return sn_fail_memory(err, sizeof *own);
        const sonde_status st = sn_topology_read(own, root, alloc, err);
        if (st == SONDE_OK && atomic_compare_exchange_strong(where, &known, own)) {
            *t = own;
            return SONDE_OK;
        }
        sn_topology_free(own); /* it failed, or another thread was first */
        sn_free(alloc, own, sizeof *own);
        if (st)
            return st;
    }
    *t = known;
    return SONDE_OK;
}

void sn_topology_drop(_Atomic(sn_topology *) *where)
{
    sn_topology *t = atomic_exchange(where, NULL);
    if (!t)
        return;
    sn_allocator *alloc = t->alloc;
    sn_topology_free(t);
    sn_free(alloc, t, sizeof *t);
}

/* ------------------------------------------------------------------ asking */
const sn_topo_cpu *sn_topology_cpu(const sn_topology *t, int id)
{
    return cpu_of(t, id);
}

int sn_topology_node(const sn_topology *t, int id)
{
    for (int k = 0; k < t->n_nodes; k++)
        if (t->nodes[k].id == id)
            return k;
    return -1;
}

int sn_topology_distance(const sn_topology *t, int from, int to)
{
    return t->distances[(size_t)from * (size_t)t->n_nodes + (size_t)to];
}

int sn_topology_memory_of(const sn_topology *t, int node)
{
    int best = -1;
    if (t->nodes[node].has_memory)
        return node;
    for (int k = 0; k < t->n_nodes; k++)
        if (t->nodes[k].has_memory &&
            (best < 0 || sn_topology_distance(t, node, k) < sn_topology_distance(t, node, best)))
            best = k;
    return best;
}
