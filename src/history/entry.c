/* SPDX-License-Identifier: Apache-2.0 */
/* A row as a struct. */
#include "base/json.h"
#include "history/history.h"

const char sn_entry_columns[] =
    "SELECT e.id, e.at, e.series, s.kind, s.runtime, e.version, s.model, e.hash, s.form, e.code,"
    " e.note, m.host, m.cpu, m.level, m.cores, o.options, e.runs, e.samples, e.median, e.low,"
    " e.high, e.mean, e.stddev, e.least, e.most, e.p95, e.p99, e.peak, e.profile";
/* CROSS keeps the order: entries come from an index of theirs. */
const char sn_entry_from[] = " FROM entry e CROSS JOIN series s ON s.id = e.series"
                             " CROSS JOIN machine m ON m.id = s.machine"
                             " CROSS JOIN setting o ON o.id = s.setting";

static uint64_t count(const sn_sql_statement *s, int column)
{
    const int64_t n = sn_sql_int(s, column);
    return n > 0 ? (uint64_t)n : 0;
}

static double time_of(const sn_sql_statement *s, int column)
{
    const double ns = sn_sql_real(s, column);
    return ns > 0 ? ns : 0;
}

/* Whoever reads entries relies on it. */
static bool is_object(const char *text, sn_arena *arena)
{
    sn_json j;
    sn_json_init(&j, text, strlen(text), arena);
    return sn_json_peek(&j) == SN_JSON_OBJECT && sn_json_skip(&j) && sn_json_end(&j);
}

sonde_status sn_entry_read(const sn_sql_statement *s, sn_arena *arena, sonde_history_entry *e,
                           sonde_error *err)
{
    const size_t size = e->struct_size;
    const int64_t cores = sn_sql_int(s, 14);
    *e = (sonde_history_entry){.struct_size = size,
                               .id = sn_sql_int(s, 0),
                               .at_ms = sn_sql_int(s, 1),
                               .series = count(s, 2),
                               .cores = cores > 0 && cores < INT32_MAX ? (int)cores : 0,
                               .runs = count(s, 16),
                               .samples = count(s, 17),
                               .median_ns = time_of(s, 18),
                               .low_ns = time_of(s, 19),
                               .high_ns = time_of(s, 20),
                               .mean_ns = time_of(s, 21),
                               .stddev_ns = time_of(s, 22),
                               .min_ns = time_of(s, 23),
                               .max_ns = time_of(s, 24),
                               .p95_ns = time_of(s, 25),
                               .p99_ns = time_of(s, 26),
                               .peak_bytes = count(s, 27),
                               .profile_bytes = count(s, 28)};
    const struct {
        const char **field;
        int column;
    } texts[] = {{&e->kind, 3},       {&e->runtime, 4},    {&e->version, 5},    {&e->model, 6},
                 {&e->model_hash, 7}, {&e->model_form, 8}, {&e->commit, 9},     {&e->note, 10},
                 {&e->host, 11},      {&e->cpu, 12},       {&e->cpu_level, 13}, {&e->options, 15}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i].field = sn_arena_strdup(arena, sn_sql_text(s, texts[i].column));
        if (!*texts[i].field)
            return sn_fail_memory(err, 0);
    }
    if (!is_object(e->options, arena))
        e->options = "{}";
    return SONDE_OK;
}
