/* SPDX-License-Identifier: Apache-2.0 */
/* sonde quantize: a float model becomes one of 8-bit integers, or of weights of 4 or 8 bits. Ends
 * with what it does for accuracy and, measured here, for speed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantize.h"

static const char details[] =
    "\n"
    "Writes standard ONNX that other runtimes run, too. Without --dynamic and --weights-only,\n"
    "activations and weights become 8-bit integers (QuantizeLinear and DequantizeLinear), and\n"
    "the ranges of activations come from --calibrate: a .npz whose arrays carry samples on\n"
    "axis 0, a .npy of the only input, or a folder of images, of such files or of ONNX test\n"
    "data. Convolutions, matrix products and what lies between them are quantised; the outputs\n"
    "of the model stay floats. NODES are names of nodes or weights with commas between them;\n"
    "* and ? are wildcards, and @FILE takes the names from the JSON of sonde compare or from\n"
    "the lines of a text. An interrupted run writes no file.\n"
    "\n"
    "  sonde quantize model.onnx --calibrate images/ -o int8.onnx\n"
    "  sonde quantize model.onnx --calibrate samples.npz --goal 30 -o int8.onnx\n"
    "  sonde quantize bert.onnx --dynamic -o int8.onnx\n"
    "  sonde quantize llm.onnx --weights-only 4 --block-size 64 -o int4.onnx\n";

#define AT(field) offsetof(quantize_options, field)
enum { NOT_GIVEN = -1 };

static const option_row quantizing_rows[] = {
    {'o', "output", OPT_MODEL, AT(output), "FILE", "the model to write"},
    {0, "calibrate", OPT_LIST, AT(calibrate), "DATA",
     "samples: .npz, .npy, an image, or a folder of images, such files or test data; may be "
     "repeated"},
    {0, "samples", OPT_INT, AT(most), "N",
     "take the first N samples of --calibrate (default: all)"},
    {0, "method", OPT_TEXT, AT(method), "minmax|percentile|entropy|mse",
     "how the ranges of activations follow from the samples (default: mse)"},
    {0, "percentile", OPT_REAL, AT(percentile), "P",
     "per cent of values inside the range, of --method percentile: above 50, to 100 (default: "
     "99.999)"},
    {0, "per-channel", OPT_FLAG, AT(per_channel), NULL,
     "weights have a scale for each output channel (the default)"},
    {0, "per-tensor", OPT_FLAG, AT(per_tensor), NULL, "weights have one scale"},
    {0, "activation-type", OPT_TEXT, AT(activation), "u8|s8",
     "integers of activations (default: u8)"},
    {0, "dynamic", OPT_FLAG, AT(dynamic), NULL,
     "find ranges in each run; matrix products only, no samples needed"},
    {0, "weights-only", OPT_TEXT, AT(weights_only), "4|8",
     "weights of matrix products in blocks (MatMulNBits); activations stay floats"},
    {0, "block-size", OPT_INT, AT(block_size), "N",
     "weights that share a scale, of --weights-only: a power of two, from 16 (default: 32)"},
    {0, "equalize", OPT_FLAG, AT(equalize), NULL,
     "balance the weights of neighbouring layers first"},
    {0, "bias-correction", OPT_FLAG, AT(correct_bias), NULL,
     "let biases take up the mean error of rounded weights (the default)"},
    {0, "no-bias-correction", OPT_FLAG, AT(keep_bias), NULL, "leave biases as they are"},
    {0, "only", OPT_LIST, AT(only), "NODES",
     "quantise these products and convolutions alone, and what lies between them"},
    {0, "except", OPT_LIST, AT(except), "NODES", "leave these nodes in float"},
    {0, "goal", OPT_REAL, AT(goal), "DB",
     "leave as few of the worst layers in float as the outputs need for this SQNR; exit with "
     "status 3 if they do not reach it (the best model is written)"},
    {0, "force", OPT_FLAG, AT(force), NULL, "also if the model is quantised already"},
    {0, "no-measure", OPT_FLAG, AT(no_measure), NULL, "do not measure the speed of both models"},
    JSON_ROW(quantize_options, json),
    {0}};

static const option_group groups[] = {{"Quantizing", quantizing_rows, 0, NULL},
                                      MODEL_OPTIONS(quantize_options, setup.model),
                                      INPUT_OPTIONS(quantize_options, setup.inputs),
                                      SAVING_OPTIONS(quantize_options, saving),
                                      {0}};

/* ------------------------------------------------------------------ options */
static int choose(const char *option, const char *said, const char *const *words, int *chosen)
{
    for (int i = 0; said && words[i]; i++)
        if (strcmp(said, words[i]) == 0) {
            *chosen = i;
            return -1;
        }
    return said ? fail_usage("--%s does not take '%s'; see 'sonde quantize --help'", option, said)
                : -1;
}

