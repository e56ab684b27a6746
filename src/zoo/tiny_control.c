/* SPDX-License-Identifier: Apache-2.0 */
/* Small models of what is not a plain chain of tensors: bodies with captures, sequences, strings,
 * shapes that depend on data. */
#include "zoo/builder.h"

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

enum { WIDTH = 4 };

sonde_status sn_zoo_build_tiny_loop(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b, body;
    sn_b_init(&b, m, 17, seed, err);
    const int64_t width = WIDTH;
    sn_value *x = sn_b_input(&b, "input", F32, &width, 1);
    sn_value *steps = sn_b_input(&b, "steps", I64, NULL, 0);
    sn_value *scale = sn_b_uniform(&b, "scale", &width, 1, 0.5f, 0.1f);
    sn_value *bias = sn_b_uniform(&b, "bias", &width, 1, 0.0f, 1.0f);
    sn_value *shifted = sn_b_op(&b, "", "Add", SN_IN(x, bias), SN_NO_ATTRS);

    /* acc ◄ acc · scale + shifted; both come from outside. */
    sn_b_init_body(&body, &b, "loop_body");
    (void)sn_b_input(&body, "i", I64, NULL, 0);
    sn_value *go = sn_b_input(&body, "go_in", SONDE_DTYPE_BOOL, NULL, 0);
    sn_value *acc = sn_b_input(&body, "acc_in", F32, &width, 1);
    go = sn_b_op(&body, "body", "Identity", SN_IN(go), SN_NO_ATTRS);
    acc = sn_b_op(&body, "body", "Mul", SN_IN(acc, sn_b_outer(&body, scale)), SN_NO_ATTRS);
    acc = sn_b_op(&body, "body", "Add", SN_IN(acc, sn_b_outer(&body, shifted)), SN_NO_ATTRS);
    sn_value *each = sn_b_op(&body, "body.each", "Identity", SN_IN(acc), SN_NO_ATTRS);
    sn_b_output(&body, go, "go_out", SONDE_DTYPE_BOOL, NULL, 0);
    sn_b_output(&body, acc, "acc_out", F32, &width, 1);
    sn_b_output(&body, each, "each_out", F32, &width, 1);

    sn_value *start = sn_b_bool(&b, "go", true);
    sn_value *out[2];
    sn_b_multi(&b, "", "Loop", SN_IN(steps, start, x), SN_ATTRS(sn_a_graph("body", body.graph)),
               out, 2);
    sn_b_output(&b, out[0], "final", F32, &width, 1);
    sn_b_output(&b, out[1], "history", F32, (const sn_dim[]){SN_DIM_UNKNOWN, WIDTH}, 2);
    return *b.status;
}

static sn_graph *branch(sn_builder *b, const char *name, const char *op_type, sn_value *x,
                        sn_value *constant, const sn_dim *dims)
{
    sn_builder body;
    sn_b_init_body(&body, b, name);
    sn_value *y = sn_b_op(&body, name, op_type,
                          SN_IN(sn_b_outer(&body, x), sn_b_outer(&body, constant)), SN_NO_ATTRS);
    char output[32] = "result_of_";
    for (size_t i = 10, k = 0; name[k] && i + 1 < sizeof output; i++, k++)
        output[i] = name[k];
    sn_b_output(&body, y, output, F32, dims, 2);
    return body.graph;
}

sonde_status sn_zoo_build_tiny_if(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim dims[2] = {sn_b_symbol(&b, "batch", 1), WIDTH};
    const int64_t width = WIDTH;
    sn_value *condition = sn_b_input(&b, "condition", SONDE_DTYPE_BOOL, NULL, 0);
    sn_value *x = sn_b_input(&b, "input", F32, dims, 2);
    sn_value *scale = sn_b_uniform(&b, "scale", &width, 1, 2.0f, 1.0f);
    sn_value *shift = sn_b_uniform(&b, "shift", &width, 1, 10.0f, 1.0f);
    sn_graph *then_branch = branch(&b, "then", "Mul", x, scale, dims);
    sn_graph *else_branch = branch(&b, "else", "Add", x, shift, dims);
    sn_value *y = sn_b_op(
        &b, "", "If", SN_IN(condition),
        SN_ATTRS(sn_a_graph("then_branch", then_branch), sn_a_graph("else_branch", else_branch)));
    sn_b_output(&b, y, "output", F32, dims, 2);
    return *b.status;
}

