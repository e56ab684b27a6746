/* SPDX-License-Identifier: Apache-2.0 */
/* A list of names, and what "@FILE" adds to it: the list "leave_in_float" of a comparison that was
 * saved as JSON, or a text with one name in each line. Names are taken as they are, whatever they
 * contain. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "shrink/selection.h"

enum { MOST_BYTES = 1 << 28 };
static const char schema[] = "sonde.compare/1";

sonde_status sn_names_add(sn_names *names, const char *entry, sn_arena *arena, sonde_error *err)
{
    if (names->n == names->cap) {
        const size_t cap = names->cap * 2 + 8;
        const char **more = SN_NEW_N(arena, const char *, cap);
        if (!more)
            return sn_fail_memory(err, cap * sizeof *more);
        if (names->n)
            memcpy(more, names->list, names->n * sizeof *more);
        names->list = more;
        names->cap = cap;
    }
    names->list[names->n++] = entry;
    return SONDE_OK;
}

typedef struct reading {
    sn_names *names;
    const char *path;
    sn_arena *arena;
    sonde_error *err;
} reading;

static sonde_status push(const reading *r, const char *name, size_t n)
{
    const char *copy = sn_arena_printf(r->arena, "%c%.*s", SN_NAME_EXACT, (int)n, name);
    return copy ? sn_names_add(r->names, copy, r->arena, r->err) : sn_fail_memory(r->err, n);
}

static sonde_status read_comparison(const reading *r, sn_json *j)
{
    sn_json_text key, text;
    bool known = false, found = false;
    for (sn_json_object(j); sn_json_member(j, &key);) {
        if (sn_json_is(key, "schema") && sn_json_string(j, &text)) {
            known = sn_json_is(text, schema);
        } else if (sn_json_is(key, "leave_in_float")) {
            found = true;
            for (sn_json_array(j); sn_json_item(j);)
                if (sn_json_string(j, &text))
                    SN_TRY(push(r, text.data, text.n));
        } else {
            sn_json_skip(j);
        }
    }
    SN_TRY(sn_json_status(j, r->err));
    if (!known || !found)
        return sn_fail(r->err, SONDE_INVALID_FORMAT,
                       "'%.300s' is no comparison that names layers to leave in float (schema "
                       "\"%s\" with \"leave_in_float\")",
                       r->path, schema);
    return SONDE_OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static sonde_status read_lines(const reading *r, const char *text, size_t bytes)
{
    if (memchr(text, 0, bytes))
        return sn_fail(r->err, SONDE_INVALID_FORMAT,
                       "'%.300s' is neither a comparison nor a text with a name in each line",
                       r->path);
    for (size_t at = 0; at < bytes;) {
        size_t end = at;
        while (end < bytes && text[end] != '\n')
            end++;
        size_t first = at, last = end;
        while (first < last && is_space(text[first]))
            first++;
        while (last > first && is_space(text[last - 1]))
            last--;
        if (last > first)
            SN_TRY(push(r, text + first, last - first));
        at = end + 1;
    }
    return SONDE_OK;
}

sonde_status sn_names_read(sn_names *names, const char *path, sn_arena *arena, sn_allocator *alloc,
                           sonde_error *err)
{
    const reading r = {names, path, arena, err};
    sn_file file;
    sn_json j;
    SN_TRY(sn_file_read(&file, path, MOST_BYTES, alloc, err));
    const char *text = (const char *)file.data;
    const size_t begin =
        file.bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0; /* a BOM */
    size_t first = begin;
    while (first < file.bytes && is_space(text[first]))
        first++;
    sonde_status st;
    if (first < file.bytes && (text[first] == '{' || text[first] == '[')) {
        sn_json_init(&j, file.data + begin, file.bytes - begin, arena);
        st = read_comparison(&r, &j);
        if (st != SONDE_OK && j.problem)
            sn_error_prefix(err, "'%.300s'", path);
    } else {
        st = file.bytes > begin ? read_lines(&r, text + begin, file.bytes - begin) : SONDE_OK;
    }
    sn_file_close(&file);
    return st;
}
