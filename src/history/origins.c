/* SPDX-License-Identifier: Apache-2.0 */
/* Which one is it? A series that was joined has entries of several models, hosts, machines or
 * options. Each is called by that in which they differ, and by nothing else: what all share stands
 * in the title. */
#include "base/map.h"
#include "history/trends.h"

enum { WORDS_BYTES = 120 }; /* of what options say */

typedef struct differences {
    bool names, forms, hosts, machines; /* machines: processor, instructions or cores */
    bool cpus, cpu_levels, cores;
    sn_history_keys options;
} differences;

/* Models of one name may have several forms; *found: there is such a name. False: no memory. */
static bool find_forms(const sn_series *s, sn_allocator *alloc, bool *found)
{
    sn_map by_name;
    bool fine = true;
    *found = false;
    sn_map_init(&by_name, alloc);
    for (sn_trend_origin *o = s->origins; o && fine && !*found; o = o->next) {
        const sn_trend_origin *first = sn_map_get(&by_name, o->model);
        if (first)
            *found = strcmp(first->form, o->form) != 0;
        else
            fine = sn_map_put(&by_name, o->model, o, NULL);
    }
    sn_map_free(&by_name);
    return fine;
}

static bool find_differences(const sn_series *s, sn_arena *arena, differences *d)
{
    const sn_trend_origin *a = s->origins;
    for (const sn_trend_origin *b = a->next; b; b = b->next) {
        d->names |= strcmp(a->model, b->model) != 0;
        d->hosts |= strcmp(a->host, b->host) != 0;
        d->cpus |= strcmp(a->cpu, b->cpu) != 0;
        d->cpu_levels |= strcmp(a->cpu_level, b->cpu_level) != 0;
        d->cores |= a->cores != b->cores;
        if (strcmp(a->options, b->options) != 0 &&
            !sn_history_options_keys(a->options, b->options, arena, &d->options))
            return false;
    }
    d->machines = d->cpus || d->cpu_levels || d->cores;
    return find_forms(s, arena->alloc, &d->forms);
}

/* `text` with a word behind it; NULL after NULL, and without memory. */
static const char *with_word(const char *text, const char *head, const char *word, sn_arena *arena)
{
    enum { MOST = 120 }; /* bytes of one word */
    if (!text || !*word)
        return text;
    return sn_arena_printf(arena, "%s%s%s%.*s", text, *text ? ", " : "", head, MOST, word);
}

static const char *name_of(const sn_trend_origin *o, const differences *d, sn_arena *arena)
{
    const char *text = "";
    char part[WORDS_BYTES];
    if (d->names)
        text = with_word(text, "", o->model, arena);
    if (d->forms) {
        snprintf(part, sizeof part, "%.8s", o->form);
        text = with_word(text, "form ", part, arena);
    }
    if (d->hosts)
        text = with_word(text, "", o->host, arena);
    if (d->cpus)
        text = with_word(text, "", o->cpu, arena);
    if (d->cpu_levels)
        text = with_word(text, "", o->cpu_level, arena);
    if (d->cores && o->cores) {
        snprintf(part, sizeof part, "%d core%s", o->cores, o->cores == 1 ? "" : "s");
        text = with_word(text, "", part, arena);
    }
    if (d->options.n) {
        if (!sn_history_options_words(o->options, &d->options, arena->alloc, part, sizeof part))
            return NULL;
        text = with_word(text, "", part, arena);
    }
    return text && !*text ? "not known" : text;
}

static const char *across_of(const differences *d, sn_arena *arena)
{
    const char *text = d->names || d->forms ? "model" : "";
    if (d->machines || d->hosts)
        text = with_word(text, "", d->machines ? "machine" : "host", arena);
    if (d->options.n)
        text = with_word(text, "", "options", arena);
    return text;
}

sonde_status sn_trend_origins_name(sn_series *s, sn_arena *arena, sonde_error *err)
{
    differences d = {0};
    bool fine = find_differences(s, arena, &d);
    s->across = fine ? across_of(&d, arena) : NULL;
    fine = s->across != NULL;
    for (sn_trend_origin *o = s->origins; o && fine; o = o->next) {
        o->which = *s->across ? name_of(o, &d, arena) : "";
        fine = o->which != NULL;
    }
    sn_vec_free(&d.options, arena->alloc);
    return fine ? SONDE_OK : sn_fail_memory(err, 0);
}
