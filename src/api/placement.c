/* SPDX-License-Identifier: Apache-2.0 */
/* Memory nodes, where a session's threads and memory are, and what the doctor says of both. */
#include "api/internal.h"
#include "base/affinity.h"
#include "base/numa_maps.h"
#include "findings/machine.h"
#include "sonde/experimental/findings.h"
#include "sonde/experimental/machine.h"

static sonde_status topology_of(sonde_context *c, const sn_topology **t, sonde_error *err)
{
    return sn_topology_get(&c->core.topology, c->core.system_root, &c->alloc, t, err);
}

sonde_status sonde_machine_node_get(sonde_context *context, size_t index, sonde_machine_node *node,
                                    sonde_error *err)
{
    SN_REQUIRE(node, err);
    sonde_context *c = NULL;
    const sn_topology *t;
    SN_TRY(sn_api_context(context, &c, err));
    sonde_status st = topology_of(c, &t, err);
    if (st == SONDE_OK && index >= (size_t)t->n_nodes)
        st = sn_fail(err, SONDE_NOT_FOUND, "memory node %zu of a machine with %d", index,
                     t->n_nodes);
    if (st == SONDE_OK) {
        const sn_topo_node *n = &t->nodes[index];
        const sonde_machine_node own = {.id = n->id,
                                        .socket = n->package,
                                        .cores = n->cores,
                                        .usable_cores = n->usable_cores,
                                        .cpus = n->cpus,
                                        .usable_cpus = n->usable_cpus,
                                        .has_memory = n->has_memory,
                                        .memory_bytes = n->memory_bytes,
                                        .free_bytes = n->free_bytes};
        st = sn_api_copy_out(node, &own, sizeof own, err);
    }
    sonde_context_release(c);
    return st;
}

/* ------------------------------------------------------------------ sessions */
static const char *set_text(sn_arena *arena, const sn_id_set *s)
{
    char text[1024];
    return sn_arena_strdup(arena, sn_id_set_text(s, text, sizeof text));
}

sonde_status sn_api_describe_placement(sonde_session *s, sonde_error *err)
{
    const sn_seats *seats = sn_session_seats(s->core);
    s->nodes = seats ? set_text(&s->arena, &seats->nodes) : "";
    s->cpus = seats ? set_text(&s->arena, &seats->all) : "";
    s->memory = seats ? set_text(&s->arena, &seats->memory) : "";
    return s->nodes && s->cpus && s->memory ? SONDE_OK : sn_fail_memory(err, 1024);
}

static void find_pages(const sonde_session *s, sonde_placement *own)
{
    enum { NODES = 1024 };
    const sn_program *p = sn_session_program(s->core);
    size_t counts[NODES];
    if (!p->packed)
        return;
    own->weight_bytes = p->packed_bytes;
    own->pages = sn_memory_where(p->packed->data, p->packed->bytes, counts, NODES);
    for (size_t k = 0; k < NODES && p->memory; k++)
        if (!sn_id_set_has(p->memory, (int)k))
            own->pages_elsewhere += counts[k];
}

sonde_status sonde_session_placement(sonde_session *session, sonde_placement *placement,
                                     sonde_error *err)
{
    SN_REQUIRE(session, err);
    SN_REQUIRE(placement, err);
    sn_context *ctx = &session->model->context->core;
    sonde_placement own = {.threads = sn_session_threads(session->core),
                           .nodes = session->nodes,
                           .cpus = session->cpus,
                           .memory = session->memory,
                           .threads_refused = atomic_load(&ctx->threads_refused),
                           .memory_refused = atomic_load(&ctx->memory_refused)};
    find_pages(session, &own);
    return sn_api_copy_out(placement, &own, sizeof own, err);
}

/* ------------------------------------------------------------------ findings */
static void read_huge_pages(const sonde_context *c, char *line, size_t bytes)
{
    if (sn_topology_file(c->core.system_root, "/sys/kernel/mm/transparent_hugepage/enabled", line,
                         bytes) < 0)
        line[0] = 0;
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
            *p = 0; /* the first line; what is no text ends it, too */
}

/* `bytes`: room for one number a node. */
static sonde_status look(sonde_context *c, const sonde_session *session, const sn_topology *t,
                         uint64_t *bytes, sn_findings *out, sonde_error *err)
{
    char pages[128];
    sn_id_set allowed;
    read_huge_pages(c, pages, sizeof pages);
    sn_machine_state s = {.topology = t,
                          .seats = session ? sn_session_seats(session->core) : c->core.seats,
                          .threads = session ? sn_session_threads(session->core) : c->core.threads,
                          .threads_refused = atomic_load(&c->core.threads_refused),
                          .memory_refused = atomic_load(&c->core.memory_refused),
                          .huge_pages = pages,
                          .allowed = sn_affinity_get(&allowed) ? &allowed : NULL};
    if (!session)
        return sn_findings_of_machine(&s, &c->alloc, out, err);
    if (sn_memory_by_node(c->core.system_root, t, bytes))
        s.node_bytes = bytes;
    return sn_findings_of_placement(&s, &c->alloc, out, err);
}

sonde_status sonde_machine_findings(sonde_context *context, sonde_session *session,
                                    sonde_findings **findings, sonde_error *err)
{
    SN_REQUIRE(findings, err);
    *findings = NULL;
    sonde_context *c = NULL;
    const sn_topology *t = NULL;
    sn_findings core;
    SN_TRY(sn_api_context(session ? session->model->context : context, &c, err));
    sonde_status st = topology_of(c, &t, err);
    const size_t room = t ? (size_t)t->n_nodes * sizeof(uint64_t) : 0;
    uint64_t *bytes = st ? NULL : sn_alloc(&c->alloc, room);
    if (!st)
        st = bytes ? look(c, session, t, bytes, &core, err) : sn_fail_memory(err, room);
    sn_free(&c->alloc, bytes, room);
    if (!st)
        st = sn_api_findings(c, &core, findings, err);
    sonde_context_release(c);
    return st;
}
