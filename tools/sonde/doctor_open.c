/* SPDX-License-Identifier: Apache-2.0 */
/* A model opened once more, to look at its plan or to fetch inner values. */
#include "doctor.h"

int open_to_inspect(runner *r, const run_setup *s, const char *model, sonde_inspection **look)
{
    run_setup own = *s;
    sonde_error err;
    own.record_level = 0;
    own.common.quiet = true;
    *look = NULL;
    const int code = runner_open(r, &own, model);
    if (!code && sonde_inspect_session(r->model.session, r->in[0].names, r->in[0].values,
                                       r->in[0].n, look, &err))
        return fail("%s", err.message);
    return code;
}
