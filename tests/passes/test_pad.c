/* SPDX-License-Identifier: Apache-2.0 */
/* Padding with zeros moves into what is behind it, where that computes the same. */
#include "passes/interpret.h"

/* x ► (Relu) ► Pad ► `op` with a window of 3 x 3. */
static sn_node *padded(sn_graph *g, const char *op, bool relu, int n_pads, const int64_t *pads,
                       const char *value)
{
    char ins[64];
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(2, 3, 7, 6));
    const_i64(g, "pads", n_pads, pads);
    if (relu)
        node(g, "Relu", "r", "x");
    snprintf(ins, sizeof ins, "%s pads%s%s", relu ? "r" : "x", value[0] ? " " : "", value);
    node(g, "Pad", "p", ins);
    const bool conv = strcmp(op, "Conv") == 0;
    if (conv)
        const_f32(g, "w", 0, DIMS(4, 3, 3, 3));
    sn_node *n = node(g, op, "y", conv ? "p w" : "p");
    if (!conv)
        attr_ints(g, n, "kernel_shape", DIMS(3, 3));
    outputs(g, "y");
    return n;
}

TEST(zeros_go_into_convolutions_and_poolings)
{
    static const char *const ops[] = {"Conv", "AveragePool", "MaxPool"};
    for (int i = 0; i < 3; i++)
        for (int own = 0; own < 2; own++) {
            if (i == 1 && own) /* its own pads are not counted, the others would be */
                continue;
            sn_model *m = pass_model(0);
            sn_graph *p = NULL;
            scalar_f32(m->graph, "zero", 0);
            sn_node *n = padded(m->graph, ops[i], i == 2, DIMS(0, 0, 1, 0, 0, 0, 0, 1), "zero");
            attr_ints(m->graph, n, "strides", DIMS(2, 1));
            if (own)
                attr_ints(m->graph, n, "pads", DIMS(1, 1, 1, 0));
            CHECK_OK(finish(m, "pad-into", &p));
            CHECK_EQ(count_ops(p, "Pad"), 0);
            check_same(m, p, 1e-5);
            end_pass_model(m, p);
        }
}

TEST(padding_that_would_count_otherwise_stays)
{
    for (int k = 0; k < 7; k++) {
        sn_model *m = pass_model(0);
        sn_graph *g = m->graph, *p = NULL;
        static const int64_t pads[][8] = {{0, 0, 1, 1, 0, 0, 1, 1},
                                          {0, 1, 0, 0, 0, 0, 0, 0},
                                          {0, 0, 3, 0, 0, 0, 0, 0},
                                          {0, 0, -1, 0, 0, 0, 0, 0}};
        const int64_t *list = pads[k == 2 ? 1 : k == 3 ? 2 : k == 4 ? 3 : 0];
        scalar_f32(g, "one", 1);
        sn_node *n = padded(g,
                            k == 0 || k == 5 ? "MaxPool"
                            : k == 1         ? "AveragePool"
                                             : "Conv",
                            k == 5, 8, list, k == 6 ? "one" : "");
        if (k == 1)
            attr_ints(g, n, "pads", DIMS(1, 1, 1, 1));
        if (k == 2)
            const_f32(g, "w", 0, DIMS(4, 4, 3, 3));
        if (k == 5)
            attr_int(g, n, "ceil_mode", 1);
        CHECK_OK(finish(m, "pad-into", &p));
        CHECK_MSG(count_ops(p, "Pad") == 1, "case %d", k);
        end_pass_model(m, p);
    }
}

TEST_MAIN()
