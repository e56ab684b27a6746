/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum that is a matrix product becomes one and computes the same; others stay. */
#include "passes/interpret.h"

typedef struct einsum_case {
    const char *equation;
    int a_rank, b_rank;
    int64_t a[4], b[4];
    bool constant; /* the second operand */
} einsum_case;

static void check(const einsum_case *t, uint32_t products)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "a", SONDE_DTYPE_F32, t->a_rank, t->a);
    if (t->constant)
        const_f32(g, "b", 0, t->b_rank, t->b);
    else
        typed_input(g, "b", SONDE_DTYPE_F32, t->b_rank, t->b);
    sn_node *n = node(g, "Einsum", "e", "a b");
    attr_text(g, n, "equation", t->equation);
    node(g, "Relu", "y", "e");
    outputs(g, "y");
    CHECK_OK(finish(m, "einsum-products", &p));
    CHECK_MSG(count_ops(p, "MatMul") == products, "%s", t->equation);
    CHECK_MSG(count_ops(p, "Einsum") == 1 - products, "%s", t->equation);
    check_same(m, p, 1e-4);
    end_pass_model(m, p);
}

TEST(products_of_two_operands_become_matrix_products)
{
    static const einsum_case cases[] = {
        {"ij,jk->ik", 2, 2, {3, 4}, {4, 5}, false},
        {"ij,jk->ki", 2, 2, {3, 4}, {4, 5}, false},
        {"ij,kj->ik", 2, 2, {3, 4}, {5, 4}, true},
        {"ibh,hnd->ibnd", 3, 3, {3, 2, 4}, {4, 5, 2}, true},
        {"ibnd,hnd->ibh", 4, 3, {3, 2, 4, 5}, {6, 4, 5}, true},
        {"ibnd,jbnd->bnij", 4, 4, {3, 2, 4, 5}, {6, 2, 4, 5}, false},
        {"bnij,jbnd->ibnd", 4, 4, {2, 4, 3, 6}, {6, 2, 4, 5}, false},
        {"te,ted->td", 2, 3, {3, 4}, {3, 4, 5}, false},
        {"td,d->t", 2, 1, {3, 4}, {4}, false},
        {"d,td->t", 1, 2, {4}, {3, 4}, true},
        {" bhid , bhjd -> bhij ", 4, 4, {2, 3, 4, 5}, {2, 3, 6, 5}, false},
        {"ab,ab->", 2, 2, {3, 4}, {3, 4}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i], 1);
}

TEST(other_sums_stay)
{
    static const einsum_case cases[] = {
        {"ij,kl->ijkl", 2, 2, {3, 4}, {2, 5}, false}, /* nothing is summed */
        {"ij,kl->ik", 2, 2, {3, 4}, {2, 5}, false},   /* each for itself */
        {"ii,ij->ij", 2, 2, {3, 3}, {3, 4}, false},   /* a diagonal */
        {"...ij,jk->...ik", 3, 2, {2, 3, 4}, {4, 5}, false}, {"ij,jk", 2, 2, {3, 4}, {4, 5}, false},
        {"ij,ij->ij", 2, 2, {3, 4}, {3, 4}, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i], 0);
}

TEST_MAIN()
