/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of recurrent cells. */
#include "rows.h"

/* What one case reads and writes; weights are panels of the row's block. */
typedef struct step {
    sn_f32_cell t;
    guarded x, w, h, bias, c, y;
} step;

static void step_free(step *s)
{
    guard_free(&s->x), guard_free(&s->w), guard_free(&s->h);
    guard_free(&s->bias), guard_free(&s->c), guard_free(&s->y);
}

static step step_new(size_t rows, size_t units, size_t gates, unsigned block, bool at_end)
{
    const size_t panels = (units + block - 1) / block, gap = rnd(0, 3);
    step s = {.x = guard_floats(rows * (gates * units + gap), at_end),
              .w = guard_floats(gates * panels * block * units, at_end),
              .h = guard_floats(rows * (units + gap), at_end),
              .bias = guard_floats(units, at_end),
              .c = guard_floats(rows * units, at_end),
              .y = guard_floats(rows * (units + gap), at_end)};
    s.t = (sn_f32_cell){.x = s.x.data,
                        .w = s.w.data,
                        .h = s.h.data,
                        .bias = test_rand() % 2 ? s.bias.data : NULL,
                        .c = gates == 4 ? s.c.data : NULL,
                        .y = s.y.data,
                        .rows = rows,
                        .units = units,
                        .to = units,
                        .last_first = test_rand() % 2,
                        .block = block,
                        .x_row = (ptrdiff_t)(gates * units + gap),
                        .x_gate = (ptrdiff_t)units,
                        .w_gate = (ptrdiff_t)(panels * block * units),
                        .h_row = (ptrdiff_t)(units + gap),
                        .c_row = (ptrdiff_t)units,
                        .y_row = (ptrdiff_t)(units + gap)};
    fill(s.x.data, rows * (gates * units + gap), NONE);
    fill(s.w.data, gates * panels * block * units, NONE);
    fill(s.h.data, rows * (units + gap), NONE);
    fill(s.bias.data, units, NONE);
    fill(s.c.data, rows * units, NONE);
    memset(s.y.data, 0, rows * (units + gap) * sizeof(float));
    return s;
}

/* Sums of many terms lie far apart where they cancel, and a gate passes that on: the error of a
 * result is counted in units of the sum of absolute values. */
static float widest(const step *s)
{
    float most = 1;
    for (size_t r = 0; r < s->t.rows; r++) {
        float sum = 1;
        for (size_t k = 0; k < s->t.units; k++)
            sum += 8 * fabsf(s->h.data[(ptrdiff_t)r * s->t.h_row + (ptrdiff_t)k]);
        most = sum > most ? sum : most;
    }
    return most;
}

static void compare(const sn_kernel_row *row, const sn_kernel_row *ref, step *s, size_t gates)
{
    const size_t rows = s->t.rows, units = s->t.units, n = rows * (size_t)s->t.y_row;
    guarded c = guard_floats(rows * units, false), y = guard_floats(n, false),
            scale = guard_floats(n + rows * units, false);
    char info[80];
    snprintf(info, sizeof info, "%zu rows of %zu units, %zu … %zu", rows, units, s->t.from,
             s->t.to);
    for (size_t i = 0; i < n + rows * units; i++)
        scale.data[i] = widest(s);
    memcpy(c.data, s->c.data, rows * units * sizeof(float));
    memset(y.data, 0, n * sizeof(float));
    sn_f32_cell want = s->t;
    want.c = gates == 4 ? c.data : NULL;
    want.y = y.data;
    ((sn_f32_cell_fn *)ref->fn)(&want);
    ((sn_f32_cell_fn *)row->fn)(&s->t);
    same("state", row, info, s->y.data, y.data, scale.data, n);
    same("cell", row, info, s->c.data, c.data, scale.data, rows * units);
    guard_free(&c), guard_free(&y), guard_free(&scale);
}

static void check_cell(const sn_kernel_row *row, const sn_kernel_row *ref)
{
    const size_t gates = strcmp(row->slot->name, "f32_lstm") == 0 ? 4 : 3;
    for (int i = 0; i < 200 && !test_errors; i++) {
        const unsigned block = row->geometry.block;
        const size_t units = i < 70 ? (size_t)i + 1 : rnd(1, 150), rows = rnd(1, 9);
        step s = step_new(rows, units, gates, block, i % 2);
        const size_t blocks = (units + block - 1) / block;
        if (i % 3 == 0) { /* a part of the units: the others stay as they are */
            s.t.from = rnd(0, blocks) * block;
            s.t.to = rnd(s.t.from / block, blocks) * block;
            s.t.to = s.t.to < units ? s.t.to : units;
        }
        compare(row, ref, &s, gates);
        step_free(&s);
    }
}

TEST(every_cell_kernel_matches_its_reference)
{
    static const row_checker checkers[] = {{"sn_f32_cell", check_cell}, {NULL, NULL}};
    check_family("cells", checkers);
}

TEST(a_nan_in_the_state_reaches_every_unit_and_no_other_row)
{
    for (size_t k = 0; sn_kernel_row_get(k); k++) {
        const sn_kernel_row *row = sn_kernel_row_get(k);
        sn_cpu cpu;
        CHECK(sn_cpu_detect(&cpu, NULL, NULL) == SONDE_OK);
        if (strcmp(row->slot->signature, "sn_f32_cell") != 0 || (row->flags & ~cpu.found))
            continue;
        step s = step_new(5, 19, strcmp(row->slot->name, "f32_lstm") == 0 ? 4 : 3,
                          row->geometry.block, false);
        s.h.data[3 * s.t.h_row + 7] = NAN;
        ((sn_f32_cell_fn *)row->fn)(&s.t);
        for (size_t r = 0; r < 5; r++)
            for (size_t u = 0; u < 19; u++)
                CHECK_EQ(isnan(s.y.data[(ptrdiff_t)r * s.t.y_row + (ptrdiff_t)u]) != 0, r == 3);
        step_free(&s);
    }
}

TEST_MAIN()