sonde_status sn_zoo_build_tiny_sequence(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim dims[2] = {sn_b_symbol(&b, "rows", 6), WIDTH};
    sn_value *x = sn_b_input(&b, "input", F32, dims, 2);
    sn_value *two = sn_b_ints(&b, "two", (const int64_t[]){2}, 1, 0);
    sn_value *first = sn_b_ints(&b, "first", (const int64_t[]){0}, 1, 0);
    sn_value *parts =
        sn_b_op(&b, "", "SplitToSequence", SN_IN(x, two), SN_ATTRS(sn_a_int("axis", 0)));
    sn_value *count = sn_b_op(&b, "", "SequenceLength", SN_IN(parts), SN_NO_ATTRS);
    sn_value *head = sn_b_op(&b, "", "SequenceAt", SN_IN(parts, first), SN_NO_ATTRS);
    sn_value *more = sn_b_op(&b, "", "SequenceInsert", SN_IN(parts, head), SN_NO_ATTRS);
    sn_value *y = sn_b_op(&b, "", "ConcatFromSequence", SN_IN(more), SN_ATTRS(sn_a_int("axis", 0)));
    sn_b_output_sequence(&b, parts, "parts", F32);
    sn_b_output(&b, count, "count", I64, NULL, 0);
    sn_b_output(&b, y, "joined", F32, (const sn_dim[]){SN_DIM_UNKNOWN, WIDTH}, 2);
    return *b.status;
}

sonde_status sn_zoo_build_tiny_text(sn_model *m, uint64_t seed, sonde_error *err)
{
    static const char *const shout[1] = {"!"}, *const known[1] = {"hello"}, *const rest[1] = {"?"};
    sn_builder b;
    sn_b_init(&b, m, 20, seed, err);
    const sn_dim words = sn_b_symbol(&b, "words", 2);
    sn_value *x = sn_b_input(&b, "input", SONDE_DTYPE_STRING, &words, 1);
    sn_value *loud =
        sn_b_op(&b, "", "StringConcat", SN_IN(x, sn_b_strings(&b, "shout", shout, 1)), SN_NO_ATTRS);
    sn_value *is_known =
        sn_b_op(&b, "", "Equal", SN_IN(x, sn_b_strings(&b, "known", known, 1)), SN_NO_ATTRS);
    sn_value *answer = sn_b_op(
        &b, "", "Where", SN_IN(is_known, loud, sn_b_strings(&b, "rest", rest, 1)), SN_NO_ATTRS);
    sn_b_output(&b, answer, "answer", SONDE_DTYPE_STRING, &words, 1);
    sn_b_output(&b, is_known, "is_known", SONDE_DTYPE_BOOL, &words, 1);
    return *b.status;
}

sonde_status sn_zoo_build_tiny_dynamic(sn_model *m, uint64_t seed, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim length = sn_b_symbol(&b, "length", 8);
    sn_value *x = sn_b_input(&b, "input", F32, &length, 1);
    sn_value *positive = sn_b_op(&b, "", "Relu", SN_IN(x), SN_NO_ATTRS);
    sn_value *where = sn_b_op(&b, "", "NonZero", SN_IN(positive), SN_NO_ATTRS);
    sn_value *axes = sn_b_ints(&b, "axes", (const int64_t[]){0}, 1, 1);
    sn_value *index = sn_b_op(&b, "", "Squeeze", SN_IN(where, axes), SN_NO_ATTRS);
    sn_value *picked = sn_b_op(&b, "", "Gather", SN_IN(x, index), SN_NO_ATTRS);
    sn_value *root = sn_b_op(&b, "", "Sqrt", SN_IN(picked), SN_NO_ATTRS);
    sn_b_output(&b, index, "index", I64, (const sn_dim[]){SN_DIM_UNKNOWN}, 1);
    sn_b_output(&b, root, "root", F32, (const sn_dim[]){SN_DIM_UNKNOWN}, 1);
    return *b.status;
}
