/* SPDX-License-Identifier: Apache-2.0 */
/* Options as tables: one row says short and long name, where the value goes and what it does, so
 * parsing, --help and suggestions cannot disagree. GNU habits: -n 5, -n5, --iterations 5,
 * --iterations=5, "--" ends options, options and arguments may be mixed. */
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* MAYBE: a text that may be left out, and then is empty; given as --name=TEXT. */
typedef enum kind { FLAG, COUNT, INT, SIZE, REAL, TEXT, LIST, MAYBE } kind;

typedef struct row {
    unsigned group;
    char letter; /* 0: none */
    const char *name;
    kind kind;
    size_t at;         /* offset in options */
    const char *value; /* what stands for the value in help */
    const char *help;  /* NULL: another spelling of the row above */
} row;

#define AT(field) offsetof(options, field)

static const struct group {
    unsigned bit;
    const char *title;
} groups_shown[] = {
    {OPT_INSPECT, "What to look at"}, {OPT_CHECK, "Comparing"}, {OPT_BENCH, "What is compared"},
    {OPT_RUN, "How often"},           {OPT_INPUT, "Inputs"},    {OPT_SHOW, "Results"},
    {OPT_FILES, "Results"},           {OPT_DIFF, "Comparing"},  {OPT_OP, "The operator"},
    {OPT_DOCTOR, "The machine"},      {OPT_TABLE, "The table"}, {OPT_LEVEL, "Recording"},
    {OPT_MODEL, "How the model runs"}};

