/* SPDX-License-Identifier: Apache-2.0 */
/* Tuned sessions through the public API: they compute what others compute, in whichever way the
 * file says, and measure a shape once. */
#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "base/cache.h"
#include "sonde/experimental/zoo.h"
#include "sonde/sonde.h"

#include "temp_folder.h"
#include "test.h"

enum { MAX_OUT = 4096, MAX_FILE = 1 << 16, LOG_INFO = 3 };

typedef struct outcome {
    float out[MAX_OUT];
    size_t n;
    unsigned tuned, steps; /* as the log says */
} outcome;

static void read_log(void *user, int level, const char *line)
{
    outcome *o = user;
    if (level == LOG_INFO)
        CHECK(sscanf(line, "tuned: %u of %u", &o->tuned, &o->steps) == 2);
}

static sonde_precision precision; /* of sessions */

static void run(const char *model, const char *tune, int threads, outcome *o)
{
    sonde_error err;
    sonde_context *c = NULL;
    sonde_model *m = NULL;
    sonde_session *s = NULL;
    sonde_value *x = NULL, *y = NULL;
    memset(o, 0, sizeof *o);
    sonde_context_options co = SONDE_INIT(sonde_context_options);
    co.threads = threads;
    co.log = read_log;
    co.log_user = o;
    co.log_level = LOG_INFO;
    sonde_session_options so = SONDE_INIT(sonde_session_options);
    so.tune = tune;
    so.precision = precision;
    sonde_type_info info = SONDE_INIT(sonde_type_info);
    CHECK_OK(sonde_context_create(&co, &c, &err));
    CHECK_OK(sonde_zoo_build(c, model, 1, &m, &err));
    CHECK_OK(sonde_session_create(m, &so, &s, &err));
    CHECK_OK(sonde_session_input_info(s, 0, &info, &err));
    int64_t dims[8] = {0}, count = 1;
    for (int i = 0; i < info.rank; i++) {
        dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
        count *= dims[i];
    }
    CHECK_OK(sonde_tensor_create(c, SONDE_DTYPE_F32, dims, (size_t)info.rank, NULL,
                                 (size_t)count * 4, &x, &err));
    for (int64_t i = 0; i < count; i++)
        ((float *)sonde_tensor_data(x))[i] = (float)(i % 7) / 7;
    CHECK_OK(sonde_session_run(s, NULL, NULL, &x, 1, NULL, &y, 1, &err));
    o->n = sonde_tensor_bytes(y) / sizeof(float);
    CHECK(o->n > 0 && o->n <= MAX_OUT);
    memcpy(o->out, sonde_tensor_data(y), o->n * sizeof(float));
    sonde_value_release(x);
    sonde_value_release(y);
    sonde_session_release(s);
    sonde_model_release(m);
    sonde_context_release(c);
}

static void check_same(const outcome *a, const outcome *b)
{
    double most = 1, worst = 0;
    CHECK_EQ(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        most = fmax(most, fabs((double)a->out[i]));
        worst = fmax(worst, fabs((double)a->out[i] - (double)b->out[i]));
    }
    CHECK_MSG(worst <= 1e-4 * most, "they differ by %g", worst);
}

/* The file in the folder without the checksum at its end; "" when there is none. Returns its size.
 */
static size_t read_choices(const char *dir, char *path, size_t bytes, char *text)
{
    DIR *d = opendir(dir);
    *path = 0;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (e->d_name[0] != '.')
            snprintf(path, bytes, "%s/%s", dir, e->d_name);
    if (d)
        closedir(d);
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text, 1, MAX_FILE - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    char *last = strstr(text, "\nchecksum ");
    if (last)
        last[1] = 0;
    return strlen(text);
}

/* With the checksum that belongs to it. */
static void write_summed(const char *dir, const char *path, const char *text)
{
    sonde_error err;
    sn_cache c;
    sn_allocator alloc;
    sn_allocator_init_system(&alloc);
    CHECK_OK(sn_cache_open(&c, dir, false, &err));
    CHECK_OK(sn_cache_write_text(&c, strrchr(path, '/') + 1, text, strlen(text), &alloc, &err));
    sn_cache_close(&c);
}

static void write_choices(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

/* Every line chooses `variant`; returns how many lines there are. */
static int choose_everywhere(char *text, unsigned variant)
{
    static char out[MAX_FILE];
    size_t at = 0;
    int lines = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const int n = (int)strcspn(line, "\n"), key = (int)strcspn(line, "\t");
        const char *slash = memchr(line + key, '/', (size_t)(key < n ? n - key : 0));
        lines += slash != NULL;
        at += slash ? (size_t)snprintf(out + at, sizeof out - at, "%.*s\t%u%.*s\n", key, line,
                                       variant, n - (int)(slash - line), slash)
                    : (size_t)snprintf(out + at, sizeof out - at, "%.*s\n", n, line);
    }
    out[at] = 0;
    strcpy(text, out);
    return lines;
}

