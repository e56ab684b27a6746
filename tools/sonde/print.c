/* SPDX-License-Identifier: Apache-2.0 */
/* Values for people: type, range, the first elements, the best classes; and latency figures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sonde/experimental/compare.h"
#include "sonde/experimental/file.h"
#include "tool.h"

enum { FIRST = 6, BATCH = 1024 };

char *value_type_text(const sonde_value *v)
{
    text t = {.n = 0};
    switch (sonde_value_kind(v)) {
    case SONDE_KIND_TENSOR:
        text_add(&t, "%s[", sonde_dtype_text(sonde_tensor_dtype(v)));
        for (size_t i = 0; i < sonde_tensor_rank(v); i++)
            text_add(&t, "%s%lld", i ? ", " : "", (long long)sonde_tensor_dims(v)[i]);
        text_add(&t, "]");
        break;
    case SONDE_KIND_SEQUENCE:
        text_add(&t, "sequence of %zu", sonde_value_count(v));
        break;
    case SONDE_KIND_OPTIONAL:
        text_add(&t, "optional of %zu", sonde_value_count(v));
        break;
    case SONDE_KIND_MAP:
        text_add(&t, "map");
        break;
    default:
        text_add(&t, "nothing");
    }
    return t.data;
}

bool summarize(const sonde_value *v, summary *s)
{
    double chunk[BATCH], sum = 0;
    uint64_t counted = 0;
    *s = (summary){.min = INFINITY, .max = -INFINITY};
    int64_t at = 0;
    for (size_t n; (n = sonde_tensor_read(v, at, BATCH, chunk)) > 0; at += (int64_t)n)
        for (size_t i = 0; i < n; i++) {
            if (isnan(chunk[i])) {
                s->nans++;
                continue;
            }
            s->min = chunk[i] < s->min ? chunk[i] : s->min;
            s->max = chunk[i] > s->max ? chunk[i] : s->max;
            sum += chunk[i];
            counted++;
        }
    s->mean = counted ? sum / (double)counted : 0;
    return counted > 0;
}

/* ------------------------------------------------------------------ elements */
static void print_string(const sonde_string *s)
{
    putchar('"');
    for (size_t i = 0, n; i < s->size; i += n) {
        const unsigned char c = (unsigned char)s->data[i];
        char piece[5] = ""; /* a character */
        memcpy(piece, s->data + i, s->size - i < 4 ? s->size - i : 4);
        n = shown_bytes(piece);
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (n)
            printf("%.*s", (int)n, piece);
        else
            printf("\\x%02x", c);
        n = n ? n : 1;
    }
    putchar('"');
}

static bool is_whole(sonde_dtype t)
{
    return t == SONDE_DTYPE_I64 || t == SONDE_DTYPE_U64 || t == SONDE_DTYPE_I32 ||
           t == SONDE_DTYPE_U32;
}

static void print_elements(const sonde_value *v, int64_t limit)
{
    const int64_t n = sonde_tensor_count(v), shown = limit < n ? limit : n;
    const sonde_dtype dtype = sonde_tensor_dtype(v);
    for (int64_t i = 0; i < shown; i++) {
        double x = 0;
        if (i)
            printf(", ");
        if (dtype == SONDE_DTYPE_STRING)
            print_string(&((const sonde_string *)sonde_tensor_data(v))[i]);
        else if (sonde_tensor_read(v, i, 1, &x))
            printf(is_whole(dtype) ? "%.0f" : "%.5g", x);
    }
    printf("%s\n", shown < n ? ", ..." : "");
}

/* ------------------------------------------------------------------ best classes */
typedef struct score {
    int64_t index;
    double value;
} score;

