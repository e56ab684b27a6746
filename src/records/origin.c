/* SPDX-License-Identifier: Apache-2.0 */
/* Where and when a profile was taken: labels, and the clocks at its ns 0. */
#include <stdio.h>
#include <unistd.h>

#include "base/boot.h"
#include "records/builder.h"

static sonde_status put_host(sn_profile *p, sonde_error *err)
{
    char host[SN_LABEL_KEY_BYTES + 1];
    if (gethostname(host, sizeof host - 1) != 0)
        return SONDE_OK; /* nothing to call it */
    host[sizeof host - 1] = 0;
    return sn_labels_put(&p->labels, SN_LABEL_HOST, host, err);
}

sonde_status sn_builder_describe_origin(sn_profile_builder *b, sonde_error *err)
{
    sn_profile *p = b->p;
    char boot[SN_BOOT_BYTES], worker[32];
    sn_boot_name(boot);
    const char *copy = sn_arena_strdup(&p->arena, boot);
    if (!copy)
        return sn_fail_memory(err, sizeof boot);
    const sn_moment now = sn_moment_now();
    const uint64_t since = now.mono_ns > b->base_ns ? now.mono_ns - b->base_ns : 0;
    p->boot = copy;
    p->start_wall_ns = now.wall_ns > since ? now.wall_ns - since : 0;
    p->start_mono_ns = now.mono_ns - since;
    p->wall_error_ns = sn_wall_error_ns();
    snprintf(worker, sizeof worker, "%ld", (long)getpid());
    SN_TRY(put_host(p, err));
    SN_TRY(sn_labels_put(&p->labels, SN_LABEL_WORKER, worker, err));
    return b->r->labels ? sn_labels_put_all(&p->labels, b->r->labels, err) : SONDE_OK;
}