static const row rows[] = {
    {OPT_BENCH, 0, "against", LIST, AT(against), "A,B:VARIANT",
     "other runtimes, measured in turn with this one"},
    {OPT_BENCH, 0, "peer", LIST, AT(peers), "NAME=FILE",
     "a runtime of your own: a program that speaks the bench's protocol"},
    {OPT_BENCH, 0, "python", TEXT, AT(python), "FILE",
     "interpreter that has the Python runtimes (SONDE_BENCH_PYTHON, python3)"},
    {OPT_BENCH, 't', "threads", TEXT, AT(thread_list), "N,N",
     "threads; a list measures each; 0 = all cores the quota allows (0)"},
    {OPT_BENCH, 0, "batch-size", TEXT, AT(batch_list), "N,N",
     "size of the batch dimension; a list measures each; also --batch"},
    {OPT_BENCH, 0, "batch_size", TEXT, AT(batch_list), "N,N", NULL},
    {OPT_BENCH, 0, "batch", TEXT, AT(batch_list), "N,N", NULL},
    {OPT_BENCH, 0, "instances", INT, AT(instances), "N",
     "sessions that run at once in one process, cores divided (1); also --workers"},
    {OPT_BENCH, 0, "workers", INT, AT(instances), "N", NULL},
    {OPT_BENCH, 0, "workload", TEXT, AT(workload), "L|T",
     "latency: one instance; throughput: one for each thread (L)"},
    {OPT_BENCH, 0, "mode", TEXT, AT(mode), "performance|accuracy",
     "accuracy: how often the answers to a data set are right (performance)"},
    {OPT_BENCH, 0, "dataset", TEXT, AT(dataset), "DIR",
     "folders of images named after classes, or .npz files with a 'label'"},
    {OPT_BENCH, 0, "rounds", INT, AT(rounds), "N",
     "times each runtime is started anew, in rotated order (5)"},
    {OPT_BENCH, 0, "min-runs", INT, AT(min_runs), "N", "runs of each whole program (10)"},
    {OPT_BENCH, 0, "timeout", REAL, AT(timeout_s), "S",
     "end a runtime that does not answer for so long (60)"},
    {OPT_BENCH, 0, "no-program", FLAG, AT(no_program), NULL,
     "leave out whole programs, from process start to result"},
    {OPT_BENCH, 0, "no-inference", FLAG, AT(no_inference), NULL, "measure nothing else"},
    {OPT_BENCH, 0, "no-pin", FLAG, AT(no_pin), NULL, "let the system choose the cores"},

    {OPT_RUN, 'n', "iterations", INT, AT(iterations), "N", "measured runs, warm-up not counted"},
    {OPT_BENCH, 0, "queries", INT, AT(iterations), "N", "the same as --iterations"},
    {OPT_RUN, 'w', "warmup", INT, AT(warmup), "N", "runs before that"},
    {OPT_RUN, 0, "w", INT, AT(warmup), "N", NULL},
    {OPT_RUN, 0, "duration", REAL, AT(duration_s), "S",
     "for S seconds where -n is not given (profile, bench: 2)"},
    {OPT_RUN, 0, "instances", INT, AT(instances), "N",
     "sessions that run at once in one process, cores divided (1)"},

    {OPT_INPUT, 'i', "input", LIST, AT(inputs), "[NAME=]FILE",
     "an input from a .npy, .npz, .safetensors, .pb, .jpg, .png or .ppm file, or all from a "
     "folder"},
    {OPT_INPUT, 's', "size", LIST, AT(sizes), "DIM=N",
     "size of a symbolic dimension; INPUT.DIM=N or INPUT.k=N for one input"},
    {OPT_INPUT, 'r', "range", LIST, AT(ranges), "INPUT=MIN:MAX",
     "range of the random numbers of an input"},
    {OPT_INPUT | OPT_SEED, 0, "seed", INT, AT(seed), "N",
     "seed of random inputs and built-in weights (0)"},
    {OPT_INPUT, 0, "batch-size", INT, AT(batch_size), "N", "size of the batch dimension"},
    {OPT_INPUT, 0, "batch_size", INT, AT(batch_size), "N", NULL},
    {OPT_INPUT, 0, "seq-len", INT, AT(seq_len), "N", "size of the sequence dimension"},
    {OPT_INPUT, 0, "seq_len", INT, AT(seq_len), "N", NULL},
    {OPT_INPUT, 0, "image-resize", INT, AT(image_resize), "N",
     "shorter side of images before the crop"},
    {OPT_INPUT, 0, "image-layout", TEXT, AT(image_layout), "nchw|nhwc",
     "instead of what the shape says"},
    {OPT_INPUT, 0, "image-mean", TEXT, AT(image_mean), "R,G,B", "instead of ImageNet's"},
    {OPT_INPUT, 0, "image-std", TEXT, AT(image_std), "R,G,B", "instead of ImageNet's"},
    {OPT_INPUT, 0, "image-bgr", FLAG, AT(image_bgr), NULL,
     "channels in the order blue, green, red"},
    {OPT_INPUT, 0, "image-raw", FLAG, AT(image_raw), NULL,
     "values / 255, without mean and deviation"},

    {OPT_SHOW | OPT_TABLE | OPT_INSPECT | OPT_FILES, 'o', "output", LIST, AT(outputs), "FILE",
     "save to FILE; the suffix picks the format; may be repeated"},
    {OPT_SHOW, 0, "check", TEXT, AT(check), "FILE",
     "compare the outputs with those in a file or folder"},
    {OPT_SHOW | OPT_CHECK | OPT_FILES, 0, "rtol", REAL, AT(rtol), "X",
     "relative tolerance of comparisons (1e-3)"},
    {OPT_SHOW | OPT_CHECK | OPT_FILES, 0, "atol", REAL, AT(atol), "X",
     "absolute tolerance of comparisons (1e-7)"},
    {OPT_SHOW | OPT_FILES, 0, "top", INT, AT(top), "K", "show the K largest scores of each output"},
    {OPT_SHOW | OPT_FILES, 0, "labels", TEXT, AT(labels), "FILE", "one label a line, for --top"},
    {OPT_SHOW, 0, "print", FLAG, AT(print), NULL, "print every element of the outputs"},
    {OPT_SHOW | OPT_FILES, 'p', "profile", COUNT, AT(profile), NULL,
     "show the timing table; twice: by shape"},
    {OPT_SHOW | OPT_TABLE | OPT_DIFF | OPT_OP | OPT_DOCTOR | OPT_FILES | OPT_INSPECT, 0, "json",
     TEXT, AT(json), "FILE", "a summary as JSON; '-' is the terminal"},

    {OPT_CHECK, 0, "strict", FLAG, AT(strict), NULL, "what is not supported counts as failed"},
    {OPT_CHECK, 0, "filter", TEXT, AT(filter), "TEXT", "only folders whose name contains TEXT"},

    {OPT_INSPECT, 0, "nodes", FLAG, AT(nodes), NULL, "list every node with its types"},
    {OPT_INSPECT, 0, "operators", FLAG, AT(operators), NULL,
     "list what can be run instead of looking at a model: domain, operator, versions, types"},
    {OPT_INSPECT, 0, "graph", TEXT, AT(graph), "FILE", "write the graph as .dot or .txt"},
    {OPT_INSPECT, 0, "optimized", FLAG, AT(optimized), NULL,
     "the graph after the passes; with -o out.onnx saved as a model"},

    {OPT_DIFF, 0, "by", TEXT, AT(by), "op|node|shape", "what makes a row (op)"},
    {OPT_DIFF, 0, "fail-above", TEXT, AT(fail_above), "PERCENT",
     "exit with 3 when the total, or an operator that matters, is surely slower by more"},

    {OPT_OP, 0, "shape", LIST, AT(shapes), "[TYPE:]1,64,56,56",
     "an input, in order; TYPE is f32 unless given; '_' is one left out"},
    {OPT_OP, 0, "const", LIST, AT(constants), "K", "input K is a weight; may be repeated"},
    {OPT_OP, 0, "value", LIST, AT(contents), "K=1,2,3", "elements of input K"},
    {OPT_OP, 0, "attr", LIST, AT(attributes), "NAME=VALUE", "an attribute; may be repeated"},
    {OPT_OP, 0, "domain", TEXT, AT(domain), "NAME", "of the operator (ai.onnx)"},
    {OPT_OP, 0, "opset", INT, AT(opset), "N", "version of the operator set (the newest)"},
    {OPT_OP, 0, "outputs", INT, AT(n_outputs), "N", "outputs that are wanted (1)"},
    {OPT_OP, 0, "node", TEXT, AT(node), "NAME", "the node of MODEL with this name"},
    {OPT_OP, 0, "op-type", TEXT, AT(op_type), "TYPE",
     "every node of MODEL of this type, a row each"},
    {OPT_OP, 'w', "warmup", INT, AT(warmup), "N", "runs before measuring (10)"},
    {OPT_OP, 0, "exec", INT, AT(exec), "N", "runs behind one latency (10)"},
    {OPT_OP, 0, "repeat", INT, AT(repeat), "N", "latencies (1)"},
    {OPT_DOCTOR, 0, "calibrate", FLAG, AT(calibrate), NULL,
     "measure what the machine reaches at best, and keep it for later profiles"},
    {OPT_TABLE, 0, "sort", TEXT, AT(sort), "time|name", "order of the rows (time)"},
    {OPT_TABLE, 0, "report", LIST, AT(reports), "KIND",
     "also print: summary, records, inferences, executions, operators, external, memory"},
    {OPT_TABLE, 0, "by-shape", FLAG, AT(by_shape), NULL,
     "split operators by the shapes of their inputs"},
    {OPT_TABLE, 0, "by-node", FLAG, AT(by_node), NULL,
     "one row per step, with the nodes it stands for"},
    {OPT_TABLE, 0, "filter-op", TEXT, AT(filter_op), "A,B", "only these operators"},
    {OPT_TABLE, 0, "categories", TEXT, AT(categories), "A,B",
     "only spans of these in .json and .pftrace; the table has all"},
    {OPT_TABLE, 0, "sparse-ratio", TEXT, AT(sparse_ratio), "90=4,80=2.5,70=2",
     "how much faster sparse weights are assumed to be in .csv and .xlsx"},
    {OPT_TABLE, 0, "sparse-aim", REAL, AT(sparse_aim), "PERCENT",
     "share of zeros aimed at in .csv and .xlsx (90)"},
    {OPT_TABLE, 0, "folded-nodes", FLAG, AT(folded_nodes), NULL,
     "rows in .csv and .xlsx also for nodes that were folded away, at zero"},
    {OPT_LEVEL, 0, "level", INT, AT(level), "N",
     "1 operators, 2 and what prepares them, 3 and every worker thread (2)"},
    {OPT_LEVEL, 0, "counters", FLAG, AT(counters), NULL,
     "hardware counters of every operator, and what the system counts"},
    {OPT_LEVEL, 0, "memory", FLAG, AT(memory), NULL,
     "also bytes used and allocated after every step, as counters of traces"},

    {OPT_MODEL, 't', "threads", INT, AT(threads), "N",
     "threads; 0 = all cores the quota allows (0)"},
    {OPT_MODEL, 0, "max-memory", SIZE, AT(max_memory), "BYTES",
     "refuse what takes more; 500M and 2G are understood (no limit)"},
    {OPT_TABLE | OPT_DIFF, 0, "max-memory", SIZE, AT(max_memory), "BYTES",
     "refuse profiles that take more; 500M and 2G are understood (no limit)"},
    {OPT_MODEL, 0, "cpu", TEXT, AT(cpu), "NAME",
     "use no newer instructions than baseline, avx2, avx512, neon, …"},
    {OPT_MODEL, 0, "device", TEXT, AT(device), "cpu", "where to run"},
    {OPT_MODEL, 0, "precision", TEXT, AT(precision), "fp32", "of the arithmetic"},
    {OPT_MODEL, 0, "no-optimize", FLAG, AT(no_optimize), NULL,
     "run the graph as it is in the file"},
    {OPT_MODEL, 0, "disable-pass", LIST, AT(disabled_passes), "NAME",
     "leave one pass out; may be repeated"},
    {OPT_MODEL, 0, "no-mmap", FLAG, AT(no_mmap), NULL,
     "read the model's files instead of mapping them"},
    {OPT_MODEL, 0, "no-prepack", FLAG, AT(no_prepack), NULL,
     "leave weights as they are in the file"},
    {OPT_MODEL, 0, "flush-denormals", FLAG, AT(flush_denormals), NULL,
     "count numbers that are all but 0 as 0: arithmetic on them is slow"},
    {OPT_MODEL, 0, "weights-cache", MAYBE, AT(weights_cache), "DIR",
     "keep packed weights in DIR or the user's cache folder, and map them the next time"},
    {OPT_MODEL, 0, "tune", MAYBE, AT(tune), "DIR",
     "measure the ways to cut each step once, and keep the fastest in DIR or the cache folder"},

    {~0u, 'v', "verbose", COUNT, AT(verbose), NULL,
     "say more; run and profile: every step as it runs"},
    {~0u, 'q', "quiet", FLAG, AT(quiet), NULL, "say less: no warnings, no progress"},
    {~0u, 'h', "help", FLAG, AT(help), NULL, "this text"},
    {~0u, 0, "version", FLAG, AT(version), NULL, "the version"},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* ------------------------------------------------------------------ help */
static void print_row(const row *r)
{
    char left[64];
    snprintf(left, sizeof left, "%c%c%c --%s%s%s%s", r->letter ? '-' : ' ',
             r->letter ? r->letter : ' ', r->letter ? ',' : ' ', r->name,
             !r->value          ? ""
             : r->kind == MAYBE ? "[="
                                : " ",
             r->value ? r->value : "", r->kind == MAYBE ? "]" : "");
    if (strlen(left) > 28)
        printf("  %s\n  %-28s  %s\n", left, "", r->help);
    else
        printf("  %-28s  %s\n", left, r->help);
}

/* A row is shown under the first of its groups that the verb has. */
static unsigned home(const row *r, unsigned groups)
{
    for (size_t g = 0; g < sizeof groups_shown / sizeof groups_shown[0]; g++)
        if (r->group & groups & groups_shown[g].bit)
            return groups_shown[g].bit;
    return 0;
}

/* A row behind another of the same name, which the verb finds first. */
static bool is_hidden(const row *r, unsigned groups)
{
    for (const row *before = rows; before < r; before++)
        if (before->group & groups && strcmp(before->name, r->name) == 0)
            return true;
    return false;
}

static void print_help(const char *verb, unsigned groups, const char *details)
{
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, verb) == 0)
            printf("Usage: sonde %s [OPTION]... %s\n\n%c%s.\n", verb, c->arguments,
                   c->summary[0] - ('a' <= c->summary[0] && c->summary[0] <= 'z' ? 'a' - 'A' : 0),
                   c->summary + 1);
    if (details)
        printf("%s", details);
    for (size_t g = 0; g < sizeof groups_shown / sizeof groups_shown[0]; g++) {
        bool titled = false;
        for (int i = 0; i < ROWS; i++) {
            if (rows[i].group == ~0u || !rows[i].help ||
                home(&rows[i], groups) != groups_shown[g].bit || is_hidden(&rows[i], groups))
                continue;
            if (!titled)
                printf("\n%s:\n", groups_shown[g].title);
            titled = true;
            print_row(&rows[i]);
        }
    }
    printf("\nAlways:\n");
    for (int i = 0; i < ROWS; i++)
        if (rows[i].group == ~0u ||
            ((groups & OPT_SEED) && !(groups & OPT_INPUT) && strcmp(rows[i].name, "seed") == 0))
            print_row(&rows[i]);
    if (groups & OPT_MODEL) {
        printf("\nPasses:");
        for (size_t i = 0; sonde_pass_name(i); i++)
            printf("%s %s", i ? "," : "", sonde_pass_name(i));
        printf("\n");
    }
    if (groups & OPT_TABLE) {
        printf("\nFormats:");
        for (size_t i = 0; sonde_format_suffix(i); i++)
            printf("%s %s", i ? "," : "", sonde_format_suffix(i));
        printf("\nCategories:");
        for (size_t i = 0; sonde_category_name(i); i++)
            printf("%s %s", i ? "," : "", sonde_category_name(i));
        printf("\n");
    }
}

