/* SPDX-License-Identifier: Apache-2.0 */
/* sonde profile: run a model under the profiler. The table goes to the terminal, everything else to
 * files whose suffix says how. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "entries/parts.h"
#include "runner.h"
#include "sonde/experimental/machine.h"
#include "sonde/experimental/memory.h"
#include "sonde/experimental/whatif.h"

static const char details[] =
    "\n"
    "MODEL is the path of a model file or zoo:NAME. By default there are 3 warm-up runs, then\n"
    "measured runs for 2 seconds and at least 10 of them; -w, --duration and -n change this.\n"
    "Times in the table are means per run.\n"
    "\n"
    "  sonde profile zoo:regnet_x_400mf\n"
    "  sonde profile model.onnx -o report.html\n"
    "  sonde profile model.onnx -o trace.json -o model.summary.json\n"
    "  sonde profile model.onnx -n 100 --by-shape --filter-op Conv\n"
    "  sonde profile model.onnx --instances 2 -o trace.json\n";

typedef struct profile_options {
    run_setup setup;
    table_options table;
    int64_t level;
    bool memory, what_if;
    keep_options keep;
} profile_options;

#define AT(field) offsetof(profile_options, field)

static const option_row recording_rows[] = {
    {0, "level", OPT_INT, AT(level), "N",
     "1: operators; 2: also loading, passes, packing; 3: also each worker thread (default: 2)"},
    {0, "counters", OPT_FLAG, AT(setup.counters), NULL,
     "read hardware counters for every operator, and the system's counters"},
    {0, "label", OPT_LIST, AT(setup.labels), "KEY=VALUE",
     "label the profile for 'sonde merge': host, worker, version or any key; may be repeated"},
    {0, "memory", OPT_FLAG, AT(memory), NULL,
     "record used and allocated bytes after every step, as counters in traces"},
    {0, "what-if", OPT_FLAG, AT(what_if), NULL,
     "measure the sparse ratios of .csv and .xlsx and the scenarios of .html, as 'sonde whatif' "
     "does, instead of assuming them"},
    {0}};

static int check_recording(void *values)
{
    const profile_options *o = values;
    if (o->level < 1 || o->level > 3)
        return fail_usage("--level %lld: the profiler has levels 1 to 3", (long long)o->level);
    if (o->setup.counters && o->setup.measuring.instances > 1)
        return fail_usage(
            "--counters cannot be combined with --instances: hardware counters count the whole "
            "process, so they cannot be assigned to an operator while other instances run");
    for (size_t i = 0; i < o->setup.labels.n; i++)
        if (strchr(o->setup.labels.items[i], '=') <= o->setup.labels.items[i])
            return fail_usage("--label takes KEY=VALUE, not '%s'", o->setup.labels.items[i]);
    if (o->what_if && o->table.sparse_ratio)
        return fail_usage("--what-if measures the ratios that --sparse-ratio says; give one of "
                          "them");
    return -1;
}

static const option_group groups[] = {MEASURING_OPTIONS(profile_options, setup.measuring),
                                      INPUT_OPTIONS(profile_options, setup.inputs),
                                      TABLE_OPTIONS(profile_options, table),
                                      {"Recording", recording_rows, 0, check_recording},
                                      KEEP_OPTIONS(profile_options, keep),
                                      MODEL_OPTIONS(profile_options, setup.model),
                                      {0}};

static void help_behind(void)
{
    help_passes();
    help_formats();
}

static int measure(runner *r, const profile_options *o)
{
    sonde_error err;
    if (o->memory && sonde_memory_start(r->model.context, &err))
        return fail("%s", err.message);
    r->stop_when_full = true;
    const measuring_options *m = &o->setup.measuring;
    const int64_t least = o->setup.common.verbose > 0; /* the run that prints is not measured */
    const int64_t warmup = m->warmup >= 0 ? m->warmup : 3;
    const int code =
        runner_run(r, &o->setup, warmup > least ? warmup : least, m->iterations, SIZE_MAX);
    if (o->memory && sonde_memory_stop(r->model.context, &err))
        return fail("%s", err.message);
    return code;
}

static void show_progress(void *user, const char *scenario, double done)
{
    progress(user, scenario, done);
}

static bool has_output(const table_options *t, const char *suffix)
{
    for (size_t i = 0; i < t->outputs.n; i++)
        if (has_suffix(t->outputs.items[i], suffix))
            return true;
    return false;
}

static bool has_ratios(const table_options *t)
{
    return has_output(t, ".csv") || has_output(t, ".xlsx");
}

static bool has_page(const table_options *t)
{
    return has_output(t, ".html") || has_output(t, ".page.gz");
}

