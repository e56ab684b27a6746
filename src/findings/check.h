/* SPDX-License-Identifier: Apache-2.0 */
/* What every check has: the profile, its rows, and the words to say something with. Internal to
 * this room. Texts are made in the arena of the findings; once memory is short, `failed` stays set
 * and texts are "", so a check need not look. */
#ifndef SN_FINDINGS_CHECK_H
#define SN_FINDINGS_CHECK_H

#include "findings/findings.h"

typedef struct sn_case {
    const sn_profile *p;
    sn_findings *out;
    sn_prof_summary ops, kernels, nodes; /* SN_BY_OP, SN_BY_KERNEL, SN_BY_NODE; times and shares of
                                            rows are the usual ones */
    bool failed;                         /* out of memory */
} sn_case;

/* A check says what it has to say, or nothing. */
typedef void sn_check(sn_case *c);
#define SN_CHECK(name) sn_check sn_check_##name;
#include "findings/checks.inc"
#undef SN_CHECK

/* printf into the arena. */
#define SN_SAY(c, ...) sn_say((c), sn_arena_printf(&(c)->out->arena, __VA_ARGS__))
const char *sn_say(sn_case *c, const char *made);
/* "9.13 µs" and "21.0 MiB", as the program writes them. */
const char *sn_say_time(sn_case *c, double ns);
const char *sn_say_bytes(sn_case *c, double bytes);

/* All texts are literals or of the arena. `gain`: the share of a run that the remedy is about,
 * which it may gain at most; 0: not known. */
void sn_found(sn_case *c, sonde_severity severity, double gain, const char *topic, const char *said,
              const char *evidence, const char *remedy);

/* The first few names with their shares: "Conv 97.6 %, Gemm 1.1 %". Names stay where they are. */
enum { SN_FEW = 4 };
typedef struct sn_few {
    const char *names[SN_FEW];
    double shares[SN_FEW];
    int n;
    double share; /* of all, also those not named */
} sn_few;
void sn_few_add(sn_few *w, const char *name, double share);
const char *sn_say_few(sn_case *c, const sn_few *w);

/* The first step of a row; NULL: it has none. */
const sn_prof_step *sn_row_step(const sn_case *c, const sn_prof_row *r);
/* An example node, or the row's name where the node has none. */
const char *sn_row_node(const sn_prof_row *r);
/* Whether another program wrote the profile: sonde's options are no remedy for it. */
bool sn_is_foreign(const sn_profile *p);

#endif
