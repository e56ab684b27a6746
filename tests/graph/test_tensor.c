/* SPDX-License-Identifier: Apache-2.0 */
/* Slots, lists and buffers: shared by count, copied when borrowed, released to the last byte. */
#include "test.h"

#include "graph/type.h"

static sn_allocator alloc;
static sonde_error err;

#define CHECK_NO_LEAK() CHECK_EQ(atomic_load(&alloc.live_bytes), 0)

static void fill(sn_slot *s)
{
    int64_t dims[] = {2, 3};
    sn_allocator_init_system(&alloc);
    memset(s, 0, sizeof *s);
    if (sn_slot_new_tensor(s, SONDE_DTYPE_F32, dims, 2, &alloc, &err) == SONDE_OK)
        for (int i = 0; i < 6; i++)
            ((float *)s->t.data)[i] = (float)i;
}

TEST(sharing_an_owned_tensor_is_one_count)
{
    sn_slot a, b = {0};
    fill(&a);
    CHECK_OK(sn_slot_share(&b, &a, true, &alloc, &err));
    CHECK(a.t.data == b.t.data);
    CHECK_EQ(atomic_load(&a.t.owner->refs), 2);
    sn_slot_clear(&a);
    CHECK(((float *)b.t.data)[5] == 5.0f);
    sn_slot_clear(&b);
    CHECK_EQ(b.kind, SN_KIND_NONE);
    CHECK_NO_LEAK();
}

TEST(a_borrowed_tensor_is_copied_when_it_must_be_owned)
{
    sn_allocator_init_system(&alloc);
    float memory[2] = {1, 2};
    sn_slot a = {
        .kind = SN_KIND_TENSOR,
        .t = {.dtype = SONDE_DTYPE_F32, .rank = 1, .dims = {2}, .data = memory, .bytes = 8}};
    sn_slot b = {0}, c = {0};
    CHECK_OK(sn_slot_share(&b, &a, true, &alloc, &err));
    CHECK_OK(sn_slot_share(&c, &a, false, &alloc, &err));
    CHECK(b.t.data != (void *)memory && c.t.data == (void *)memory);
    memory[1] = 9;
    CHECK(((float *)b.t.data)[1] == 2);
    sn_slot_clear(&b);
    sn_slot_clear(&c);
    CHECK_NO_LEAK();
}

TEST(a_string_tensor_lives_in_one_buffer)
{
    sn_allocator_init_system(&alloc);
    char text[] = "hello";
    sonde_string in[] = {{text, 5}, {"", 0}, {text + 1, 2}};
    int64_t dims[] = {3};
    sn_slot s = {0}, copy = {0};
    CHECK_OK(sn_slot_new_strings(&s, dims, 1, in, &alloc, &err));
    memset(text, 'x', 5);
    const sonde_string *out = s.t.data;
    CHECK(out[0].size == 5 && memcmp(out[0].data, "hello", 5) == 0);
    CHECK(out[1].size == 0 && out[2].size == 2 && memcmp(out[2].data, "el", 2) == 0);
    CHECK_OK(sn_slot_share(&copy, &s, true, &alloc, &err));
    sn_slot_clear(&s);
    sn_slot borrowed = copy;
    borrowed.t.owner = NULL;
    CHECK_OK(sn_slot_share(&s, &borrowed, true, &alloc, &err));
    sn_slot_clear(&copy);
    CHECK(memcmp(((sonde_string *)s.t.data)[0].data, "hello", 5) == 0);
    sn_slot_clear(&s);
    CHECK_OK(sn_slot_new_tensor(&s, SONDE_DTYPE_STRING, dims, 1, &alloc, &err));
    CHECK_EQ(((sonde_string *)s.t.data)[2].size, 0);
    sn_slot_clear(&s);
    CHECK_NO_LEAK();
}