/* Spreadsheets want ratios of sparse weights, the page what its readers may choose from. */
static const char *scenario_list(const table_options *t)
{
    if (!has_page(t))
        return "sparse90,sparse80,sparse70";
    return has_ratios(t) ? "sparse90,sparse80,sparse70,int8,sparse90+int8,bf16"
                         : "sparse90,int8,sparse90+int8,bf16";
}

static sonde_whatif_options question(const runner *r, const profile_options *o,
                                     const sonde_session_options *session)
{
    sonde_whatif_options how = SONDE_INIT(sonde_whatif_options);
    how.session = session;
    how.precision = session->precision;
    how.scenarios = scenario_list(&o->table);
    how.input_names = r->in[0].names;
    how.values = r->in[0].values;
    how.value_count = r->in[0].n;
    how.no_mix = 1;
    return how;
}

/* The result holds what the files show of it. */
static int measure_scenarios(const runner *r, profile_options *o, sonde_whatif **what)
{
    sonde_error err;
    const sonde_session_options session = session_options(&o->setup.model);
    sonde_whatif_options how = question(r, o, &session);
    how.cancel = interrupt_token();
    how.progress = show_progress;
    how.progress_user = &o->setup.common;
    const sonde_status st = sonde_whatif_measure(r->model.model, &how, what, &err);
    progress_end();
    const bool ended = st == SONDE_CANCELLED && interrupted();
    if (ended && !*what)
        return EXIT_OK; /* the profile is there, and its ratios are assumed */
    if ((st && !ended) || sonde_whatif_ratios(*what, &o->table.export_options, &err))
        return fail("%s", err.message);
    return EXIT_OK;
}

/* What was measured earlier. Where nothing was, ratios stay assumed, or what --sparse-ratio says.
 */
static void look_up_scenarios(const runner *r, profile_options *o, sonde_whatif **what)
{
    const sonde_session_options session = session_options(&o->setup.model);
    sonde_whatif_options how = question(r, o, &session);
    how.cache_only = 1;
    if (sonde_whatif_measure(r->model.model, &how, what, NULL) == SONDE_OK &&
        !o->table.sparse_ratio)
        (void)sonde_whatif_ratios(*what, &o->table.export_options, NULL);
}

/* The scenarios of the page. Those without figures say why, if somebody asked for them. The page
 * shows the model as it is by itself. The list is to be freed. */
static sonde_scenario_time *list_scenarios(const sonde_whatif *what, profile_options *o)
{
    sonde_scenario_time *all = NULL;
    size_t n = 0;
    sonde_whatif_scenario s = SONDE_INIT(sonde_whatif_scenario);
    for (size_t i = 1; what && sonde_whatif_scenario_get(what, i, &s, NULL) == SONDE_OK; i++) {
        if (*s.reason && !o->what_if)
            continue;
        all = grow(all, n, sizeof *all);
        all[n++] = *s.reason
                       ? (sonde_scenario_time){.name = s.name, .note = s.reason}
                       : (sonde_scenario_time){.name = s.name,
                                               .ns = s.total_ns,
                                               .speedup = s.speedup,
                                               .note = s.cached ? "measured earlier" : "measured"};
    }
    o->table.export_options.scenarios = all;
    o->table.export_options.scenario_count = n;
    return all;
}

/* What the page says beside the profile: the machine, as far as a quick look shows it, and other
 * forms of the model. */
static int save_and_show(const runner *r, profile_options *o, const sonde_profile *profile,
                         const sonde_whatif *what)
{
    const bool quiet = o->setup.common.quiet, page = has_page(&o->table);
    const char *json = o->table.json;
    findings machine = {.n = 0};
    sonde_scenario_time *scenarios = page ? list_scenarios(what, o) : NULL;
    const int looked = page ? look_at_machine(&machine, r->model.context, true) : EXIT_OK;
    o->table.export_options.findings = machine.items;
    o->table.export_options.finding_count = machine.n;
    const int code = show_profile(profile, &o->table, &o->setup.common);
    if (!code && !quiet && !(json && strcmp(json, "-") == 0))
        runner_print_instances(r);
    if (!code && !quiet && !(json && strcmp(json, "-") == 0))
        print_skipped(r->skipped, r->images.n, "images");
    findings_free(&machine);
    free(scenarios);
    return code ? code : looked;
}

/* ------------------------------------------------------------------ the history */
static void add_word(text *t, const char *key, const char *value)
{
    text_add(t, ", \"%s\": ", key);
    text_json(t, value);
}

static void add_inputs(text *t, const feeds *in)
{
    text names = {.n = 0};
    for (size_t i = 0; i < in->n; i++) {
        char *type = value_type_text(in->values[i]);
        text_add(&names, "%s%s %s", i ? "; " : "", in->names[i], type);
        free(type);
    }
    add_word(t, "inputs", names.n ? names.data : "");
    text_free(&names);
}