static int by_value(const void *a, const void *b)
{
    const score *x = a, *y = b;
    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Scores that are no probabilities yet go through a softmax. */
static void to_probabilities(score *s, int64_t n)
{
    double sum = 0, max = -INFINITY;
    bool probabilities = true;
    for (int64_t i = 0; i < n; i++) {
        sum += s[i].value;
        max = s[i].value > max ? s[i].value : max;
        probabilities &= s[i].value >= 0;
    }
    if (probabilities && fabs(sum - 1) < 1e-3)
        return;
    sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += s[i].value = exp(s[i].value - max);
    for (int64_t i = 0; i < n; i++)
        s[i].value /= sum;
}

int labels_open(value_options *o, int64_t max_memory)
{
    enum { MOST = 64 << 20 }; /* bytes; the largest sets of classes have a few */
    if (!o->labels)
        return -1;
    sonde_value *file = NULL;
    sonde_error err;
    sonde_context *context = reading_context(max_memory);
    if (!context)
        return EXIT_ERROR;
    const sonde_status st = sonde_file_read(context, o->labels, MOST, &file, &err);
    sonde_context_release(context); /* the file keeps it */
    if (st)
        return fail("cannot read the labels: %s", err.message);
    const size_t n = sonde_tensor_bytes(file);
    char *data = o->lines_text = need(malloc(n + 1));
    memcpy(data, sonde_tensor_data(file), n);
    data[n] = 0;
    sonde_value_release(file);
    for (char *line = data; line && *line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end++ = 0;
        line[strcspn(line, "\r")] = 0;
        list_add(&o->lines, line);
        line = end;
    }
    return -1;
}

void labels_close(value_options *o)
{
    list_free(&o->lines);
    free(o->lines_text);
    o->lines_text = NULL;
}

/* False: the output has no scores of classes. */
static bool print_top(const sonde_value *v, const value_options *o)
{
    int64_t rows = 0, classes = 0;
    const sonde_classes form = sonde_value_classes(v, &rows, &classes);
    if (form == SONDE_CLASSES_NONE)
        return false;
    score *s = need(malloc((size_t)classes * sizeof *s));
    for (int64_t r = 0; r < rows; r++) {
        if (form == SONDE_CLASSES_POSITIONS)
            printf("  position %lld\n", (long long)(r % sonde_tensor_dims(v)[1]));
        for (int64_t i = 0; i < classes; i++) {
            s[i] = (score){.index = i};
            if (!sonde_tensor_read(v, r * classes + i, 1, &s[i].value))
                s[i].value = 0;
        }
        to_probabilities(s, classes);
        qsort(s, (size_t)classes, sizeof *s, by_value);
        for (int64_t i = 0; i < o->top && i < classes; i++) {
            const bool named = (size_t)s[i].index < o->lines.n;
            char *label = printable(named ? o->lines.items[s[i].index] : "");
            printf("  %3lld. %6.2f %%  class %lld%s%s\n", (long long)i + 1, s[i].value * 100,
                   (long long)s[i].index, named ? "  " : "", label);
            free(label);
        }
        if (r + 1 < rows)
            printf("\n");
    }
    free(s);
    return true;
}

void print_value(const char *name, const sonde_value *v, const value_options *o)
{
    char *type = value_type_text(v), *shown = printable(name);
    printf("%s: %s\n", shown, type);
    free(shown);
    free(type);
    if (sonde_value_kind(v) != SONDE_KIND_TENSOR) {
        for (size_t i = 0; i < sonde_value_count(v); i++) {
            sonde_value *item = NULL;
            if (sonde_value_item(v, i, &item, NULL))
                continue;
            char *item_name = text_of("%s[%zu]", name, i);
            print_value(item_name, item, o);
            free(item_name);
            sonde_value_release(item);
        }
        return;
    }
    if (o->top && print_top(v, o))
        return;
    if (o->top)
        printf("  no scores of classes: --top needs [N, classes], where other axes may be 1\n");
    summary s;
    if (summarize(v, &s) && sonde_tensor_count(v) > 1) {
        printf("  min %.5g  max %.5g  mean %.5g", s.min, s.max, s.mean);
        if (s.nans)
            printf("  NaN %s", grouped(s.nans));
        printf("\n");
    }
    if (sonde_tensor_count(v) > 0) {
        printf("  ");
        print_elements(v, o->print ? INT64_MAX : FIRST);
    }
}

/* ------------------------------------------------------------------ latency */
shown_unit unit_of_ms(double ms)
{
    if (!(ms > 0) || (ms >= 0.9999995 && ms < 1e4))
        return (shown_unit){1, "ms", 3};
    if (ms >= 1e4)
        return (shown_unit){1e3, "s", 3};
    return ms < 0.000999995 ? (shown_unit){1e-6, "ns", 1}
                            : (shown_unit){1e-3, "\xC2\xB5s", 2}; /* µs */
}

const char *time_text(double ms)
{
    static char buffers[8][40];
    static unsigned turn;
    char *out = buffers[turn++ % 8];
    const shown_unit u = unit_of_ms(ms);
    snprintf(out, sizeof buffers[0], "%.*f %s", u.decimals, ms / u.divisor, u.name);
    return out;
}
