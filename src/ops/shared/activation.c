/* SPDX-License-Identifier: Apache-2.0 */
/* Reading fused activations; see activation.h. */
#include "ops/shared/activation.h"

sonde_status sn_prep_act(sn_prep *p, const char *name, const char *params, sn_act *act)
{
    const char *text;
    const float *values;
    size_t n;
    SN_TRY(sn_prep_string(p, name, "", &text));
    SN_TRY(sn_prep_floats(p, params, &values, &n));
    if (!sn_act_parse(text, values, n, act))
        return sn_prep_fail(p, "unknown activation '%s'", text);
    return SONDE_OK;
}
