/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios as people write them: "sparse90+int8,batch=4". */
#include <stdio.h>
#include <stdlib.h>

#include "whatif/whatif.h"

enum { MAX_SCENARIOS = 64, MAX_BATCH = 65536, MAX_THREADS = 4096, WORD = 64 };

static const char known[] = "sparse90 (1 to 99), int8, int8-dynamic, int4, f32, bf16, f16, batch=N "
                            "and threads=N, joined by '+'";

static const struct {
    const char *word;
    sn_bits form;
} forms[] = {
    {"int8", SN_BITS_INT8}, {"int8-dynamic", SN_BITS_INT8_DYNAMIC}, {"int4", SN_BITS_INT4}};
enum { FORMS = sizeof forms / sizeof *forms };

static const sonde_precision precisions[] = {SONDE_PRECISION_F32, SONDE_PRECISION_BF16,
                                             SONDE_PRECISION_F16};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

/* The number behind `prefix`, from 1 to `most`; -1: the word does not begin so, 0: not such a
 * number. */
static int64_t number_behind(const char *word, const char *prefix, int64_t most)
{
    const size_t n = strlen(prefix);
    if (strncmp(word, prefix, n) != 0)
        return -1;
    int64_t v = 0;
    for (const char *c = word + n; *c; c++) {
        if (*c < '0' || *c > '9' || v > most)
            return 0;
        v = v * 10 + (*c - '0');
    }
    return v <= most ? v : 0;
}

static sonde_status fail_word(const char *word, const char *why, sonde_error *err)
{
    return sn_fail(err, SONDE_INVALID_ARGUMENT, "scenario '%.100s' %s; known are %s", word, why,
                   known);
}

static sonde_status add_part(sn_scenario *s, const char *word, sonde_error *err)
{
    static const char twice[] = "says the same thing twice";
    int64_t n;
    for (int i = 0; i < FORMS; i++)
        if (strcmp(word, forms[i].word) == 0) {
            if (s->form)
                return fail_word(word, twice, err);
            s->form = forms[i].form;
            return SONDE_OK;
        }
    for (int i = 0; i < PRECISIONS; i++)
        if (strcmp(word, sonde_precision_text(precisions[i])) == 0) {
            if (s->has_precision)
                return fail_word(word, twice, err);
            s->has_precision = true;
            s->precision = precisions[i];
            return SONDE_OK;
        }
    if ((n = number_behind(word, "sparse", 99)) >= 0) {
        if (!n)
            return fail_word(word, "needs a percentage from 1 to 99", err);
        if (s->sparsity)
            return fail_word(word, twice, err);
        s->sparsity = (int)n;
    } else if ((n = number_behind(word, "batch=", MAX_BATCH)) >= 0) {
        if (!n)
            return fail_word(word, "needs a number from 1 to 65536", err);
        if (s->batch)
            return fail_word(word, twice, err);
        s->batch = n;
    } else if ((n = number_behind(word, "threads=", MAX_THREADS)) >= 0) {
        if (!n)
            return fail_word(word, "needs a number from 1 to 4096", err);
        if (s->threads)
            return fail_word(word, twice, err);
        s->threads = (int)n;
    } else {
        return fail_word(word, "is unknown", err);
    }
    return SONDE_OK;
}

/* The parts in one order, whatever order they were written in. */
static const char *canonical(const sn_scenario *s, sn_arena *arena)
{
    char text[128] = "", part[32];
    for (int k = 0; k < 5; k++) {
        *part = 0;
        if (k == 0 && s->sparsity)
            snprintf(part, sizeof part, "+sparse%d", s->sparsity);
        for (int i = 0; k == 1 && i < FORMS; i++)
            if (forms[i].form == s->form)
                snprintf(part, sizeof part, "+%s", forms[i].word);
        if (k == 2 && s->has_precision)
            snprintf(part, sizeof part, "+%s", sonde_precision_text(s->precision));
        if (k == 3 && s->batch)
            snprintf(part, sizeof part, "+batch=%lld", (long long)s->batch);
        if (k == 4 && s->threads)
            snprintf(part, sizeof part, "+threads=%d", s->threads);
        strncat(text, part, sizeof text - strlen(text) - 1);
    }
    return sn_arena_strdup(arena, text + 1);
}

static sonde_status add(sn_scenarios *list, sn_scenario s, sn_arena *arena, sn_allocator *alloc,
                        sonde_error *err)
{
    s.name = canonical(&s, arena);
    if (!s.name)
        return sn_fail_memory(err, WORD);
    for (size_t i = 0; i < list->list.n; i++)
        if (strcmp(list->list.data[i].name, s.name) == 0)
            return SONDE_OK;
    if (list->list.n == MAX_SCENARIOS)
        return sn_fail(err, SONDE_LIMIT, "there are more than %d scenarios", MAX_SCENARIOS);
    return sn_vec_push(&list->list, alloc, s) ? SONDE_OK : sn_fail_memory(err, sizeof s);
}

static sonde_status add_defaults(sn_scenarios *list, int threads, sn_arena *arena,
                                 sn_allocator *alloc, sonde_error *err)
{
    static const sn_scenario usual[] = {
        {.sparsity = 90},
        {.sparsity = 80},
        {.sparsity = 70},
        {.form = SN_BITS_INT8},
        {.sparsity = 90, .form = SN_BITS_INT8},
        {.form = SN_BITS_INT8_DYNAMIC},
        {.form = SN_BITS_INT4},
        {.has_precision = true, .precision = SONDE_PRECISION_BF16},
        {.batch = 2},
        {.batch = 4},
        {.batch = 8},
        {.batch = 16},
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        SN_TRY(add(list, usual[i], arena, alloc, err));
    /* Every number up to 8, then doubled: beyond that, neighbours tell little. */
    for (int t = 1; t < threads; t = t < 8 ? t + 1 : t * 2)
        SN_TRY(add(list, (sn_scenario){.threads = t}, arena, alloc, err));
    return threads > 1 ? add(list, (sn_scenario){.threads = threads}, arena, alloc, err) : SONDE_OK;
}

sonde_status sn_scenarios_parse(sn_scenarios *list, const char *text, int threads, sn_arena *arena,
                                sn_allocator *alloc, sonde_error *err)
{
    if (!text)
        return add_defaults(list, threads, arena, alloc, err);
    sn_scenario s = {.sparsity = 0};
    for (const char *at = text;; at++) {
        char word[WORD];
        const size_t n = strcspn(at, "+,");
        size_t from = 0, to = n;
        while (from < n && at[from] == ' ')
            from++;
        while (to > from && at[to - 1] == ' ')
            to--;
        snprintf(word, sizeof word, "%.*s", (int)(to - from < WORD ? to - from : WORD - 1),
                 at + from);
        if (!*word)
            return sn_fail(err, SONDE_INVALID_ARGUMENT,
                           "the list of scenarios '%.100s' has an empty part; known are %s", text,
                           known);
        SN_TRY(add_part(&s, word, err));
        at += n;
        if (*at != '+') {
            SN_TRY(add(list, s, arena, alloc, err));
            s = (sn_scenario){.sparsity = 0};
        }
        if (!*at)
            return SONDE_OK;
    }
}

bool sn_scenario_is_mixable(const sn_scenario *s)
{
    return !s->batch && !s->threads && (s->sparsity || s->form || s->has_precision);
}
