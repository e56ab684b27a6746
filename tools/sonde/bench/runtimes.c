/* SPDX-License-Identifier: Apache-2.0 */
/* Which runtimes are compared, from what people type: --against onnxruntime,torch:compile and
 * --peer NAME=FILE. Names and variants are checked before anything runs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/parts.h"

static const struct peer {
    const char *name, *file, *variants, *install;
} peers[] = {
#define PEER(name, file, variants, install) {name, file, variants, install},
#include "bench/peers.inc"
#undef PEER
};
enum { PEERS = sizeof peers / sizeof peers[0] };

char *bench_self(void)
{
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    /* A program that was replaced while it runs has no path any more, but still this one. */
    return text_of("%s", access(path, X_OK) == 0 ? path : "/proc/self/exe");
}

/* ------------------------------------------------------------------ parsing */
/* The file of --peer NAME=FILE, or NULL. */
static const char *own_peer(const bench_options *o, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < o->peers.n; i++)
        if (strncmp(o->peers.items[i], name, n) == 0 && o->peers.items[i][n] == '=')
            return o->peers.items[i] + n + 1;
    return NULL;
}

static const struct peer *find_peer(const char *name)
{
    for (int i = 0; i < PEERS; i++)
        if (strcmp(peers[i].name, name) == 0)
            return &peers[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[PEERS + 1];
    text all = {.n = 0};
    for (int i = 0; i < PEERS; i++) {
        names[i] = peers[i].name;
        text_add(&all, "%s%s", i ? ", " : "", peers[i].name);
    }
    names[PEERS] = NULL;
    const char *near = closest(name, names);
    const int code =
        near ? fail_usage("unknown runtime '%s'; did you mean '%s'?", name, near)
             : fail_usage("unknown runtime '%s'; known runtimes are %s; --peer %s=FILE adds one",
                          name, all.data, name);
    text_free(&all);
    return code;
}

static bool variant_fits(const char *variants, const char *option)
{
    for (const char *v = variants; *v;) {
        const size_t n = strcspn(v, " ");
        if (v[n - 1] == '=' ? strncmp(v, option, n) == 0 && option[n]
                            : strlen(option) == n && strncmp(v, option, n) == 0)
            return true;
        v += n + (v[n] == ' ');
    }
    return false;
}

static int add_runtime(runtimes *r, const bench_options *o, const char *label)
{
    char *copy = text_of("%s", label), *rest = strchr(copy, ':');
    if (rest)
        *rest++ = 0;
    runtime one = {.label = text_of("%s", label), .name = copy};
    const char *own = own_peer(o, copy);
    const struct peer *peer = own ? NULL : find_peer(copy);
    int code = -1;
    for (char *option = rest ? strtok(rest, ":") : NULL; option; option = strtok(NULL, ":")) {
        if (code < 0 && peer && !variant_fits(peer->variants, option))
            code = fail_usage("'%s': %s has no variant '%s'; its variants are %s", label, copy,
                              option, peer->variants);
        list_add(&one.options, text_of("%s", option));
    }
    if (code < 0 && !own && !peer)
        code = unknown(copy);
    if (own)
        one.file = text_of("%s", own);
    else if (peer && peer->file)
        one.file = scratch_path(peer->file);
    one.install = peer ? peer->install : NULL;
    r->items = grow(r->items, r->n, sizeof *r->items);
    r->items[r->n++] = one;
    return code;
}

static bool has_label(const runtimes *r, const char *label)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->items[i].label, label) == 0)
            return true;
    return false;
}

/* "a,b:x=1" into items; no item twice. */
static int add_list(runtimes *r, const bench_options *o, const char *names)
{
    int code = -1;
    char *copy = text_of("%s", names), *state = NULL;
    for (char *item = strtok_r(copy, ", ", &state); item && code < 0;
         item = strtok_r(NULL, ", ", &state))
        if (!has_label(r, item))
            code = add_runtime(r, o, item);
    free(copy);
    return code;
}

/* A word of the list that is exactly "sonde". */
static bool names_sonde(const bench_options *o)
{
    for (size_t i = 0; i < o->against.n; i++)
        for (const char *p = o->against.items[i]; *p; p += strcspn(p, ", "), p += *p != 0)
            if (strcspn(p, ", ") == 5 && strncmp(p, "sonde", 5) == 0)
                return true;
    return false;
}

static bool has_option(const runtime *r, const char *start)
{
    for (size_t i = 0; i < r->options.n; i++)
        if (strncmp(r->options.items[i], start, strlen(start)) == 0)
            return true;
    return false;
}

/* A copy of `one` that is asked for a precision, and says so in its label. */
static runtime with_precision(const runtime *one, const char *precision)
{
    runtime copy = {.label = text_of("%s:precision=%s", one->label, precision),
                    .name = text_of("%s", one->name),
                    .file = one->file ? text_of("%s", one->file) : NULL,
                    .install = one->install};
    for (size_t i = 0; i < one->options.n; i++)
        list_add(&copy.options, text_of("%s", one->options.items[i]));
    list_add(&copy.options, text_of("precision=%s", precision));
    return copy;
}

static void runtime_free(runtime *one)
{
    list_free_texts(&one->options);
    free(one->label);
    free(one->name);
    free(one->file);
}

static bool can_be_asked(const bench_options *o, const runtime *one, const char *precision)
{
    const struct peer *peer = own_peer(o, one->name) ? NULL : find_peer(one->name);
    char *option = text_of("precision=%s", precision);
    const bool can = peer && !has_option(one, "precision=") && variant_fits(peer->variants, option);
    free(option);
    return can;
}