/* Options that were not given have the value that they start with: NOT_GIVEN. */
static int check_numbers(const quantize_options *o)
{
    const bool percentile = o->percentile >= 0, block = o->block_size >= 0;
    if (percentile && !(o->percentile > 50 && o->percentile <= 100))
        return fail_usage("--percentile takes a number above 50 and at most 100, not %g",
                          o->percentile);
    if (percentile && !(o->method && strcmp(o->method, "percentile") == 0))
        return fail_usage("--percentile is for --method percentile");
    if (block &&
        (o->block_size < 16 || o->block_size > 1 << 20 || (o->block_size & (o->block_size - 1))))
        return fail_usage("--block-size takes a power of two from 16 to 1048576, not %lld",
                          (long long)o->block_size);
    if (block && !o->weights_only)
        return fail_usage("--block-size is for --weights-only");
    if (o->most == 0 || o->most > INT32_MAX)
        return fail_usage("--samples takes a number from 1 to %d, not %lld", INT32_MAX,
                          (long long)o->most);
    if (o->goal == 0)
        return fail_usage("--goal takes a number of dB above 0, not 0");
    return -1;
}

static int check_usage(const quantize_options *o, sonde_quantize_options *q)
{
    static const char *const methods[] = {"", "minmax", "percentile", "entropy", "mse", NULL};
    static const char *const types[] = {"u8", "s8", NULL}, *const bits[] = {"4", "8", NULL};
    int method = 0, activation = 0, eight = 0;
    if (o->setup.common.rest.n != 1)
        return fail_usage("quantize takes one MODEL; see 'sonde quantize --help'");
    if (!o->output)
        return fail_usage("-o FILE is missing: where should the quantised model go?");
    if (!ends_with(o->output, ".onnx"))
        return fail_usage("cannot save a model as '%s': the suffix must be .onnx", o->output);
    if (o->dynamic && o->weights_only)
        return fail_usage("--dynamic and --weights-only cannot be combined");
    if (o->per_channel && o->per_tensor)
        return fail_usage("--per-channel and --per-tensor cannot be combined");
    if (o->correct_bias && o->keep_bias)
        return fail_usage("--bias-correction and --no-bias-correction cannot be combined");
    if (!o->calibrate.n && !o->dynamic && !o->weights_only)
        return fail_usage("--calibrate DATA is missing: static quantisation needs samples; "
                          "--dynamic and --weights-only do not");
    if (o->goal > 0 && (o->dynamic || o->weights_only))
        return fail_usage("--goal is for static quantisation");
    int code = choose("method", o->method, methods, &method);
    if (code < 0)
        code = choose("activation-type", o->activation, types, &activation);
    if (code < 0)
        code = choose("weights-only", o->weights_only, bits, &eight);
    if (code >= 0)
        return code;
    code = check_numbers(o);
    if (code >= 0)
        return code;
    q->kind = o->dynamic        ? SONDE_QUANTIZE_DYNAMIC
              : o->weights_only ? SONDE_QUANTIZE_WEIGHTS
                                : SONDE_QUANTIZE_STATIC;
    q->method = (sonde_calibration)method;
    q->percentile = o->percentile > 0 ? o->percentile : 0;
    q->per_tensor = o->per_tensor;
    q->signed_activations = activation;
    q->bits = eight ? 8 : 4;
    q->block_size = o->block_size > 0 ? (int)o->block_size : 0;
    q->equalize = o->equalize;
    q->no_bias_correction = o->keep_bias;
    q->goal_db = o->goal > 0 ? o->goal : 0;
    q->force = o->force;
    q->only = o->only.items;
    q->only_count = o->only.n;
    q->except = o->except.items;
    q->except_count = o->except.n;
    return -1;
}

static int show_progress(void *user, const char *what, double done)
{
    progress(user, what, done);
    return interrupted();
}

/* ------------------------------------------------------------------ samples */
static int open_samples(const quantize_options *o, const loaded *l, sonde_samples **samples)
{
    sonde_samples_options options = SONDE_INIT(sonde_samples_options);
    sonde_image_options image = SONDE_INIT(sonde_image_options);
    const input_options *in = &o->setup.inputs;
    float numbers[6];
    sonde_error err;
    if (!o->calibrate.n)
        return EXIT_OK;
    int code = image_numbers(in, &image, numbers);
    if (code)
        return code;
    options.image = &image;
    if (in->image_layout)
        options.layout = strcmp(in->image_layout, "nhwc") == 0 ? 2 : 1;
    if (sonde_samples_create(l->model, samples, &err) ||
        sonde_samples_limit(*samples, o->most > 0 ? (size_t)o->most : 0, &err))
        return fail("%s", err.message);
    for (size_t i = 0; i < o->calibrate.n; i++)
        if (sonde_samples_add_path(*samples, o->calibrate.items[i], &options, &err))
            return fail("%s", err.message);
    const size_t over = sonde_samples_left_over(*samples);
    if (over)
        warn("the model takes a fixed batch, which the samples do not fill: the last %zu %s not "
             "used",
             over, over == 1 ? "row is" : "rows are");
    return EXIT_OK;
}

