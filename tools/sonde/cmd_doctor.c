/* SPDX-License-Identifier: Apache-2.0 */
/* sonde doctor: what makes things slow here, each with evidence and a remedy. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/machine.h"

static const char details[] =
    "\n"
    "Without MODEL it checks the machine. With MODEL it also profiles the model for a short\n"
    "time. --calibrate measures the peak performance of the machine: FLOP/s, and bandwidth of\n"
    "the caches and of memory. This takes about a second; the result is kept in\n"
    "~/.cache/sonde.\n"
    "\n"
    "  sonde doctor --calibrate\n"
    "  sonde doctor model.onnx -s batch=8\n";

typedef struct doctor_options {
    run_setup setup;
    const char *json;
    bool calibrate;
} doctor_options;

static const option_row rows[] = {
    JSON_ROW(doctor_options, json),
    {0, "calibrate", OPT_FLAG, offsetof(doctor_options, calibrate), NULL,
     "measure the peak performance of the machine and keep it for later profiles"},
    {0}};

static const option_group groups[] = {INPUT_OPTIONS(doctor_options, setup.inputs),
                                      {"The machine", rows, 0, NULL},
                                      MODEL_OPTIONS(doctor_options, setup.model),
                                      {0}};

static void print_peak(const sonde_machine_peak *p)
{
    printf("  %d thread%s: %.1f GFLOP/s; reads %.1f GB/s from L2, %.1f from L3", p->threads,
           p->threads == 1 ? "" : "s", p->gflops, p->l2_gbps, p->l3_gbps);
    if (p->memory_gbps > 0)
        printf(", %.1f from memory", p->memory_gbps);
    printf("\n");
}

static void print_rates(const sonde_machine_info *m)
{
    printf("  GOP/s of products, 1 thread%s\n", m->all.threads > 1 ? " and all:" : ":");
    for (size_t i = 0; i < m->rate_count; i++) {
        const sonde_machine_rate *r = &m->rates[i];
        if (!(r->all_gops > 0))
            continue;
        printf("    %-11s %-7s %9.1f", r->arithmetic, r->instructions, r->one_gops);
        if (m->all.threads > 1)
            printf("  %9.1f", r->all_gops);
        printf("\n");
    }
}

static void print_machine(const sonde_machine_info *m)
{
    printf("%s, %s; %d cores, %d usable, %d threads\n", m->cpu, m->level, m->cores, m->usable_cores,
           m->threads);
    printf("  %d socket%s, %d cores with up to %d hardware thread%s each, %d memory node%s\n",
           m->sockets, m->sockets == 1 ? "" : "s", m->physical_cores, m->threads_per_core,
           m->threads_per_core == 1 ? "" : "s", m->memory_nodes, m->memory_nodes == 1 ? "" : "s");
    printf("  caches: L1 %s, L2 %s, L3 %s\n", bytes_text(m->l1_bytes), bytes_text(m->l2_bytes),
           bytes_text(m->l3_bytes));
    if (m->measured && m->one.threads)
        print_peak(&m->one);
    if (m->measured && m->all.threads > 1)
        print_peak(&m->all);
    if (m->measured)
        print_rates(m);
    printf("\n");
}

static void print_findings(const findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const sonde_finding *x = &f->items[i];
        char *said = printable(x->finding), *evidence = printable(x->evidence),
             *remedy = printable(x->remedy);
        printf("[%s] %s: %s\n", sonde_severity_text(x->severity), x->topic, said);
        if (*evidence)
            printf("       evidence: %s\n", evidence);
        if (*remedy)
            printf("       remedy: %s\n", remedy);
        free(said);
        free(evidence);
        free(remedy);
    }
}

static void add_peak(text *t, const char *key, const sonde_machine_peak *p)
{
    text_add(t,
             ",\"%s\":{\"threads\":%d,\"gflops\":%.3f,\"l2_gbps\":%.3f,\"l3_gbps\":%.3f,"
             "\"memory_gbps\":%.3f}",
             key, p->threads, p->gflops, p->l2_gbps, p->l3_gbps, p->memory_gbps);
}

static void add_rates(text *t, const sonde_machine_info *m)
{
    bool first = true;
    text_add(t, ",\"products\":[");
    for (size_t i = 0; i < m->rate_count; i++) {
        const sonde_machine_rate *r = &m->rates[i];
        if (!(r->all_gops > 0))
            continue;
        text_add(t,
                 "%s{\"arithmetic\":\"%s\",\"instructions\":\"%s\",\"gops_of_one\":%.3f,"
                 "\"gops_of_all\":%.3f}",
                 first ? "" : ",", r->arithmetic, r->instructions, r->one_gops, r->all_gops);
        first = false;
    }
    text_add(t, "]");
}

static void add_nodes(text *t, sonde_context *context)
{
    sonde_machine_node n = SONDE_INIT(sonde_machine_node);
    text_add(t, ",\"nodes\":[");
    for (size_t i = 0; sonde_machine_node_get(context, i, &n, NULL) == SONDE_OK; i++)
        text_add(t,
                 "%s{\"id\":%d,\"socket\":%d,\"cores\":%d,\"usable_cores\":%d,\"cpus\":%d,"
                 "\"usable_cpus\":%d,\"memory_bytes\":%llu,\"free_bytes\":%llu}",
                 i ? "," : "", n.id, n.socket, n.cores, n.usable_cores, n.cpus, n.usable_cpus,
                 (unsigned long long)n.memory_bytes, (unsigned long long)n.free_bytes);
    text_add(t, "]");
}

static int save_json(const findings *f, const sonde_machine_info *m, sonde_context *context,
                     const char *path)
{
    text t = {.n = 0};
    text_add(&t, "{\"schema\":\"sonde.doctor/1\",\n\"machine\":{\"cpu\":");
    text_json(&t, m->cpu);
    text_add(&t,
             ",\"level\":\"%s\",\"levels\":\"%s\",\"unused\":\"%s\",\"cores\":%d,\"usable_cores\":%"
             "d,\"threads\":%d",
             m->level, m->levels, m->unused, m->cores, m->usable_cores, m->threads);
    text_add(&t,
             ",\"sockets\":%d,\"memory_nodes\":%d,\"physical_cores\":%d,"
             "\"usable_physical_cores\":%d,\"threads_per_core\":%d",
             m->sockets, m->memory_nodes, m->physical_cores, m->usable_physical_cores,
             m->threads_per_core);
    add_nodes(&t, context);
    text_add(&t, ",\"l1_bytes\":%llu,\"l2_bytes\":%llu,\"l3_bytes\":%llu,\"build\":",
             (unsigned long long)m->l1_bytes, (unsigned long long)m->l2_bytes,
             (unsigned long long)m->l3_bytes);
    text_json(&t, m->build);
    if (m->measured) {
        add_peak(&t, "peak_of_one", &m->one);
        add_peak(&t, "peak_of_all", &m->all);
        add_rates(&t, m);
    }
    text_add(&t, "},\n\"findings\":[");
    for (size_t i = 0; i < f->n; i++) {
        const sonde_finding *x = &f->items[i];
        text_add(&t, "%s\n{\"severity\":\"%s\",\"topic\":\"%s\",\"finding\":", i ? "," : "",
                 sonde_severity_text(x->severity), x->topic);
        text_json(&t, x->finding);
        text_add(&t, ",\"evidence\":");
        text_json(&t, x->evidence);
        text_add(&t, ",\"remedy\":");
        text_json(&t, x->remedy);
        text_add(&t, "}");
    }
    text_add(&t, "]}\n");
    const int code = write_text(path, t.data, t.n);
    text_free(&t);
    return code;
}

static int examine(const doctor_options *o)
{
    const list *rest = &o->setup.common.rest;
    sonde_context_options c = context_options(&o->setup.model);
    if (o->calibrate)
        show_warnings(&c, &o->setup.common);
    sonde_context *context = NULL;
    sonde_machine_info m = SONDE_INIT(sonde_machine_info);
    sonde_error err;
    findings f = {.n = 0};
    int code = EXIT_OK;
    if (sonde_context_create(&c, &context, &err) ||
        (o->calibrate ? sonde_machine_calibrate(context, &m, &err)
                      : sonde_machine_peaks(context, &m, &err)))
        code = fail("%s", err.message);
    if (!code)
        code = look_at_machine(&f, context, false);
    if (!code && rest->n)
        code = look_at_model(&f, &o->setup, rest->items[0]);
    const bool json_only = o->json && strcmp(o->json, "-") == 0;
    if (!code && !json_only && !o->setup.common.quiet) {
        print_machine(&m);
        print_findings(&f);
    }
    if (!code && o->json)
        code = save_json(&f, &m, context, o->json);
    findings_free(&f);
    sonde_context_release(context);
    return code;
}

int cmd_doctor(int argc, char **argv)
{
    static const verb_options verb = {"doctor", details, groups, help_passes};
    doctor_options o = {.setup = SETUP_DEFAULTS};
    const size_t *n = &o.setup.common.rest.n;
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0 && *n > 1)
        code = fail_usage("doctor takes at most one MODEL, not %zu", *n);
    if (code < 0)
        code = examine(&o);
    options_free(&verb, &o.setup.common);
    return code;
}
