/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that a session ran last, as text: histories tell measurements apart by them. */
#include <stdarg.h>
#include <stdio.h>

#include "api/internal.h"
#include "plan/binding.h"
#include "sonde/experimental/inspect.h"

typedef struct line {
    char *text;
    size_t bytes, n; /* n: of all of it */
} line;

SONDE_PRINTF(2, 3) static void add(line *l, const char *form, ...)
{
    va_list args;
    va_start(args, form);
    const size_t room = l->n < l->bytes ? l->bytes - l->n : 0;
    const int n = vsnprintf(room ? l->text + l->n : NULL, room, form, args);
    l->n += n > 0 ? (size_t)n : 0;
    va_end(args);
}

static const char *kind_text(int64_t kind)
{
    return kind == SN_KIND_SEQUENCE   ? "sequence"
           : kind == SN_KIND_OPTIONAL ? "optional"
           : kind == SN_KIND_MAP      ? "map"
                                      : "nothing";
}

/* Inputs without a value are initializers that nobody overrode. */
static void describe(const sn_binding *b, line *l)
{
    const sn_graph *g = b->program->graph;
    const int64_t *w = b->signature.words;
    for (uint32_t i = 0; i < b->program->n_inputs; i++) {
        const int64_t kind = *w++, dtype = *w++, rank = *w++;
        if (kind == SN_KIND_NONE)
            continue;
        add(l, "%s%s ", l->n ? "; " : "", g->inputs.data[i]->name);
        if (kind != SN_KIND_TENSOR) {
            add(l, "%s", kind_text(kind));
            continue;
        }
        add(l, "%s[", sonde_dtype_text((sonde_dtype)dtype));
        for (int64_t d = 0; d < rank; d++)
            add(l, "%s%lld", d ? ", " : "", (long long)*w++);
        add(l, "]");
    }
}

size_t sonde_session_inputs_text(sonde_session *session, char *text, size_t bytes)
{
    line l = {.text = text, .bytes = text ? bytes : 0};
    if (l.bytes)
        text[0] = 0;
    sn_binding *b = session ? sn_binding_latest(sn_session_program(session->core)) : NULL;
    if (!b)
        return 0;
    describe(b, &l);
    sn_binding_unref(b);
    return l.n;
}