/* The memory nodes that the sessions are bound to, whoever asked for it. */
static void add_nodes(text *t, const runner *r)
{
    text nodes = {.n = 0};
    for (size_t i = 0; i < r->model.n_sessions; i++) {
        sonde_placement p = SONDE_INIT(sonde_placement);
        if (sonde_session_placement(r->model.sessions[i], &p, NULL) == SONDE_OK && *p.nodes)
            text_add(&nodes, "%s%s", nodes.n ? "; " : "", p.nodes);
    }
    if (nodes.n)
        add_word(t, "nodes", nodes.data);
    text_free(&nodes);
}

/* A limit of the instruction set, whoever set it. */
static void add_cpu(text *t, const runner *r, const char *said)
{
    const char *cpu = said ? said : getenv("SONDE_CPU");
    if (cpu && *cpu)
        add_word(t, "cpu", sonde_context_cpu(r->model.context));
}

/* What decides how long a run takes, and is not the usual: entries that say the same are compared.
 */
static void describe(const runner *r, const profile_options *o, text *t)
{
    const model_options *m = &o->setup.model;
    text_add(t, "{\"threads\": %d", sonde_context_threads(r->model.context));
    add_word(t, "precision", precision_name(m));
    add_cpu(t, r, m->cpu);
    add_inputs(t, &r->in[0]);
    if (r->sets > 1)
        text_add(t, ", \"images\": %zu", r->sets);
    if (r->model.n_sessions > 1)
        text_add(t, ", \"instances\": %zu", r->model.n_sessions);
    if (m->no_optimize)
        text_add(t, ", \"optimize\": false");
    if (m->no_prepack)
        text_add(t, ", \"prepack\": false");
    if (m->flush_denormals)
        text_add(t, ", \"flush_denormals\": true");
    if (m->tune)
        text_add(t, ", \"tune\": true");
    add_nodes(t, r);
    for (size_t i = 0; i < m->disabled_passes.n; i++) {
        text_add(t, i ? ", " : ", \"disabled\": [");
        text_json(t, m->disabled_passes.items[i]);
        text_add(t, i + 1 < m->disabled_passes.n ? "" : "]");
    }
    if (o->level != 2)
        text_add(t, ", \"level\": %lld", (long long)o->level);
    if (o->setup.counters)
        text_add(t, ", \"counters\": true");
    if (o->memory)
        text_add(t, ", \"memory\": true");
    text_add(t, "}");
}

static int keep(const runner *r, const profile_options *o, const sonde_profile *profile)
{
    text options = {.n = 0};
    sonde_history_new what = SONDE_INIT(sonde_history_new);
    describe(r, o, &options);
    what.profile = profile;
    what.source = r->model.model;
    what.options = options.data;
    const int code = history_save(&o->keep, &o->setup.common, o->setup.common.rest.items[0], &what);
    text_free(&options);
    return code;
}

static int report(const runner *r, profile_options *o)
{
    sonde_profile *profile = NULL;
    sonde_whatif *what = NULL;
    sonde_error err;
    if (sonde_profiler_stop(r->model.context, &profile, &err))
        return fail("%s", err.message);
    int code = o->what_if && !interrupted() ? measure_scenarios(r, o, &what) : EXIT_OK;
    const bool ratios = has_ratios(&o->table) && !o->table.sparse_ratio;
    if (!o->what_if && (ratios || has_page(&o->table)))
        look_up_scenarios(r, o, &what);
    if (!code)
        code = save_and_show(r, o, profile, what);
    if (o->keep.save) {
        const int kept = keep(r, o, profile);
        code = code ? code : kept;
    }
    sonde_whatif_release(what);
    sonde_profile_release(profile);
    return code;
}

int cmd_profile(int argc, char **argv)
{
    static const verb_options verb = {"profile", details, groups, help_behind};
    profile_options o = {.setup = SETUP_DEFAULTS, .level = 2};
    const list *rest = &o.setup.common.rest;
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0 && rest->n != 1)
        code = rest->n ? fail_usage("profile takes one MODEL, not %zu", rest->n)
                       : fail_usage("profile needs a MODEL; see 'sonde profile --help'");
    if (code < 0 && o.setup.measuring.iterations == 0)
        code = fail_usage("--iterations 0: nothing would be measured");
    if (code < 0)
        code = show_check(&o.table);
    if (code < 0) {
        o.setup.record_level = (int)o.level;
        runner r;
        code = runner_open(&r, &o.setup, rest->items[0]);
        if (!code)
            code = measure(&r, &o);
        if (!code)
            code = report(&r, &o);
        runner_close(&r);
    }
    options_free(&verb, &o.setup.common);
    return code;
}