TEST(lists_share_their_elements_and_nest)
{
    sn_slot a;
    fill(&a);
    sn_list *l = sn_list_new(&alloc, 0), *copy = NULL;
    CHECK(l);
    for (int i = 0; i < 5; i++)
        CHECK_OK(sn_list_push(l, &a, &err));
    CHECK_EQ(atomic_load(&a.t.owner->refs), 6);
    sn_slot nested = {.kind = SN_KIND_SEQUENCE, .list = l};
    CHECK_OK(sn_list_with(&copy, l, 5, &nested, &err));
    CHECK_EQ(l->n, 5);
    CHECK_EQ(copy->n, 6);
    sn_slot_clear(&a);
    sn_slot_clear(&nested);
    CHECK(copy->items[5].list->items[4].t.rank == 2);
    sn_list_unref(copy);
    CHECK_NO_LEAK();
}

/* "021": the first numbers of a list's elements. */
static const char *list_text(const sn_list *l)
{
    static char text[64];
    for (size_t i = 0; i < l->n; i++)
        text[i] = (char)('0' + l->items[i].t.dims[0]);
    text[l->n] = 0;
    return text;
}

static void one_of(sn_slot *s, int64_t n)
{
    *s = (sn_slot){0};
    if (sn_slot_new_tensor(s, SONDE_DTYPE_U8, &n, 1, &alloc, &err) != SONDE_OK)
        abort();
}

TEST(a_list_stays_as_it_is_while_others_are_made_of_it)
{
    sn_slot one[10];
    for (int i = 0; i < 10; i++)
        one_of(&one[i], i);
    sn_list *base = sn_list_new(&alloc, 0), *a, *b, *c, *first, *last, *middle, *front;
    CHECK(base);
    CHECK_OK(sn_list_push(base, &one[0], &err));
    CHECK_OK(sn_list_push(base, &one[1], &err));
    CHECK_OK(sn_list_with(&a, base, 2, &one[2], &err)); /* takes the next place */
    CHECK_OK(sn_list_with(&b, base, 2, &one[3], &err)); /* which is not free any more */
    CHECK_OK(sn_list_with(&c, a, 3, &one[4], &err));
    CHECK_OK(sn_list_with(&front, c, 0, &one[5], &err));
    CHECK_OK(sn_list_without(&first, c, 0, &err));
    CHECK_OK(sn_list_without(&last, c, 3, &err));
    CHECK_OK(sn_list_without(&middle, c, 1, &err));
    CHECK_STR(list_text(base), "01");
    CHECK_STR(list_text(a), "012");
    CHECK_STR(list_text(b), "013");
    CHECK_STR(list_text(c), "0124");
    CHECK_STR(list_text(front), "50124");
    CHECK_STR(list_text(first), "124");
    CHECK_STR(list_text(last), "012");
    CHECK_STR(list_text(middle), "024");
    sn_list *more, *none, *empty;
    CHECK_OK(sn_list_with(&more, last, 3, &one[6], &err));
    CHECK_OK(sn_list_with(&none, first, 3, &one[7], &err));
    CHECK_STR(list_text(more), "0126");
    CHECK_STR(list_text(none), "1247");
    CHECK_STR(list_text(c), "0124");
    sn_list_unref(none);
    CHECK_OK(sn_list_without(&none, base, 1, &err));
    CHECK_OK(sn_list_without(&empty, none, 0, &err));
    CHECK_STR(list_text(empty), "");
    sn_list *all[] = {base, a, b, c, first, last, middle, front, more, none, empty};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        sn_list_unref(all[i]);
    for (int i = 0; i < 10; i++)
        sn_slot_clear(&one[i]);
    CHECK_NO_LEAK();
}

static size_t handed_out;
static void *(*system_alloc)(sn_allocator *, size_t);
static void *counting_alloc(sn_allocator *self, size_t bytes)
{
    handed_out += bytes;
    return system_alloc(self, bytes);
}

