/* SPDX-License-Identifier: Apache-2.0 */
/* A line for each mapping: "7f32c000 default anon=512 dirty=512 N0=300 N1=212 kernelpagesize_kB=4".
 * The page size comes last, so the pages of a line are kept until it is known. */
#include "base/numa_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES = 8192, PATH_BYTES = 4096, MOST_PAGE_KIB = 1 << 24 };

/* "N12=345" */
static bool node_pages(const char *word, int *node, uint64_t *pages)
{
    char *end;
    if (word[0] != 'N' || word[1] < '0' || word[1] > '9')
        return false;
    const long id = strtol(word + 1, &end, 10);
    if (*end != '=' || id >= SN_ID_LIMIT)
        return false;
    errno = 0;
    *node = (int)id;
    *pages = strtoull(end + 1, &end, 10);
    return !errno && !*end;
}

static void add_line(char *line, const sn_topology *t, uint64_t *bytes)
{
    uint64_t page_kib = 4;
    bool own = false;
    char *save = NULL, copy[LINE_BYTES];
    snprintf(copy, sizeof copy, "%s", line);
    for (char *w = strtok_r(copy, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
        own |= strncmp(w, "anon=", 5) == 0 || strcmp(w, "heap") == 0 || strcmp(w, "huge") == 0;
        if (strncmp(w, "kernelpagesize_kB=", 18) == 0)
            page_kib = strtoull(w + 18, NULL, 10);
    }
    if (!own || page_kib > MOST_PAGE_KIB)
        return;
    for (char *w = strtok_r(line, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
        int node, k;
        uint64_t pages;
        if (node_pages(w, &node, &pages) && (k = sn_topology_node(t, node)) >= 0 &&
            pages <= UINT64_MAX >> 40)
            bytes[k] += pages * page_kib << 10;
    }
}

/* A plain file, or none: whatever lies there does not block. */
static FILE *open_plain(const char *root)
{
    char path[PATH_BYTES];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/proc/self/numa_maps", root) >= sizeof path)
        return NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    FILE *f = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!f)
        close(fd);
    return f;
}

bool sn_memory_by_node(const char *root, const sn_topology *t, uint64_t *bytes)
{
    char line[LINE_BYTES];
    uint64_t all = 0;
    memset(bytes, 0, (size_t)t->n_nodes * sizeof *bytes);
    FILE *f = open_plain(root);
    while (f && fgets(line, sizeof line, f))
        add_line(line, t, bytes);
    if (f)
        fclose(f);
    for (int k = 0; k < t->n_nodes; k++)
        all += bytes[k];
    return all > 0;
}