/* ------------------------------------------------------------------ parsing */
static const row *find(unsigned groups, char letter, const char *name, size_t n)
{
    for (int i = 0; i < ROWS; i++)
        if ((rows[i].group & groups || rows[i].group == ~0u) &&
            (name ? strlen(rows[i].name) == n && strncmp(rows[i].name, name, n) == 0
                  : letter && rows[i].letter == letter))
            return &rows[i];
    return NULL;
}

static int unknown(const char *verb, unsigned groups, const char *word, const char *name)
{
    const char *names[ROWS + 1];
    size_t n = 0;
    for (int i = 0; i < ROWS; i++)
        if ((rows[i].group & groups || rows[i].group == ~0u) && rows[i].help)
            names[n++] = rows[i].name;
    names[n] = NULL;
    const char *near = name ? closest(name, names) : NULL;
    if (near)
        return fail_usage("unknown option '%s'; did you mean '--%s'?", word, near);
    return fail_usage("unknown option '%s'; see 'sonde %s --help'", word, verb);
}

static int set_value(options *o, const row *r, const char *value)
{
    char *field = (char *)o + r->at, *end = NULL;
    errno = 0;
    switch (r->kind) {
    case FLAG:
        *(bool *)field = true;
        return -1;
    case COUNT:
        ++*(int *)field;
        return -1;
    case INT: {
        const long long n = strtoll(value, &end, 10);
        if (!*value || *end || errno || n < 0)
            return fail_usage("--%s takes a number that is not negative, not '%s'", r->name, value);
        *(int64_t *)field = n;
        return -1;
    }
    case SIZE: {
        static const char units[] = "KMGT";
        const long long n = strtoll(value, &end, 10);
        const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
        const int shift = unit ? 10 * (int)(unit - units + 1) : 0;
        if (n <= 0 || end == value || (*end && (!unit || end[1])) || n > INT64_MAX >> shift)
            return fail_usage("--%s takes a number of bytes such as 500M or 2G, not '%s'", r->name,
                              value);
        *(int64_t *)field = (int64_t)n << shift;
        return -1;
    }
    case REAL: {
        const double x = strtod(value, &end);
        if (!*value || *end || !(x >= 0) || !isfinite(x))
            return fail_usage("--%s takes a number that is not negative, not '%s'", r->name, value);
        *(double *)field = x;
        return -1;
    }
    case TEXT:
    case MAYBE:
        *(const char **)field = value ? value : "";
        return -1;
    case LIST:
        list_add((list *)field, value);
        return -1;
    }
    return -1;
}