static char text[MAX_FILE], again[MAX_FILE];
static outcome plain, tuned;

TEST(a_shape_is_measured_once_and_the_choice_remembered)
{
    char dir[TEMP_PATH], path[400];
    temp_make(dir);
    run("tiny_cnn", NULL, 1, &plain);
    CHECK_EQ(plain.steps, 0);
    run("tiny_cnn", dir, 1, &tuned);
    CHECK(tuned.steps > 0);
    check_same(&plain, &tuned);
    const size_t n = read_choices(dir, path, sizeof path, text);
    CHECK(n > 0);
    /* What the file says is done, and a file that knows everything stays as it is. */
    const int lines = choose_everywhere(text, 21);
    CHECK(lines > 1);
    write_summed(dir, path, text);
    run("tiny_cnn", dir, 1, &tuned);
    CHECK((int)tuned.tuned >= lines);
    check_same(&plain, &tuned);
    (void)read_choices(dir, path, sizeof path, again);
    CHECK_STR(again, text);
    /* Another number of threads has choices of its own. */
    run("tiny_cnn", dir, 2, &tuned);
    check_same(&plain, &tuned);
    CHECK(read_choices(dir, path, sizeof path, again) > strlen(text));
    CHECK(temp_remove(dir));
}

/* Lines of the file that speak of weights of this type. */
static int lines_of(const char *choices, const char *type)
{
    char end[16];
    int n = 0;
    snprintf(end, sizeof end, " %s\t", type);
    for (const char *at = choices; (at = strstr(at, end)) != NULL; at++)
        n++;
    return n;
}

TEST(choices_for_weights_of_one_type_are_not_taken_for_another)
{
    static const sonde_precision kinds[] = {SONDE_PRECISION_F16, SONDE_PRECISION_BF16};
    char dir[TEMP_PATH], path[400];
    temp_make(dir);
    run("tiny_cnn", dir, 1, &plain);
    size_t n = read_choices(dir, path, sizeof path, text);
    CHECK_EQ(lines_of(text, "f16") + lines_of(text, "bf16"), 0);
    for (size_t i = 0; i < 2; i++) {
        precision = kinds[i];
        run("tiny_cnn", dir, 1, &tuned);
        const size_t more = read_choices(dir, path, sizeof path, text);
        CHECK(more > n && lines_of(text, sonde_precision_text(kinds[i])) > 1);
        n = more;
        run("tiny_cnn", dir, 1, &tuned); /* again: everything is known */
        CHECK_EQ(read_choices(dir, path, sizeof path, again), n);
    }
    precision = SONDE_PRECISION_FILE;
    CHECK(temp_remove(dir));
}

TEST(every_variant_gives_the_same_numbers)
{
    static const char *const models[] = {"tiny_cnn", "tiny_mlp"};
    for (size_t i = 0; i < 2; i++) {
        char dir[TEMP_PATH], path[400];
        temp_make(dir);
        run(models[i], NULL, 2, &plain);
        run(models[i], dir, 2, &tuned);
        (void)read_choices(dir, path, sizeof path, text);
        for (unsigned v = 0; v < 60 && !test_errors; v++) {
            CHECK(choose_everywhere(text, v) > 0);
            write_summed(dir, path, text);
            run(models[i], dir, 2, &tuned);
            CHECK((tuned.tuned > 0) == (v > 0));
            check_same(&plain, &tuned);
        }
        CHECK(temp_remove(dir));
    }
}

TEST(broken_files_are_replaced)
{
    char dir[TEMP_PATH], path[400];
    temp_make(dir);
    run("tiny_cnn", NULL, 1, &plain);
    run("tiny_cnn", dir, 1, &tuned);
    const size_t n = read_choices(dir, path, sizeof path, text);
    const int lines = choose_everywhere(text, 0);
    const size_t sizes[] = {0, 1, n / 2, n - 1};
    for (size_t i = 0; i < 4; i++) {
        write_choices(path, text, sizes[i]);
        run("tiny_cnn", dir, 1, &tuned);
        check_same(&plain, &tuned);
        (void)read_choices(dir, path, sizeof path, again);
        CHECK_EQ(choose_everywhere(again, 0), lines);
    }
    text[0] ^= 1; /* of another machine, or another program */
    (void)choose_everywhere(text, 21);
    write_choices(path, text, strlen(text));
    run("tiny_cnn", dir, 1, &tuned);
    check_same(&plain, &tuned);
    (void)read_choices(dir, path, sizeof path, again);
    CHECK(again[0] == 's');
    run("tiny_cnn", "/proc/no/such/folder", 1, &tuned);
    check_same(&plain, &tuned);
    CHECK(temp_remove(dir));
}

TEST_MAIN()