/* ------------------------------------------------------------------ speed */
static int measure(const quantize_options *o, const loaded *l, const sonde_samples *samples,
                   const sonde_quantized *made, sonde_quantized_speed *speed)
{
    sonde_value_set *set = NULL;
    feeds f = {.n = 0};
    sonde_error err;
    int code = EXIT_OK;
    if (samples) {
        if (sonde_samples_get(samples, 0, &set, &err))
            return fail("%s", err.message);
        f.n = sonde_value_set_count(set);
        f.names = need(calloc(f.n + 1, sizeof *f.names));
        f.values = need(calloc(f.n + 1, sizeof *f.values));
        for (size_t i = 0; i < f.n; i++) {
            f.names[i] = sonde_value_set_name(set, i);
            f.values[i] = sonde_value_retain(sonde_value_set_value(set, i));
        }
    } else {
        code = feeds_make_one(&f, l, &o->setup);
    }
    progress(&o->setup.common, "measuring", 0);
    sonde_status st = SONDE_OK;
    if (!code)
        st = sonde_quantized_measure(made, f.names, f.values, f.n, speed, &err);
    progress_end();
    if (st && !(st == SONDE_CANCELLED && interrupted()))
        code = fail("%s", err.message);
    feeds_free(&f);
    sonde_value_set_release(set);
    return code;
}

/* ------------------------------------------------------------------ all of it */
static int save_and_show(const quantize_options *o, const loaded *l, const sonde_samples *samples,
                         const sonde_quantized *made)
{
    sonde_quantized_speed speed = SONDE_INIT(sonde_quantized_speed);
    sonde_quantized_info info = SONDE_INIT(sonde_quantized_info);
    sonde_error err;
    const sonde_save_options save = save_options(&o->saving);
    if (sonde_quantized_save(made, o->output, &save, &err) ||
        sonde_quantized_info_get(made, &info, &err))
        return fail("%s", err.message);
    const bool wanted = !o->no_measure && !interrupted();
    int code = wanted ? measure(o, l, samples, made, &speed) : EXIT_OK;
    if (!code)
        code = quantize_show(o, made, &info, &speed, sonde_samples_skipped(samples));
    if (!code && info.goal_missed) {
        warn("the goal of %g dB was not met: the best model found has %.1f dB and was written",
             info.goal_db, info.sqnr_db);
        code = EXIT_MISMATCH;
    }
    if (!code && interrupted())
        code = fail("interrupted; '%s' was written before", o->output);
    return code;
}

static int say_failure(sonde_status st, const sonde_error *err)
{
    if (st == SONDE_CANCELLED && interrupted())
        return fail("interrupted; no file was written");
    return st == SONDE_INVALID_ARGUMENT ? fail_usage("%s", err->message) : fail("%s", err->message);
}

static int quantize(const quantize_options *o, sonde_quantize_options *q)
{
    loaded l = {.context = NULL};
    sonde_samples *samples = NULL;
    sonde_quantized *made = NULL;
    sonde_error err;
    int code = load(&l, &o->setup, o->setup.common.rest.items[0], LOAD_TO_KNOW_PORTS);
    if (!code && !l.session)
        code = EXIT_ERROR; /* load said why */
    if (!code)
        code = open_samples(o, &l, &samples);
    if (!code)
        code = interrupt_keep();
    q->progress = show_progress;
    q->progress_user = (void *)(uintptr_t)&o->setup.common;
    q->cancel = interrupt_token();
    if (!code) {
        const sonde_status st = sonde_quantize(l.model, samples, q, &made, &err);
        progress_end();
        code = st ? say_failure(st, &err) : save_and_show(o, &l, samples, made);
    }
    sonde_quantized_release(made);
    sonde_samples_release(samples);
    unload(&l);
    return code;
}

int cmd_quantize(int argc, char **argv)
{
    static const verb_options verb = {"quantize", details, groups, NULL};
    quantize_options o = {.setup = SETUP_DEFAULTS,
                          .most = NOT_GIVEN,
                          .block_size = NOT_GIVEN,
                          .percentile = NOT_GIVEN,
                          .goal = NOT_GIVEN};
    sonde_quantize_options q = SONDE_INIT(sonde_quantize_options);
    int code = options_parse(&verb, &o.setup.common, argc, argv);
    if (code < 0)
        code = check_usage(&o, &q);
    if (code < 0)
        code = quantize(&o, &q);
    options_free(&verb, &o.setup.common);
    return code;
}