static bool takes_value(const row *r)
{
    return r->kind != FLAG && r->kind != COUNT;
}

static int parse_long(options *o, const char *verb, unsigned groups, char **argv, int argc, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    const size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const row *r = find(groups, 0, name, n);
    if (!r) {
        char *word = text_of("%.*s", (int)n, name);
        const int code = unknown(verb, groups, argv[*i], word);
        free(word);
        return code;
    }
    if (r->kind == MAYBE)
        return set_value(o, r, equals ? equals + 1 : NULL);
    if (!takes_value(r))
        return equals ? fail_usage("--%s takes no value", r->name) : set_value(o, r, NULL);
    if (equals)
        return set_value(o, r, equals + 1);
    if (*i + 1 >= argc)
        return fail_usage("--%s needs a value: %s", r->name, r->value);
    return set_value(o, r, argv[++*i]);
}

/* -pv is -p -v; -n5 is -n 5. */
static int parse_letters(options *o, const char *verb, unsigned groups, char **argv, int argc,
                         int *i)
{
    const char *word = argv[*i];
    for (const char *p = word + 1; *p; p++) {
        const row *r = find(groups, *p, NULL, 0);
        if (!r)
            return unknown(verb, groups, word, NULL);
        if (!takes_value(r)) {
            const int code = set_value(o, r, NULL);
            if (code >= 0)
                return code;
            continue;
        }
        if (p[1])
            return set_value(o, r, p[1] == '=' ? p + 2 : p + 1);
        if (*i + 1 >= argc)
            return fail_usage("-%c needs a value: %s", *p, r->value);
        return set_value(o, r, argv[++*i]);
    }
    return -1;
}

