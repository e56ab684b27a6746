/* SPDX-License-Identifier: Apache-2.0 */
/* What a Chrome trace says beside its events. */
#ifndef SN_EXPORT_CHROME_FACTS_H
#define SN_EXPORT_CHROME_FACTS_H

#include "export/writer.h"

/* The members of "otherData", without the braces. `first_span`: by step, 0 where no event shows it.
 */
void sn_chrome_facts(sn_writer *w, const sn_profile *p, const sn_prof_summary *s,
                     const uint32_t *first_span);
/* {"calls":…}: what hardware counters counted in a step. */
void sn_chrome_counts(sn_writer *w, const sn_prof_hw *hw);

#endif