TEST(appending_and_taking_off_again_and_again_takes_memory_in_proportion)
{
    enum { MANY = 20000 };
    sn_slot one;
    one_of(&one, 1);
    sn_list *l = sn_list_new(&alloc, 0), *next;
    CHECK(l);
    system_alloc = alloc.alloc;
    alloc.alloc = counting_alloc;
    handed_out = 0;
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(sn_list_with(&next, l, l->n, &one, &err));
        sn_list_unref(l);
        l = next;
    }
    CHECK_EQ(l->n, MANY);
    CHECK_MSG(handed_out < (size_t)MANY * 8 * sizeof(sn_slot), "%zu bytes", handed_out);
    handed_out = 0;
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(sn_list_without(&next, l, i % 2 ? 0 : l->n - 1, &err));
        sn_list_unref(l);
        l = next;
    }
    CHECK_EQ(l->n, 0);
    CHECK_MSG(handed_out < (size_t)MANY * sizeof(sn_slot), "%zu bytes", handed_out);
    alloc.alloc = system_alloc;
    sn_list_unref(l);
    sn_slot_clear(&one);
    CHECK_NO_LEAK();
}

TEST(sizes_never_overflow)
{
    size_t bytes;
    int64_t n, big[] = {INT64_MAX, 2}, zero[] = {0, INT64_MAX, INT64_MAX}, neg[] = {-1};
    int64_t most[] = {SN_MAX_ELEMS, 1}, more[] = {SN_MAX_ELEMS, 2};
    CHECK(sn_dims_count(most, 2, &n) && n == SN_MAX_ELEMS);
    CHECK(!sn_dims_count(more, 2, &n));
    CHECK(!sn_dims_count(big, 2, &n));
    CHECK(!sn_dims_count(neg, 1, &n));
    CHECK(!sn_dims_count(zero, 3, &n)); /* the rest must still be sane */
    CHECK(!sn_tensor_bytes(SONDE_DTYPE_F32, big, 1, &bytes));
    int64_t dims[] = {1, 20, 3, 3};
    CHECK(sn_tensor_bytes(SONDE_DTYPE_F32, dims, 4, &bytes) && bytes == 20 * 9 * 4);
    CHECK(sn_tensor_bytes(SONDE_DTYPE_F64, NULL, 0, &bytes) && bytes == 8);
}

static int released;
static void on_release(void *user, void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
    *(int *)user += 1;
}

TEST(foreign_memory_is_released_once)
{
    sn_allocator_init_system(&alloc);
    int x = 0;
    released = 0;
    sn_buffer *b = sn_buffer_wrap(&alloc, &x, sizeof x, on_release, &released);
    CHECK(b);
    sn_buffer_unref(sn_buffer_ref(b));
    CHECK_EQ(released, 0);
    sn_buffer_unref(b);
    CHECK_EQ(released, 1);
    sn_buffer_unref(NULL);
    CHECK_NO_LEAK();
}

TEST(parts_are_read_as_one_tensor)
{
    float a[6] = {0, 1, 2, 10, 11, 12}, b[2] = {3, 13}, c[3] = {20, 21, 22};
    const double scale[2] = {1, 2};
    const sn_tensor ta = {
        .dtype = SONDE_DTYPE_F32, .rank = 2, .dims = {2, 3}, .data = a, .bytes = 24};
    const sn_tensor tb = {
        .dtype = SONDE_DTYPE_F32, .rank = 2, .dims = {2, 1}, .data = b, .bytes = 8};
    const sn_tensor tc = {
        .dtype = SONDE_DTYPE_F32, .rank = 2, .dims = {1, 3}, .data = c, .bytes = 12};
    const sn_tensor *const columns[2] = {&ta, &tb}, *const rows[2] = {&ta, &tc};
    const sn_tensor_parts wide = {1, 2, columns}, tall = {0, 2, rows};
    const sn_tensor w = {.dtype = SONDE_DTYPE_F32,
                         .rank = 2,
                         .dims = {2, 4},
                         .bytes = 32,
                         .scale = scale,
                         .parts = &wide};
    const sn_tensor t = {
        .dtype = SONDE_DTYPE_F32, .rank = 2, .dims = {3, 3}, .bytes = 36, .parts = &tall};
    const float want_w[8] = {0, 1, 2, 3, 20, 22, 24, 26};
    const float want_t[9] = {0, 1, 2, 10, 11, 12, 20, 21, 22};
    CHECK(!sn_tensor_is_readable(&w) && !sn_tensor_is_readable(&t));
    for (int64_t first = 0; first < 9; first++)
        for (int64_t count = 0; first + count <= 9; count++) {
            float got[9] = {0};
            sn_tensor_read(&t, first, count, got);
            CHECK(memcmp(got, want_t + first, (size_t)count * 4) == 0);
            if (first + count > 8)
                continue;
            sn_tensor_read(&w, first, count, got);
            CHECK(memcmp(got, want_w + first, (size_t)count * 4) == 0);
        }
}

