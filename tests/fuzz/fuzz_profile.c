/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a saved profile, and everything that can be done with one: the first byte picks the
 * reader, or leaves the choice to the content; the rest is the file. What is read is written in
 * every format, shown as table and as every report, turned into rows and spans for other languages,
 * and compared with itself and with another profile, through the API as programs use it. Written in
 * a format that can be read again it must be read, and be the same profile. Where there are
 * options, the content picks them, so that a run stays short and can be repeated. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "base/map.h"
#include "fuzz/flags.h"
#include "fuzz/mutate_profile.h"
#include "fuzz/values.h"
#include "profile_readers/round_trip.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/fleet.h"
#include "sonde/experimental/profile.h"

#define MAX_MEMORY ((size_t)256 << 20)

const char *__asan_default_options(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size); /* libFuzzer's own */

static sonde_context *context;
static sonde_profile other; /* what profiles are compared with */

/* A run is so short that weighing inputs would cost as much, and so would a deep look at every
 * block of memory: what was freed is kept for a few runs only. */
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=6";
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static char *const flags[] = {"-mutate_depth=3", "-entropic=0", "-reload=0", NULL};
    fuzz_add_flags(argc, argv, flags);
    sonde_context_options o = SONDE_INIT(sonde_context_options);
    o.threads = 1;
    o.max_memory = MAX_MEMORY;
    if (sonde_context_create(&o, &context, NULL) != SONDE_OK)
        abort();
    other = (sonde_profile){context, rich_profile(&context->alloc)};
    return 0;
}

static void need(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* ---- outputs ---- */

static void discard(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
}

static void keep(void *user, const char *text, size_t size)
{
    memory_sink *to = user;
    need(to->sink.write(&to->sink, text, size));
}

static void write_all(const sonde_profile *p, uint64_t *random)
{
    const sn_exporter *row;
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    if (fuzz_below(random, 2)) {
        o.sparse_ratio_90 = 1e6;
        o.sparse_ratio_others = 0.5;
        o.sparse_aim = 80;
        o.categories = "operator,thread,user";
    }
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        if (row == &sn_exporter_xlsx && fuzz_below(random, 4))
            continue; /* the rows of .csv in a lot of text that is always the same */
        if (row == &sn_exporter_html && fuzz_below(random, 4))
            continue; /* the same for the data of the page */
        o.format = row->suffix;
        if (sonde_profile_write(p, &o, discard, NULL, NULL) == SONDE_INVALID_ARGUMENT) {
            o.categories = NULL; /* it has none of these */
            need(sonde_profile_write(p, &o, discard, NULL, NULL) != SONDE_INVALID_ARGUMENT);
        }
    }
}

static void show_all(const sonde_profile *p, uint64_t *random)
{
    static const sonde_table_options tables[] = {
        {.struct_size = sizeof tables[0], .by_shape = 1, .by_node = 1, .width = 400, .color = 1},
        {.struct_size = sizeof tables[0], .by_node = 1, .width = 90, .filter_op = "Conv,matmul"},
        {.struct_size = sizeof tables[0], .sort_by_name = 1}};
    const size_t k = fuzz_below(random, sizeof tables / sizeof tables[0]);
    (void)sonde_profile_table(p, &tables[k], discard, NULL, NULL);
    for (int kind = SONDE_REPORT_SUMMARY; kind <= SONDE_REPORT_MEMORY; kind++)
        (void)sonde_profile_report(p, (sonde_report)kind, discard, NULL, NULL);
}

/* ---- figures ---- */

static size_t length(const char *text)
{
    need(text != NULL);
    return strlen(text);
}

