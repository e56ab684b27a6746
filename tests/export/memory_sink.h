/* SPDX-License-Identifier: Apache-2.0 */
/* A sink that keeps the bytes, or refuses them after so many. */
#ifndef SONDE_TESTS_EXPORT_MEMORY_SINK_H
#define SONDE_TESTS_EXPORT_MEMORY_SINK_H

#include "export/export.h"
#include "profile/synthetic.h"

typedef struct memory_sink {
    sn_sink sink;
    char *text; /* always terminated */
    size_t n, cap, limit;
} memory_sink;

static inline bool memory_sink_write(sn_sink *sink, const void *data, size_t bytes)
{
    memory_sink *m = sink->user;
    if (m->n + bytes > m->limit)
        return false;
    if (m->n + bytes + 1 > m->cap) {
        m->cap = (m->n + bytes + 1) * 2;
        m->text = realloc(m->text, m->cap);
        if (!m->text)
            abort();
    }
    memcpy(m->text + m->n, data, bytes);
    m->n += bytes;
    m->text[m->n] = 0;
    return true;
}

static inline sn_sink *memory_sink_init(memory_sink *m)
{
    memset(m, 0, sizeof *m);
    m->limit = SIZE_MAX / 2;
    m->text = calloc(1, 1);
    if (!m->text)
        abort();
    m->sink.write = memory_sink_write;
    m->sink.user = m;
    return &m->sink;
}

#endif