TEST(types_have_a_text)
{
    char buf[64];
    const char *symbols[] = {"N", "seq"};
    sn_dim dims[] = {1, sn_dim_symbol(2), SN_DIM_UNKNOWN};
    sn_type t = {.kind = SN_KIND_TENSOR, .dtype = SONDE_DTYPE_F32, .rank = 3, .dims = dims};
    CHECK_STR(sn_type_text(&t, symbols, buf, sizeof buf), "f32[1, seq, ?]");
    CHECK_STR(sn_type_text(&t, NULL, buf, sizeof buf), "f32[1, s2, ?]");
    sn_type seq = {.kind = SN_KIND_SEQUENCE, .elem = &t};
    CHECK_STR(sn_type_text(&seq, symbols, buf, sizeof buf), "seq(f32[1, seq, ?])");
    CHECK_STR(sn_type_text(&seq, symbols, buf, 8), "seq(f32");
    t.rank = -1;
    CHECK_STR(sn_type_text(&t, NULL, buf, sizeof buf), "f32[...]");
    CHECK(!sn_type_is_concrete(&t));
    t.rank = 3;
    CHECK(sn_type_same_shape(&(sn_type){.kind = SN_KIND_TENSOR, .rank = 2, .dims = dims},
                             &(sn_type){.kind = SN_KIND_TENSOR, .rank = 2, .dims = dims}));
    CHECK(!sn_type_same_shape(&t, &t)); /* an unknown equals nothing */
}

TEST(bytes_follow_from_the_form)
{
    const sn_layout blocks = sn_layout_blocks(16), last = {SN_LAYOUT_LAST, 4};
    int64_t n, dims[] = {1, 21, 3, 3}, big[] = {1, INT64_MAX}, one[] = {7};
    sn_fact f = {.type = {SN_KIND_TENSOR, SONDE_DTYPE_F32, 4, dims, NULL}};
    size_t bytes;
    char text[48];
    CHECK(sn_form_is_native(f.form) && sn_fact_bytes(&f, &bytes) && bytes == 21 * 9 * 4);
    CHECK_STR(sn_form_text(f.form, text), "");
    f.form.layout = blocks;
    CHECK(sn_fact_bytes(&f, &bytes) && bytes == 32 * 9 * 4 && sn_fact_block(&f) == 16);
    CHECK_STR(sn_form_text(f.form, text), "blocks of 16");
    f.form.dtype = SONDE_DTYPE_BF16;
    CHECK(sn_fact_bytes(&f, &bytes) && bytes == 32 * 9 * 2);
    CHECK(sn_fact_stored(&f) == SONDE_DTYPE_BF16 && f.type.dtype == SONDE_DTYPE_F32);
    CHECK_STR(sn_form_text(f.form, text), "bf16, blocks of 16");
    f.form.layout = last;
    CHECK(sn_fact_bytes(&f, &bytes) && bytes == 24 * 9 * 2 && sn_fact_block(&f) == 0);
    CHECK_STR(sn_form_text(f.form, text), "bf16, channels last, pitch of 4");
    CHECK(!sn_layout_count(blocks, big, 2, &n));
    CHECK(sn_layout_count(blocks, one, 1, &n) && n == 7); /* no channels, no blocks */
}

TEST_MAIN()
