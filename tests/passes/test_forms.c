/* SPDX-License-Identifier: Apache-2.0 */
/* The solver of forms with a stage that is made up: what groups of nodes decide, and which borders
 * they get. Its second label is "far"; a border is a Cast to f32, which changes nothing. */
#include "passes/forms.h"

#include "passes/interpret.h"

enum { NEAR, FAR };
static const char *const label_names[] = {"near", "far"};

typedef struct far_stage {
    const char *fixed;    /* these operators are far … */
    const char *elastic;  /* … these do not care … */
    uint32_t native_cost; /* … but lose so much when they are near */
} far_stage;

static uint8_t signature(const sn_form_stage *s, const sn_node *n)
{
    const far_stage *f = s->user;
    if (strcmp(n->op_type, f->fixed) == 0)
        return FAR;
    return strcmp(n->op_type, f->elastic) == 0 ? SN_FORM_ELASTIC : NEAR;
}

static sn_port_form input(const sn_form_stage *s, const sn_node *n, uint32_t i)
{
    (void)i;
    return sn_forms_signature(s, n) == NEAR ? SN_PORT_NATIVE : SN_PORT_SAME;
}

static sn_port_form output(const sn_form_stage *s, const sn_node *n, uint32_t o)
{
    (void)s;
    (void)n;
    (void)o;
    return SN_PORT_SAME;
}

static uint32_t native_cost(const sn_form_stage *s, const sn_node *n)
{
    (void)n;
    return ((const far_stage *)s->user)->native_cost;
}

static uint32_t weight(const sn_value *v)
{
    (void)v;
    return 10;
}

static sonde_status mark(sn_form_stage *s, sn_value *v, const sn_value *of, uint8_t label)
{
    (void)s;
    (void)of;
    v->fact.form.space = label;
    return SONDE_OK;
}

static sn_form_border border(const sn_form_stage *s, const sn_value *to)
{
    (void)s;
    (void)to;
    return (sn_form_border){.domain = "",
                            .op_type = "Cast",
                            .opset = 13,
                            .attribute = "to",
                            .value = SONDE_DTYPE_F32,
                            .shown_type = "[Border]"};
}

/* x ► Exp ► Neg ► Neg ► two readers, in the stage `f`: so many borders, and "b" has this label. */
static void check_borders(far_stage f, uint32_t borders, uint8_t label_of_b)
{
    sn_model *m = pass_model(0);
    sn_graph *g = m->graph, *p = NULL;
    typed_input(g, "x", SONDE_DTYPE_F32, DIMS(4));
    node(g, "Exp", "a", "x");
    node(g, "Neg", "b", "a");
    node(g, "Neg", "c", "b");
    node(g, "Sin", "y", "c");
    node(g, "Cos", "z", "b");
    outputs(g, "y z");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, &p));
    sn_pass_env env = {.ctx = &build_ctx, .buffers = &pass_buffers, .err = &err};
    sn_form_stage s = {.g = p,
                       .env = &env,
                       .label_names = label_names,
                       .user = &f,
                       .signature = signature,
                       .input = input,
                       .output = output,
                       .native_cost = native_cost,
                       .weight = weight,
                       .mark = mark,
                       .border = border};
    CHECK_OK(sn_forms_solve(&s));
    CHECK_OK(sn_graph_verify(p, &err));
    CHECK_EQ(s.changes, borders);
    CHECK_EQ(count_ops(p, "Cast"), borders);
    for (size_t i = 0; i < p->values.n; i++)
        if (p->values.data[i] && strcmp(p->values.data[i]->name, "b") == 0)
            CHECK_EQ(p->values.data[i]->fact.form.space, label_of_b);
    check_same(m, p, 0);
    end_pass_model(m, p);
}

TEST(a_group_takes_the_label_with_fewer_borders)
{
    /* Exp is far, Sin and Cos are near: two borders if the Negs were far, one if they are near. */
    check_borders((far_stage){"Exp", "Neg", 0}, 2, NEAR); /* x, a */
}

TEST(a_group_that_loses_more_when_native_takes_the_label)
{
    check_borders((far_stage){"Exp", "Neg", 4}, 2, NEAR); /* 2 · 4 saved, 10 more to pay */
    check_borders((far_stage){"Exp", "Neg", 5}, 3, FAR);  /* x, b, c */
}

TEST(nothing_changes_when_no_node_is_fixed)
{
    check_borders((far_stage){"-", "Neg", 100}, 0, NEAR);
}

/* Two nodes of the same words: one is enough, unless their results lie differently in memory. */
static void check_copies(sn_form first, sn_form second, uint32_t left)
{
    sn_model *m = image_model(0, 4, 3, 5);
    sn_graph *g = m->graph, *p = NULL;
    node(g, "Exp", "a", "x");
    node(g, "Exp", "b", "x");
    node(g, "Add", "y", "a b");
    outputs(g, "y");
    CHECK_OK(sn_model_finish(m, &err));
    CHECK_OK(ready_copy(m, &p));
    for (sn_node *n = p->first; n; n = n->next)
        if (strcmp(n->op_type, "Exp") == 0)
            n->out[0]->fact.form = strcmp(n->out[0]->name, "a") == 0 ? first : second;
    sn_pass_env env = {
        .ctx = &build_ctx, .cpu_flags = pass_cpu_flags, .buffers = &pass_buffers, .err = &err};
    uint32_t changes = 0;
    for (size_t k = 0; sn_pass_row(k); k++)
        if (strcmp(sn_pass_row(k)->name, "common-subexpressions") == 0)
            CHECK_OK(sn_pass_row(k)->run(p, &env, &changes));
    CHECK_EQ(count_ops(p, "Exp"), left);
    end_pass_model(m, p);
}

TEST(results_in_different_forms_are_not_the_same)
{
    const sn_form native = {0}, blocks = {.layout = sn_layout_blocks(8)};
    const sn_form last = {.layout = sn_layout_last()}, narrow = {.dtype = SONDE_DTYPE_BF16};
    const sn_form elsewhere = {.space = 1};
    const sn_form forms[] = {native, blocks, last, narrow, elsewhere};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t j = 0; j < sizeof forms / sizeof *forms; j++)
            check_copies(forms[i], forms[j], i == j ? 1 : 2);
}

TEST_MAIN()