/* --precision: each runtime that has such a variant once for each of them, the others as they are.
 */
static int add_precisions(runtimes *r, const bench_options *o)
{
    list all = {.n = 0};
    int code = -1;
    char *copy = text_of("%s", o->precision_list ? o->precision_list : ""), *state = NULL;
    for (char *p = strtok_r(copy, ", ", &state); p && code < 0; p = strtok_r(NULL, ", ", &state)) {
        sonde_precision precision;
        if (!precision_of(p, &precision))
            code = fail_usage(
                "--precision %s is not supported; possible values: file, f32, bf16, f16, auto", p);
        list_add(&all, text_of("%s", sonde_precision_text(precision)));
    }
    runtimes made = {.python = r->python};
    for (size_t i = 0; i < r->n && code < 0 && all.n > 0; i++) {
        runtime *one = &r->items[i];
        size_t asked = 0;
        for (size_t k = 0; k < all.n; k++) {
            if (!can_be_asked(o, one, all.items[k]))
                continue;
            made.items = grow(made.items, made.n, sizeof *made.items);
            made.items[made.n++] = with_precision(one, all.items[k]);
            asked++;
        }
        if (asked > 0) {
            runtime_free(one);
            continue;
        }
        made.items = grow(made.items, made.n, sizeof *made.items);
        made.items[made.n++] = *one;
    }
    if (code < 0 && all.n > 0) {
        free(r->items);
        *r = made;
    }
    list_free_texts(&all);
    free(copy);
    return code;
}

/* What --no-optimize and its like mean here: options of sonde, whichever its variant. */
static void add_model_options(runtime *r, const model_options *o)
{
    if (strcmp(r->name, "sonde") != 0 || r->file)
        return;
    if (o->no_optimize)
        list_add(&r->options, text_of("no-optimize"));
    if (o->no_prepack)
        list_add(&r->options, text_of("no-prepack"));
    if (o->no_mmap)
        list_add(&r->options, text_of("no-mmap"));
    if (o->flush_denormals)
        list_add(&r->options, text_of("flush-denormals"));
    if (o->max_memory)
        list_add(&r->options, text_of("max-memory=%lld", (long long)o->max_memory));
    if (o->tune)
        list_add(&r->options, text_of("%s%s", *o->tune ? "tune=" : "tune", o->tune));
    if (o->cpu)
        list_add(&r->options, text_of("cpu=%s", o->cpu));
    if (o->numa)
        list_add(&r->options, text_of("numa=%s", o->numa));
    for (size_t i = 0; i < o->disabled_passes.n; i++)
        list_add(&r->options, text_of("disable-pass=%s", o->disabled_passes.items[i]));
}

void runtimes_help(text *t)
{
    text_add(
        t,
        "\nRuntimes and their variants (NAME:VARIANT; a variant that ends in = takes a value):\n");
    for (int i = 0; i < PEERS; i++)
        text_add(t, "  %-12s %s\n", peers[i].name, peers[i].variants);
}

int runtimes_make(runtimes *r, const bench_options *o)
{
    const char *python = o->python ? o->python : getenv("SONDE_BENCH_PYTHON");
    *r = (runtimes){.python = python && *python ? python : "python3"};
    int code = -1;
    for (size_t i = 0; i < o->peers.n && code < 0; i++) {
        const char *equals = strchr(o->peers.items[i], '=');
        if (!equals || equals == o->peers.items[i] || !is_file(equals + 1))
            code = fail_usage("--peer '%s' is not of the form NAME=FILE with a file that exists",
                              o->peers.items[i]);
    }
    if (code < 0 && !names_sonde(o))
        code = add_runtime(r, o, "sonde");
    for (size_t i = 0; i < o->against.n && code < 0; i++)
        code = add_list(r, o, o->against.items[i]);
    for (size_t i = 0; i < o->peers.n && code < 0; i++) {
        const size_t n = strcspn(o->peers.items[i], "=");
        char *name = text_of("%.*s", (int)n, o->peers.items[i]);
        bool used = false;
        for (size_t k = 0; k < r->n; k++)
            used |= strcmp(r->items[k].name, name) == 0;
        if (!used)
            code = add_runtime(r, o, name);
        free(name);
    }
    if (code < 0)
        code = add_precisions(r, o);
    for (size_t i = 0; i < r->n; i++)
        add_model_options(&r->items[i], &o->setup.model);
    return code;
}

void runtimes_free(runtimes *r)
{
    for (size_t i = 0; i < r->n; i++)
        runtime_free(&r->items[i]);
    free(r->items);
    *r = (runtimes){.n = 0};
}

/* ------------------------------------------------------------------ drivers */
int runtimes_unpack(void)
{
    int code = EXIT_OK;
    for (const bench_file *f = bench_files; f->name && !code; f++) {
        char *path = scratch_path(f->name);
        code = write_text(path, f->text, f->bytes);
        free(path);
    }
    return code;
}

void runtime_command(const runtimes *all, const runtime *r, const char **argv)
{
    static char self[4096];
    size_t n = 0;
    if (!r->file) {
        char *path = bench_self();
        snprintf(self, sizeof self, "%s", path);
        free(path);
        argv[n++] = self;
        argv[n++] = "bench-driver";
    } else {
        if (ends_with(r->file, ".py"))
            argv[n++] = all->python;
        argv[n++] = r->file;
    }
    argv[n] = NULL;
}
