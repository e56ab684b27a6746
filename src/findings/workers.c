/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of a joined profile: one that is slower than those that run the same. */
#include "findings/check.h"
#include "profile/fleet.h"

static void say_straggler(sn_case *c, const sn_fleet_straggler *s)
{
    const bool named = *s->host && *s->worker;
    const char *usual = sn_say_time(c, s->usual_ns), *own = sn_say_time(c, s->p50_ns);
    const char *evidence =
        SN_SAY(c, "%zu workers run this model, with a median of %s", s->peers, usual);
    if (*s->op)
        evidence = SN_SAY(c, "%s; mostly %s: %s per run, %s as a rule", evidence, s->op,
                          sn_say_time(c, s->op_ns), sn_say_time(c, s->op_usual_ns));
    sn_found(
        c, SONDE_SLOW, 1 - s->usual_ns / s->p50_ns, "workers",
        SN_SAY(c, "%s%s%s is %.2f times as slow as the other workers: its median is %s", s->host,
               named ? " / " : "", s->worker, s->p50_ns / s->usual_ns, own),
        evidence,
        "look at what else that machine does, and compare its trace with another one: sonde diff");
}

void sn_check_stragglers(sn_case *c)
{
    enum { MOST = 5 }; /* more are a table: sonde report --by worker */
    sn_fleet f;
    sn_fleet_stragglers s;
    if (!c->p->workers.n)
        return;
    sn_fleet_init(&f, c->p->alloc);
    if (sn_fleet_add_all(&f, c->p, NULL) != SONDE_OK ||
        sn_fleet_find_stragglers(&f, &s, NULL) != SONDE_OK) {
        c->failed = true;
    } else {
        for (size_t i = 0; i < s.list.n && i < MOST; i++)
            say_straggler(c, &s.list.data[i]);
        sn_fleet_stragglers_free(&s);
    }
    sn_fleet_free(&f);
}