static void read_rows(const sonde_profile *p, sonde_by by)
{
    size_t sum = 0;
    sonde_profile_rows *rows = NULL;
    if (sonde_profile_rows_get(p, by, &rows, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_profile_rows_count(rows); i++) {
        sonde_profile_row r = SONDE_INIT(sonde_profile_row);
        need(sonde_profile_rows_row(rows, i, &r, NULL) == SONDE_OK);
        sum += length(r.name) + length(r.op_type) + length(r.node) + length(r.kernel) +
               length(r.dtype) + length(r.bound);
        need(r.roofline == -1 || (r.roofline >= 0 && r.roofline <= 1));
        need(r.flops >= 0 && r.bytes >= 0 && r.instructions >= 0 && r.cycles >= 0);
    }
    need(sum < SIZE_MAX); /* all texts were read to their ends */
    sonde_profile_rows_release(rows);
}

static void read_spans(const sonde_profile *p)
{
    sonde_profile_spans *spans = NULL;
    size_t sum = 0;
    if (sonde_profile_spans_get(p, &spans, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_profile_spans_count(spans); i++) {
        sonde_profile_span s = SONDE_INIT(sonde_profile_span);
        need(sonde_profile_spans_span(spans, i, &s, NULL) == SONDE_OK);
        sum += length(s.name) + length(s.category) + length(s.text) + length(s.thread_name) +
               length(s.node) + length(s.op_type) + length(s.post_op) + length(s.kernel) +
               length(s.input_shapes) + length(s.input_types) + length(s.output_shapes) +
               length(s.output_types);
        need((int64_t)s.start_ns >= 0 && s.end_ns >= s.start_ns && (int64_t)s.end_ns >= 0);
        need(s.flops >= -1 && s.bytes >= -1);
    }
    need(sum < SIZE_MAX);
    sonde_profile_spans_release(spans);
}

static void compare(const sonde_profile *a, const sonde_profile *b, sonde_by by)
{
    sonde_comparison *c = NULL;
    if (sonde_profile_compare(a, b, by, &c, NULL) != SONDE_OK)
        return;
    sonde_change change = SONDE_INIT(sonde_change);
    need(sonde_comparison_total(c, &change, NULL) == SONDE_OK);
    for (size_t i = 0; i < sonde_comparison_count(c); i++) {
        need(sonde_comparison_row(c, i, &change, NULL) == SONDE_OK);
        need(length(change.name) + length(change.op_type) + length(change.node) < SIZE_MAX);
        need(length(sonde_verdict_text(change.verdict)) > 0);
    }
    sonde_comparison_release(c);
}

/* Both on one page: the profile's own texts are findings and scenarios, as those of a program. */
static void compare_on_page(const sonde_profile *old, const sonde_profile *now, const char *text)
{
    const sonde_finding finding = {SONDE_SLOW, text, text, text, text};
    const sonde_scenario_time scenario = {.name = text, .ns = 1e300, .speedup = -1, .note = text};
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    o.format = ".html";
    o.before = old;
    o.before_title = o.title = text;
    o.findings = &finding;
    o.finding_count = 1;
    o.scenarios = &scenario;
    o.scenario_count = 1;
    o.live = 1;
    (void)sonde_profile_write(now, &o, discard, NULL, NULL); /* there may be no measured run */
}

static void read_findings(const sonde_profile *p)
{
    sonde_findings *found = NULL;
    sonde_finding f;
    if (sonde_profile_findings(p, &found, NULL) != SONDE_OK)
        return;
    for (size_t i = 0; i < sonde_findings_count(found); i++) {
        need(sonde_findings_get(found, i, &f, NULL) == SONDE_OK);
        need(length(f.topic) > 0 && length(f.finding) > 0 &&
             length(sonde_severity_text(f.severity)) > 0);
        need(length(f.evidence) + length(f.remedy) < SIZE_MAX);
    }
    sonde_findings_release(found);
}

static void read_fleet(const sonde_profile *p, sonde_fleet_by by)
{
    sonde_fleet *fleet = NULL;
    sonde_fleet_rows *rows = NULL;
    size_t n = 0;
    if (sonde_fleet_of_profile(p, &fleet, NULL) != SONDE_OK)
        return;
    if (sonde_fleet_rows_get(fleet, by, &rows, NULL) == SONDE_OK)
        need(sonde_fleet_rows_count(rows) > 0);
    for (size_t i = 0; i < sonde_fleet_rows_count(rows); i++) {
        sonde_fleet_row r = SONDE_INIT(sonde_fleet_row);
        need(sonde_fleet_rows_row(rows, i, &r, NULL) == SONDE_OK);
        need(length(r.host) + length(r.worker) + length(r.version) + length(r.model) < SIZE_MAX);
        need(r.share >= 0 && r.share <= 1.001 && r.runs_per_s >= 0);
    }
    if (sonde_fleet_straggler_count(fleet, &n, NULL, NULL) == SONDE_OK)
        for (size_t i = 0; i < n; i++) {
            sonde_straggler s = SONDE_INIT(sonde_straggler);
            need(sonde_fleet_straggler_get(fleet, i, &s, NULL) == SONDE_OK);
            need(s.p50_ns > s.usual_ns && length(s.op) < SIZE_MAX);
        }
    sonde_fleet_rows_release(rows);
    sonde_fleet_release(fleet);
}

/* ---- written and read again ---- */

static char *table_of(const sonde_profile *p)
{
    static const sonde_table_options all = {
        .struct_size = sizeof all, .by_shape = 1, .by_node = 1, .width = 300};
    memory_sink text;
    memory_sink_init(&text);
    need(sonde_profile_table(p, &all, keep, &text, NULL) == SONDE_OK);
    return text.text;
}

/* A .pftrace keeps every byte. JSON turns texts that are not UTF-8 into ones that are, and says of
 * an iteration no thread, so only what it counts must be equal. */
static void same(const sonde_profile *a, const sonde_profile *b, bool exact)
{
    sonde_profile_summary x = SONDE_INIT(sonde_profile_summary), y = x;
    need(sonde_profile_summary_get(a, &x, NULL) == SONDE_OK &&
         sonde_profile_summary_get(b, &y, NULL) == SONDE_OK);
    need(x.spans == y.spans && x.dropped == y.dropped && x.level == y.level);
    need((x.cost_ns != x.cost_ns) == (y.cost_ns != y.cost_ns));
    if (!exact)
        return;
    need(x.iterations == y.iterations && x.warmups == y.warmups);
    char *first = table_of(a), *second = table_of(b);
    need(strcmp(first, second) == 0);
    free(first);
    free(second);
}

static void again(const sonde_profile *p, const char *suffix, const sn_profile_reader *reader,
                  sonde_by by)
{
    memory_sink file;
    sonde_profile read = {context, NULL};
    sonde_export_options o = SONDE_INIT(sonde_export_options);
    o.format = suffix;
    memory_sink_init(&file);
    if (sonde_profile_write(p, &o, keep, &file, NULL) == SONDE_OK) {
        need(sn_profile_read_with(reader, file.text, file.n, &context->alloc, &read.core, NULL) ==
             SONDE_OK);
        if (!p->core->categories || p->core->categories == SN_CATS_ALL)
            same(p, &read, reader == &sn_profile_reader_pftrace);
        compare(p, &read, by);
        sn_profile_free(read.core);
    }
    free(file.text);
}

/* ---- one input ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sonde_profile p = {context, NULL};
    if (size == 0)
        return 0;
    const size_t before = atomic_load(&context->alloc.live_bytes);
    const sn_profile_reader *row = sn_profile_reader_row(data[0] % 8);
    data++, size--;
    uint64_t random = sn_hash(data, size, 1) | 1;
    if (row)
        (void)sn_profile_read_with(row, data, size, &context->alloc, &p.core, NULL);
    else
        (void)sn_profile_read_bytes(data, size, "fuzz", &context->alloc, &p.core, NULL);
    if (p.core) {
        const sonde_by by = (sonde_by)fuzz_below(&random, SONDE_BY_SHAPE + 1);
        write_all(&p, &random);
        show_all(&p, &random);
        read_rows(&p, (sonde_by)fuzz_below(&random, SONDE_BY_KERNEL + 1));
        read_spans(&p);
        read_findings(&p);
        read_fleet(&p, (sonde_fleet_by)fuzz_below(&random, SONDE_FLEET_BY_VERSION + 1));
        if (fuzz_below(&random, 4) == 0)
            compare_on_page(&p, &other, p.core->model_name);
        if (fuzz_below(&random, 4) == 0)
            compare_on_page(&other, &p, p.core->model_name);
        compare(&p, &p, by);
        compare(&p, &other, by);
        compare(&other, &p, by);
        if (fuzz_below(&random, 2))
            again(&p, ".pftrace", &sn_profile_reader_pftrace, by);
        else
            again(&p, ".json", &sn_profile_reader_chrome, by);
        sn_profile_free(p.core);
    }
    need(atomic_load(&context->alloc.live_bytes) == before); /* a leak */
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t n = 0;
    if (size > 1 && seed % 8)
        n = (data[0] % 8 == 0 ? mutate_trace : mutate_json)(data + 1, size - 1, max_size - 1, seed);
    return n ? n + 1 : LLVMFuzzerMutate(data, size, max_size);
}
