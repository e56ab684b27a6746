/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Image classification in one file, with nothing but the public headers:
 *
 *     classify MODEL IMAGE [LABELS]
 *
 * MODEL is an ONNX file or zoo:NAME, a built-in model whose random weights give random answers.
 * IMAGE is a .jpg, .png or .ppm file; "-" makes one up. LABELS has one class name a line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sonde/experimental/compare.h"
#include "sonde/experimental/tensor_file.h"
#include "sonde/sonde.h"

enum { TOP = 5 };

typedef struct guess {
    long class_index;
    double probability;
} guess;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* A picture for those who have none at hand: two colour gradients. */
static int make_image(const char *path)
{
    enum { SIZE = 256 };
    FILE *f = fopen(path, "wb");
    if (!f)
        return 1;
    fprintf(f, "P6\n%d %d\n255\n", SIZE, SIZE);
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            const unsigned char pixel[3] = {(unsigned char)x, (unsigned char)y,
                                            (unsigned char)(255 - x)};
            fwrite(pixel, 1, 3, f);
        }
    return fclose(f);
}

/* The image as the session's first input wants it: size and layout from its shape. */
static sonde_status load_image(const sonde_session *session, const char *path, sonde_value **value,
                               sonde_error *err)
{
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    sonde_status status = sonde_session_input_info(session, 0, &info, err);
    if (status != SONDE_OK)
        return status;
    sonde_image_options image = SONDE_INIT(sonde_image_options);
    if (info.rank == 4) {
        image.nhwc = info.dims[3] == 3;
        const int64_t height = info.dims[image.nhwc ? 1 : 2], width = info.dims[image.nhwc ? 2 : 3];
        image.height = height > 0 && height < 10000 ? (int)height : 224;
        image.width = width > 0 && width < 10000 ? (int)width : 224;
    }
    if (strcmp(path, "-") != 0)
        return sonde_image_load(NULL, path, &image, value, err);
    const char *made = "classify-example.ppm";
    if (make_image(made) != 0)
        fprintf(stderr, "classify: cannot write %s\n", made);
    status = sonde_image_load(NULL, made, &image, value, err);
    remove(made);
    return status;
}

static int by_probability(const void *a, const void *b)
{
    const guess *x = a, *y = b;
    return x->probability < y->probability ? 1 : x->probability > y->probability ? -1 : 0;
}

/* Scores to probabilities (softmax), best first. Returns how many classes there are. */
static size_t rank_classes(const sonde_value *scores, guess **guesses)
{
    const size_t n = (size_t)sonde_tensor_count(scores);
    double *x = malloc(n * sizeof *x + 1), sum = 0, max = -INFINITY;
    guess *g = malloc(n * sizeof *g + 1);
    *guesses = g;
    if (!x || !g || sonde_tensor_read(scores, 0, n, x) != n) {
        free(x);
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++)
        sum += x[i] = exp(x[i] - max);
    for (size_t i = 0; i < n; i++)
        g[i] = (guess){.class_index = (long)i, .probability = x[i] / sum};
    free(x);
    qsort(g, n, sizeof *g, by_probability);
    return n;
}

/* Line `index` of a file, without its end; "" when there is none. */
static const char *label(const char *path, long index, char *line, int cap)
{
    FILE *f = path ? fopen(path, "r") : NULL;
    line[0] = 0;
    if (!f)
        return line;
    for (long i = 0; i <= index; i++)
        if (!fgets(line, cap, f)) {
            line[0] = 0;
            break;
        }
    fclose(f);
    line[strcspn(line, "\r\n")] = 0;
    return line;
}

static void print_guesses(const sonde_value *scores, const char *labels)
{
    guess *guesses = NULL;
    const size_t n = rank_classes(scores, &guesses);
    for (size_t i = 0; i < n && i < TOP; i++) {
        char line[256];
        printf("%6.2f %%  class %-4ld %s\n", guesses[i].probability * 100, guesses[i].class_index,
               label(labels, guesses[i].class_index, line, sizeof line));
    }
    free(guesses);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: classify MODEL IMAGE [LABELS]\n");
        return 2;
    }
    sonde_model *model = NULL;
    sonde_session *session = NULL;
    sonde_value *image = NULL, *scores = NULL;
    sonde_error err;

    const double start = now_ms();
    sonde_status status = sonde_model_load(NULL, argv[1], NULL, &model, &err);
    if (status == SONDE_OK)
        status = sonde_session_create(model, NULL, &session, &err);
    const double loaded = now_ms();
    if (status == SONDE_OK)
        status = load_image(session, argv[2], &image, &err);

    /* The first run also plans memory for these shapes; the second shows what every further one
     * costs. */
    double first = 0, second = 0;
    for (int run = 0; run < 2 && status == SONDE_OK; run++) {
        sonde_value_release(scores);
        scores = NULL;
        const double begin = now_ms();
        const char *input = sonde_session_input_name(session, 0);
        const char *output = sonde_session_output_name(session, 0);
        status = sonde_session_run(session, NULL, &input, &image, 1, &output, &scores, 1, &err);
        *(run ? &second : &first) = now_ms() - begin;
    }

    if (status == SONDE_OK) {
        print_guesses(scores, argc > 3 ? argv[3] : NULL);
        printf("\nload %.1f ms, first run %.1f ms, next run %.1f ms\n", loaded - start, first,
               second);
    } else {
        fprintf(stderr, "classify: %s\n", err.message);
    }
    sonde_value_release(scores);
    sonde_value_release(image);
    sonde_session_release(session);
    sonde_model_release(model);
    return status == SONDE_OK ? 0 : 1;
}
