/* SPDX-License-Identifier: Apache-2.0 */
/* What was found, as a list that grows; and the findings that a profile has by itself. */
#include <stdlib.h>

#include "doctor.h"
#include "sonde/experimental/findings.h"

void found_with(findings *f, sonde_severity severity, const char *topic, char *said, char *evidence,
                char *remedy)
{
    f->items = grow(f->items, f->n, sizeof *f->items);
    f->items[f->n++] = (sonde_finding){severity, text_of("%s", topic), said, evidence, remedy};
}

void found(findings *f, sonde_severity severity, const char *topic, char *said, char *evidence,
           const char *remedy)
{
    found_with(f, severity, topic, said, evidence, text_of("%s", remedy));
}

void findings_free(findings *f)
{
    for (size_t i = 0; i < f->n; i++) {
        const sonde_finding *x = &f->items[i];
        const char *const texts[] = {x->topic, x->finding, x->evidence, x->remedy};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            free((void *)(uintptr_t)texts[k]);
    }
    free(f->items);
    *f = (findings){.n = 0};
}

void found_all(findings *f, sonde_findings *said)
{
    sonde_finding x;
    for (size_t i = 0; sonde_findings_get(said, i, &x, NULL) == SONDE_OK; i++)
        found(f, x.severity, x.topic, text_of("%s", x.finding), text_of("%s", x.evidence),
              x.remedy);
    sonde_findings_release(said);
}

int look_at_profile(findings *f, const sonde_profile *profile)
{
    sonde_findings *all = NULL;
    sonde_error err;
    if (sonde_profile_findings(profile, &all, &err))
        return fail("%s", err.message);
    found_all(f, all);
    return EXIT_OK;
}

void few_add(few *w, const char *name, double share)
{
    if (w->n < 4)
        text_add(&w->t, "%s%s %.1f %%", w->n ? ", " : "", *name ? name : "(unnamed)", share * 100);
    else if (w->n == 4)
        text_add(&w->t, " and more");
    w->n++;
}
