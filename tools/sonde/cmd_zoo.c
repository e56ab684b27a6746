/* SPDX-License-Identifier: Apache-2.0 */
/* sonde zoo: the built-in models. */
#include <string.h>

#include "sonde/experimental/inspect.h"
#include "sonde/experimental/zoo.h"
#include "tool.h"

static const char details[] =
    "\n"
    "Built-in models have the structure of well-known networks and random weights from a\n"
    "fixed seed. Use them to measure and test; their predictions mean nothing. zoo:NAME works\n"
    "wherever a MODEL is expected. GFLOPs are per inference at the default sizes; a\n"
    "multiply-add counts as two.\n"
    "\n"
    "  sonde zoo\n"
    "  sonde zoo save regnet_x_400mf regnet.onnx --seed 1\n";

typedef struct zoo_options {
    common_options common;
    int64_t seed;
    saving_options saving;
} zoo_options;

static const option_row rows[] = {SEED_ROW(zoo_options, seed), {0}};

static const option_group groups[] = {
    SAVING_OPTIONS(zoo_options, saving), {"Common options", rows, 0, NULL}, {0}};

/* Three digits: "31.8", "0.83", "<0.01". */
static const char *gflops(uint64_t flops, char *buf, size_t cap)
{
    const double g = (double)flops / 1e9;
    if (g < 0.01)
        return flops ? "<0.01" : "0";
    snprintf(buf, cap, "%.*f", g < 10 ? 2 : g < 100 ? 1 : 0, g);
    return buf;
}

static int list_models(void)
{
    int width = 0;
    for (size_t i = 0; sonde_zoo_name(i); i++)
        if ((int)strlen(sonde_zoo_name(i)) > width)
            width = (int)strlen(sonde_zoo_name(i));
    printf("%-*s  %12s  %7s\n", width, "", "parameters", "GFLOPs");
    for (size_t i = 0; sonde_zoo_name(i); i++) {
        char buf[16];
        printf("%-*s  %12s  %7s  %s\n", width, sonde_zoo_name(i), grouped(sonde_zoo_parameters(i)),
               gflops(sonde_zoo_flops(i), buf, sizeof buf), sonde_zoo_summary(i));
    }
    return EXIT_OK;
}

static int save_model(const zoo_options *o, const char *name, const char *path)
{
    sonde_model *model = NULL;
    sonde_error err;
    const int code = output_check(path);
    if (code >= 0)
        return code;
    if (sonde_zoo_build(NULL, name, (uint64_t)o->seed, &model, &err))
        return fail("%s", err.message);
    const sonde_save_options how = save_options(&o->saving);
    const sonde_status st = sonde_model_save_with(model, path, &how, &err);
    sonde_model_release(model);
    return st ? fail("%s", err.message) : EXIT_OK;
}

int cmd_zoo(int argc, char **argv)
{
    static const verb_options verb = {"zoo", details, groups, NULL};
    zoo_options o = {.seed = 0};
    int code = options_parse(&verb, &o.common, argc, argv);
    if (code < 0) {
        const list *rest = &o.common.rest;
        const char *const *a = rest->items;
        if (rest->n == 0 || (rest->n == 1 && strcmp(a[0], "list") == 0)) {
            code = saving_check(&o.saving, false, "'save NAME FILE'");
            code = code < 0 ? list_models() : code;
        } else if (strcmp(a[0], "save") == 0) {
            code = rest->n == 3
                       ? save_model(&o, a[1], a[2])
                       : fail_usage("zoo save takes NAME and FILE; see 'sonde zoo --help'");
        } else {
            code = fail_usage("unknown argument '%s'; zoo takes 'list' or 'save'", a[0]);
        }
    }
    options_free(&verb, &o.common);
    return code;
}
