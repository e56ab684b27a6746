/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace of a step: sizes that overflow are refused when it is bound, and under
 * AddressSanitizer only the pieces of the running step can be touched. */
#include "ops/one_node.h"

#if SN_WORKSPACE_GUARDED
#include <sanitizer/asan_interface.h>
#endif

/* ---- an operator that carves what the test says ---- */

enum { N_PIECES = 3 };
static int64_t carved_elems[N_PIECES];
static size_t largest_step; /* of the frame: what other steps would need */
static bool ran, pieces_open, rest_closed;

typedef struct carved {
    sn_piece piece[N_PIECES];
    size_t bytes;
} carved;

static sonde_status infer_scalar(sn_infer *c)
{
    return sn_infer_same(c, 0, 0);
}

static sonde_status bind_carved(sn_bind *b)
{
    carved *k = SN_NEW(b->arena, carved);
    if (!k)
        return sn_fail_memory(b->err, sizeof *k);
    for (int i = 0; i < N_PIECES; i++)
        k->piece[i] = sn_carve(&b->workspace, carved_elems[i], 1);
    k->bytes = b->workspace.bytes;
    b->bound = k;
    return SONDE_OK;
}

/* Writes every byte of its pieces; looks whether the bytes around them are closed. */
static sonde_status run_carved(const sn_step *s, sn_frame *f)
{
    const carved *k = s->bound;
    ran = pieces_open = rest_closed = true;
    for (int i = 0; i < N_PIECES; i++)
        memset(sn_piece_ptr(f, k->piece[i]), i, (size_t)carved_elems[i]);
#if SN_WORKSPACE_GUARDED
    for (int i = 0; i < N_PIECES; i++) {
        const uint8_t *p = sn_piece_ptr(f, k->piece[i]);
        const size_t n = (size_t)carved_elems[i];
        pieces_open &= !__asan_region_is_poisoned((void *)(uintptr_t)p, n);
        rest_closed &= __asan_address_is_poisoned(p - 1);
        rest_closed &= k->piece[i].at + n >= largest_step || __asan_address_is_poisoned(p + n);
    }
    for (size_t at = k->bytes; at < largest_step; at++)
        rest_closed &= __asan_address_is_poisoned(f->workspace + at);
#endif
    return SONDE_OK;
}

static const sn_op carving_op = {.name = "Carve",
                                 .domain = "",
                                 .since = 1,
                                 .min_in = 1,
                                 .max_in = 1,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .infer = infer_scalar,
                                 .bind = bind_carved,
                                 .run = run_carved};

/* Binds a step of that operator and, when that goes well, runs it in a frame with room to spare. */
static sonde_status bind_and_run(one_node *c, size_t spare)
{
    static const int64_t dims[1] = {1};
    static const uint32_t slots[2] = {0, 1};
    const sn_fact fact = {
        .type = {.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 1, .dims = dims}};
    const sn_fact *in[1] = {&fact};
    sn_node node = {.name = "it", .op_type = "Carve", .shown_type = "Carve"};
    sn_step s = {
        .in = slots, .out = slots + 1, .n_in = 1, .n_out = 1, .op = &carving_op, .node = &node};
    sn_bind b = {.node = &node,
                 .in = in,
                 .out = &fact,
                 .n_in = 1,
                 .n_out = 1,
                 .ctx = &c->ctx,
                 .threads = 1,
                 .arena = &c->arena,
                 .err = &c->err,
                 .run = run_carved};
    ran = false;
    SN_TRY(sn_op_bind_step(&s, &b));
    s.run = b.run;
    s.bound = b.bound;
    largest_step = b.workspace.bytes + spare;
    sn_frame f = {.ctx = &c->ctx, .alloc = &c->alloc, .err = &c->err};
    f.workspace = sn_alloc(&c->alloc, largest_step);
    sn_workspace_close(f.workspace, largest_step);
    const sonde_status st = s.run(&s, &f);
#if SN_WORKSPACE_GUARDED
    for (size_t at = 0; at < largest_step; at++)
        rest_closed &= __asan_address_is_poisoned(f.workspace + at);
#endif
    sn_workspace_open(f.workspace, largest_step);
    memset(f.workspace, 0, largest_step);
    sn_free(&c->alloc, f.workspace, largest_step);
    return st;
}

static void set_elems(int64_t a, int64_t b, int64_t c)
{
    carved_elems[0] = a;
    carved_elems[1] = b;
    carved_elems[2] = c;
}

TEST(a_step_finds_its_pieces_when_it_runs)
{
    one_node c;
    node_begin_graph(&c);
    set_elems(100, 64, 7);
    NODE_CHECK(&c, bind_and_run(&c, 1000));
    CHECK(ran);
    node_end(&c);
}

TEST(a_step_with_too_large_pieces_is_refused_when_it_is_bound)
{
    one_node c;
    node_begin_graph(&c);
    set_elems(1, INT64_MAX, 1);
    CHECK_EQ(bind_and_run(&c, 0), SONDE_LIMIT);
    CHECK_HAS(c.err.message, "node 'it' (Carve): the tensors are too large");
    CHECK(!ran);
    node_end(&c);
}

TEST(only_the_pieces_of_the_running_step_can_be_touched)
{
#if SN_WORKSPACE_GUARDED
    one_node c;
    node_begin_graph(&c);
    set_elems(100, 64, 7);
    NODE_CHECK(&c, bind_and_run(&c, 1000));
    CHECK(ran && pieces_open && rest_closed);
    set_elems(8, 0, 1);
    NODE_CHECK(&c, bind_and_run(&c, 1));
    CHECK(ran && pieces_open && rest_closed);
    node_end(&c);
#else
    SKIP_TEST("only AddressSanitizer can tell");
#endif
}

TEST_MAIN()
