/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a joined profile. What the workers do not say alike is not known of all of them, and
 * peaks hold only where all ran on one kind of machine with one number of threads. */
#include "profile/join_facts.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "profile/chrome_keys.h"

static const sn_profile *part(const sn_profile *to, size_t i)
{
    return to->workers.data[i].part;
}

/* The text at this place of every part, or `other` where two differ. */
static const char *same_text(const sn_profile *to, size_t at, const char *other)
{
    const char *first = NULL;
    for (size_t i = 0; i < to->workers.n; i++) {
        const char *text;
        memcpy(&text, (const char *)part(to, i) + at, sizeof text);
        if (first && strcmp(first, text) != 0)
            return other;
        first = first ? first : text;
    }
    return first;
}

/* The same of a number, 0 where two differ. */
static int same_int(const sn_profile *to, size_t at)
{
    int first = 0;
    for (size_t i = 0; i < to->workers.n; i++) {
        int v;
        memcpy(&v, (const char *)part(to, i) + at, sizeof v);
        if (i && v != first)
            return 0;
        first = v;
    }
    return first;
}

/* "resnet, bert"; many end in "…". */
static const char *name_models(sn_profile *to)
{
    enum { MOST = 4 };
    const char *names[MOST + 1], *all = "";
    size_t n = 0;
    for (size_t i = 0; i < to->workers.n && n <= MOST && all; i++) {
        const char *name = part(to, i)->model_name;
        size_t k = 0;
        while (k < n && strcmp(names[k], name) != 0)
            k++;
        if (k < n || !*name)
            continue;
        const char *next = n == MOST ? "…" : name;
        all = n ? sn_arena_printf(&to->arena, "%s, %s", all, next) : next;
        names[n++] = name;
    }
    return all;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
    return a + b < SN_PROF_MAX_COUNT ? a + b : SN_PROF_MAX_COUNT;
}

static void add_sums(sn_profile *to)
{
    to->usage.known = true;
    for (size_t i = 0; i < to->workers.n; i++) {
        const sn_profile *p = part(to, i);
        to->dropped = sum_of(to->dropped, p->dropped);
        to->usage.known &= p->usage.known;
#define X(name) to->memory.name = sum_of(to->memory.name, p->memory.name);
        SN_CHROME_MEMORY(X)
#undef X
#define X(name) to->usage.name = sum_of(to->usage.name, p->usage.name);
        SN_CHROME_USAGE(X)
#undef X
    }
    if (!to->usage.known)
        to->usage = (sn_prof_usage){.known = false};
}

static void take_peaks(sn_profile *to)
{
    if (!*to->cpu_model || !to->threads || strcmp(to->cpu_model, "several") == 0)
        return;
    for (size_t i = 0; i < to->workers.n; i++) {
        const sn_profile *p = part(to, i);
        for (int a = 0; a < SN_ARITH_COUNT; a++)
            to->peak_gops[a] = fmax(to->peak_gops[a], p->peak_gops[a]);
        to->peak_gbps = fmax(to->peak_gbps, p->peak_gbps);
        for (int k = 0; k < 2; k++)
            if (p->caches[k].gbps > 0)
                to->caches[k] = p->caches[k];
    }
}

/* NaN where no worker knows it. */
static double mean_record_ns(const sn_profile *to)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < to->workers.n; i++)
        if (!isnan(part(to, i)->record_ns)) {
            sum += part(to, i)->record_ns;
            n++;
        }
    return n > 0 ? sum / n : NAN;
}

/* Labels that every part has with the same value. */
static sonde_status common_labels(sn_profile *to, sonde_error *err)
{
    const sn_labels *first = &part(to, 0)->labels;
    for (size_t k = 0; k < first->list.n; k++) {
        const sn_label *l = &first->list.data[k];
        bool common = true;
        for (size_t i = 1; i < to->workers.n; i++)
            common &= strcmp(sn_labels_get(&part(to, i)->labels, l->key), l->value) == 0;
        if (common)
            SN_TRY(sn_labels_put(&to->labels, l->key, l->value, err));
    }
    return SONDE_OK;
}

static sonde_status note_parts(sn_profile *to, sonde_error *err)
{
    size_t noted = 0, first = 0;
    for (size_t i = to->workers.n; i-- > 0;)
        if (*part(to, i)->note) {
            noted++;
            first = i;
        }
    if (!noted)
        return SONDE_OK;
    to->note =
        sn_arena_printf(&to->arena, "%zu of %zu joined profiles are incomplete; the first: %s",
                        noted, to->workers.n, part(to, first)->note);
    return to->note ? SONDE_OK : sn_fail_memory(err, 1);
}

sonde_status sn_prof_join_facts(sn_profile *to, sonde_error *err)
{
    to->model_name = name_models(to);
    if (!to->model_name)
        return sn_fail_memory(err, 1);
    to->version = same_text(to, offsetof(sn_profile, version), "several");
    to->cpu_model = same_text(to, offsetof(sn_profile, cpu_model), "several");
    to->cpu_level = same_text(to, offsetof(sn_profile, cpu_level), "several");
    to->precision = same_text(to, offsetof(sn_profile, precision), "mixed");
    to->counters_note = same_text(to, offsetof(sn_profile, counters_note), "");
    to->cores = same_int(to, offsetof(sn_profile, cores));
    to->threads = same_int(to, offsetof(sn_profile, threads));
    to->level = same_int(to, offsetof(sn_profile, level));
    to->record_ns = mean_record_ns(to);
    for (size_t i = 0; i < to->workers.n; i++) /* a category that one shows is shown */
        to->categories |= part(to, i)->categories ? part(to, i)->categories : SN_CATS_ALL;
    to->categories = to->categories == SN_CATS_ALL ? 0 : to->categories;
    add_sums(to);
    take_peaks(to);
    SN_TRY(common_labels(to, err));
    return note_parts(to, err);
}
