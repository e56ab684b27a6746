/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embeddings as exporters write them become one node that reads views, and computes the
 * same; what only looks like one stays. */
#include "passes/interpret.h"

enum { BATCH = 2, LEN = 5, HEADS = 3, SIZE = 8, HALF = SIZE / 2, WIDTH = HEADS * SIZE };

typedef enum form { SLICED, FROM_THE_END, SPLIT, PAIRS, FORMS } form;

/* What can be wrong with it. */
typedef enum miss { NONE, PLUS, SWAPPED, OTHER, READ_TWICE, WIDE_TABLE, SHORT_TABLE, MISSES } miss;

static void slice(sn_graph *g, const char *to, const char *from, int64_t start, int64_t step)
{
    char names[4][80], ins[400];
    const int64_t numbers[4] = {start, INT64_MAX, start < 0 ? -1 : 3, step};
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof names[i], "%s_%d", to, i);
        const_i64(g, names[i], 1, &numbers[i]);
    }
    if (step == 1 && start == 0) /* only the first half */
        const_i64(g, "first_half", 1, (int64_t[]){HALF});
    snprintf(ins, sizeof ins, "%s %s %s %s %s", from, names[0],
             step == 1 && start == 0 ? "first_half" : names[1], names[2], names[3]);
    node(g, "Slice", to, ins);
}

/* turned(x) as "r". */
static void turn(sn_graph *g, form f, miss wrong)
{
    const char *second = wrong == OTHER ? "z" : "x";
    if (f == SPLIT) {
        const_i64(g, "halves", 2, (int64_t[]){HALF, HALF});
        attr_int(g, node(g, "Split", "x1 x2", "x halves"), "axis", -1);
        if (wrong == OTHER)
            slice(g, "xz", "z", 0, 1);
    } else if (f == PAIRS) {
        slice(g, "x1", second, 0, 2), slice(g, "x2", "x", 1, 2);
    } else {
        slice(g, "x1", second, 0, 1), slice(g, "x2", "x", f == SLICED ? HALF : -HALF, 1);
    }
    node(g, wrong == PLUS ? "Abs" : "Neg", "minus", "x2");
    const char *first = f == SPLIT && wrong == OTHER ? "xz" : "x1";
    char ins[64];
    if (f == PAIRS) {
        const_i64(g, "four", 1, (int64_t[]){4});
        const_i64(g, "flat", 4, (int64_t[]){0, 0, 0, SIZE});
        node(g, "Unsqueeze", "m5", "minus four"), node(g, "Unsqueeze", "p5", "x1 four");
        attr_int(g, node(g, "Concat", "both", wrong == SWAPPED ? "p5 m5" : "m5 p5"), "axis", -1);
        node(g, "Reshape", "r", "both flat");
        return;
    }
    if (wrong == SWAPPED)
        snprintf(ins, sizeof ins, "%s minus", first);
    else
        snprintf(ins, sizeof ins, "minus %s", first);
    attr_int(g, node(g, "Concat", "r", ins), "axis", 3);
}

static sn_model *rotary_model(form f, miss wrong)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph;
    typed_input(g, "tokens", SONDE_DTYPE_F32, DIMS(BATCH, LEN, WIDTH));
    typed_input(g, "z", SONDE_DTYPE_F32, DIMS(BATCH, HEADS, LEN, SIZE));
    typed_input(g, "cos", SONDE_DTYPE_F32, DIMS(BATCH, 1, LEN, SIZE));
    typed_input(g, "sin", SONDE_DTYPE_F32, 2, (int64_t[]){LEN, wrong == SHORT_TABLE ? 1 : SIZE});
    typed_input(g, "wide", SONDE_DTYPE_F32, DIMS(2, BATCH, 1, LEN, SIZE));
    const_i64(g, "shape", 4, (int64_t[]){0, 0, HEADS, SIZE});
    node(g, "Reshape", "apart", "tokens shape");
    attr_ints(g, node(g, "Transpose", "x", "apart"), "perm", DIMS(0, 2, 1, 3));
    turn(g, f, wrong);
    node(g, "Mul", "a", wrong == WIDE_TABLE ? "x wide" : f % 2 ? "cos x" : "x cos");
    node(g, "Mul", "b", f % 2 ? "r sin" : "sin r");
    node(g, "Add", "y", f % 2 ? "a b" : "b a");
    if (wrong == READ_TWICE)
        node(g, "Neg", "other", "r");
    outputs(g, wrong == READ_TWICE ? "y other" : "y");
    return m;
}

TEST(rotations_of_halves_and_pairs_become_one_node)
{
    for (int f = 0; f < FORMS; f++) {
        sn_model *m = rotary_model((form)f, NONE);
        sn_graph *p = NULL;
        CHECK_OK(finish(m, NULL, &p));
        CHECK_MSG(p->n_live_nodes == 1, "form %d leaves %u nodes", f, p->n_live_nodes);
        CHECK_STR(p->first->op_type, "FusedRotary");
        CHECK_STR(p->first->in[0].value->name, "tokens");
        check_same(m, p, 1e-5);
        end_pass_model(m, p);
    }
}

TEST(what_is_no_rotation_stays)
{
    for (int f = 0; f < FORMS; f++)
        for (int wrong = PLUS; wrong < MISSES; wrong++) {
            sn_model *m = rotary_model((form)f, (miss)wrong);
            sn_graph *p = NULL;
            CHECK_OK(finish(m, NULL, &p));
            CHECK_MSG(count_ops(p, "FusedRotary") == 0, "form %d, miss %d was fused", f, wrong);
            check_same(m, p, 1e-5);
            end_pass_model(m, p);
        }
}

TEST_MAIN()
