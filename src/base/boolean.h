/* SPDX-License-Identifier: Apache-2.0 */
/* Yes and no as users write them: 1, true, t, yes, y and 0, false, f, no, n, in any case. */
#ifndef SN_BASE_BOOLEAN_H
#define SN_BASE_BOOLEAN_H

#include <stdbool.h>

/* False: it is none of these words, and *value is as before. */
bool sn_boolean_parse(const char *text, bool *value);
/* Whether a variable is switched off: unset, empty or a "no". */
bool sn_boolean_is_off(const char *text);

#endif