int options_parse(options *o, const char *verb, unsigned groups, const char *details, int argc,
                  char **argv)
{
    *o = (options){.iterations = -1,
                   .warmup = -1,
                   .duration_s = -1,
                   .rtol = 1e-3,
                   .atol = 1e-7,
                   .level = 2,
                   .exec = -1,
                   .repeat = -1,
                   .rounds = 5,
                   .min_runs = 10,
                   .timeout_s = 60};
    bool options_ended = false;
    for (int i = 0; i < argc; i++) {
        int code = -1;
        if (options_ended || argv[i][0] != '-' || !argv[i][1])
            list_add(&o->rest, argv[i]);
        else if (strcmp(argv[i], "--") == 0)
            options_ended = true;
        else if (argv[i][1] == '-')
            code = parse_long(o, verb, groups, argv, argc, &i);
        else
            code = parse_letters(o, verb, groups, argv, argc, &i);
        if (code >= 0)
            return code;
    }
    if (o->help) {
        print_help(verb, groups, details);
        return EXIT_OK;
    }
    if (o->version) {
        printf("sonde %s\n", sonde_version());
        return EXIT_OK;
    }
    if (o->device && strcmp(o->device, "cpu") != 0)
        return fail_usage("--device %s: this build runs on 'cpu' only", o->device);
    if (o->precision && strcmp(o->precision, "fp32") != 0)
        return fail_usage("--precision %s: this build computes in 'fp32' only", o->precision);
    if (o->sort && strcmp(o->sort, "time") != 0 && strcmp(o->sort, "name") != 0)
        return fail_usage("--sort %s: rows are sorted by 'time' or 'name'", o->sort);
    if (o->level < 1 || o->level > 3)
        return fail_usage("--level %lld: the profiler has levels 1 to 3", (long long)o->level);
    if (o->duration_s > 1e6)
        return fail_usage("--duration %g: at most 1000000 seconds", o->duration_s);
    if (o->instances > 1024)
        return fail_usage("--instances %lld: at most 1024", (long long)o->instances);
    if (o->counters && o->instances > 1)
        return fail_usage("--counters with --instances: counters count the whole process, so what "
                          "an operator did cannot be told from what others did meanwhile");
    if (o->threads > 4096)
        return fail_usage("--threads %lld: at most 4096", (long long)o->threads);
    return export_options(o);
}

double duration_ms(const options *o)
{
    return (o->duration_s >= 0 ? o->duration_s : 2) * 1e3;
}

void options_free(options *o)
{
    list_free(&o->rest);
    list_free(&o->against);
    list_free(&o->peers);
    list_free(&o->shapes);
    list_free(&o->constants);
    list_free(&o->attributes);
    list_free(&o->contents);
    list_free(&o->disabled_passes);
    list_free(&o->reports);
    list_free(&o->inputs);
    list_free(&o->sizes);
    list_free(&o->ranges);
    list_free(&o->outputs);
}
