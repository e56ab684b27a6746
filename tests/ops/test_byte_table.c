/* SPDX-License-Identifier: Apache-2.0 */
/* sonde.ByteTable, and the flag of the operators that tables are made of. */
#include "ops/one_node.h"

static void begin(one_node *c)
{
    node_begin(c, "ByteTable", 1, 2, 1);
    if (c->n)
        c->n->domain = "sonde";
}

static const uint8_t *reversed(void)
{
    static uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(255 - i);
    return table;
}

TEST(a_byte_is_the_index_of_its_result)
{
    one_node c;
    begin(&c);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(2, 2), (uint8_t[]){0, 1, 128, 255});
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(256), reversed());
    NODE_CHECK(&c, node_run(&c));
    CHECK_EQ(c.out[0].t.dtype, SONDE_DTYPE_U8);
    CHECK(c.out[0].t.rank == 2 && c.out[0].t.dims[0] == 2 && c.out[0].t.dims[1] == 2);
    CHECK(memcmp(c.out[0].t.data, (uint8_t[]){255, 254, 127, 0}, 4) == 0);
    node_end(&c);
}

TEST(signed_bytes_are_indices_as_they_lie_and_the_table_gives_the_type)
{
    one_node c;
    begin(&c);
    node_tensor(&c, 0, SONDE_DTYPE_I8, SHAPE(3), (int8_t[]){-128, -1, 5});
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(256), reversed());
    NODE_CHECK(&c, node_run(&c));
    CHECK_EQ(c.out[0].t.dtype, SONDE_DTYPE_U8);
    CHECK(memcmp(c.out[0].t.data, (uint8_t[]){127, 0, 250}, 3) == 0);
    node_end(&c);
}

TEST(one_byte_and_none_are_fine)
{
    one_node c;
    begin(&c);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SCALAR, (uint8_t[]){3});
    node_tensor(&c, 1, SONDE_DTYPE_I8, SHAPE(256), reversed());
    NODE_CHECK(&c, node_run(&c));
    CHECK(c.out[0].t.rank == 0 && c.out[0].t.dtype == SONDE_DTYPE_I8);
    CHECK_EQ(*(const int8_t *)c.out[0].t.data, -4);
    node_end(&c);
    begin(&c);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(2, 0), (uint8_t[]){0});
    node_tensor(&c, 1, SONDE_DTYPE_I8, SHAPE(256), reversed());
    NODE_CHECK(&c, node_run(&c));
    CHECK_EQ(sn_tensor_count(&c.out[0].t), 0);
    node_end(&c);
}

TEST(other_types_and_sizes_are_refused)
{
    one_node c;
    begin(&c);
    node_tensor(&c, 0, SONDE_DTYPE_U8, SHAPE(2), (uint8_t[]){0, 1});
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(255), reversed());
    CHECK(node_run(&c) != SONDE_OK);
    CHECK_HAS(c.err.message, "256 elements");
    node_end(&c);
    begin(&c);
    node_f32(&c, 0, SHAPE(2), 1, 2);
    node_tensor(&c, 1, SONDE_DTYPE_U8, SHAPE(256), reversed());
    CHECK(node_run(&c) != SONDE_OK);
    CHECK_HAS(c.err.message, "must be bytes");
    node_end(&c);
}

TEST(elementwise_operators_have_one_output_and_nothing_but_their_inputs)
{
    const uint32_t others = SN_OP_DATA_DEPENDENT | SN_OP_RANDOM | SN_OP_CONTROL | SN_OP_NONTENSOR;
    size_t n = 0;
    for (size_t k = 0; sn_op_row(k); k++)
        for (const sn_op *op = sn_op_row(k); op->name; op++) {
            if (!(op->flags & SN_OP_ELEMENTWISE))
                continue;
            n++;
            CHECK_MSG(op->min_out == 1 && op->max_out == 1, "%s", op->name);
            CHECK_MSG(!(op->flags & others), "%s", op->name);
        }
    CHECK(n > 70);
}

TEST_MAIN()
