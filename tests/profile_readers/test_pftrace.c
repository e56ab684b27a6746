/* SPDX-License-Identifier: Apache-2.0 */
/* Our own trace read back: nothing is lost, and no cut and no changed byte does harm. */
#include "export/no_page.h"
#include "export/pftrace_stream.h"
#include "profile_readers/round_trip.h"
#include "test.h"

static const char *write_trace(const sn_profile *p, memory_sink *out)
{
    sonde_error err = {0};
    if (sn_exporter_for_path("x.pftrace")->write(p, memory_sink_init(out), &err) != SONDE_OK)
        abort();
    return out->text;
}

static void compare_tensors(const sn_prof_tensor *a, const sn_prof_tensor *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        CHECK(same_text(a[i].name, b[i].name) && same_text(a[i].dtype, b[i].dtype));
        CHECK(same_text(a[i].text, b[i].text));
        CHECK_EQ(a[i].rank, b[i].rank);
        for (int32_t d = 0; d < a[i].rank; d++)
            CHECK_EQ(a[i].dims[d], b[i].dims[d]);
        CHECK_EQ(a[i].constant, b[i].constant);
        CHECK(a[i].zeros == b[i].zeros);
        CHECK(same_text(a[i].port, b[i].port));
        CHECK_EQ(!a[i].port_dims, !b[i].port_dims);
        CHECK_EQ(a[i].port_rank, b[i].port_rank);
        for (int32_t d = 0; d < a[i].port_rank; d++)
            CHECK_EQ(a[i].port_dims[d], b[i].port_dims[d]);
    }
}

static void compare_steps(const sn_profile *a, const sn_profile *b)
{
    CHECK_EQ(a->steps.n, b->steps.n);
    for (size_t i = 0; i < a->steps.n; i++) {
        const sn_prof_step *x = &a->steps.data[i], *y = &b->steps.data[i];
        CHECK_EQ(x->table, y->table);
        CHECK_EQ(x->index, y->index);
        CHECK_EQ(x->threads, y->threads);
        CHECK(same_text(x->op_type, y->op_type) && same_text(x->name, y->name));
        CHECK(same_text(x->post_op, y->post_op) && same_text(x->kernel, y->kernel));
        CHECK(same_text(x->attributes, y->attributes));
        CHECK(x->flops == y->flops && x->bytes == y->bytes && x->bind_ns == y->bind_ns);
        CHECK(x->arithmetic == y->arithmetic);
        CHECK(x->folded == y->folded && x->dynamic == y->dynamic && x->control == y->control);
        CHECK(same_counts(&x->hw, &y->hw));
        CHECK_EQ(x->n_origins, y->n_origins);
        for (uint32_t k = 0; k < x->n_origins; k++)
            CHECK(same_text(x->origins[k].name, y->origins[k].name) &&
                  same_text(x->origins[k].op_type, y->origins[k].op_type));
        CHECK_EQ(x->n_inputs, y->n_inputs);
        CHECK_EQ(x->n_outputs, y->n_outputs);
        compare_tensors(x->inputs, y->inputs, x->n_inputs);
        compare_tensors(x->outputs, y->outputs, x->n_outputs);
    }
}

static void compare_spans(const sn_profile *a, const sn_profile *b)
{
    CHECK_EQ(a->spans.n, b->spans.n);
    for (size_t i = 0; i < a->spans.n; i++) {
        const sn_prof_span *x = &a->spans.data[i], *y = &b->spans.data[i];
        CHECK_EQ(x->id, y->id);
        CHECK_EQ(x->parent, y->parent);
        CHECK_EQ(x->cat, y->cat);
        CHECK_EQ(x->thread, y->thread);
        CHECK(x->start_ns == y->start_ns && x->dur_ns == y->dur_ns);
        CHECK(x->step == y->step && x->run == y->run && x->iteration == y->iteration);
        CHECK_EQ(x->instance, y->instance);
        CHECK_EQ(x->warmup, y->warmup);
        CHECK_EQ(x->bound, y->bound);
        CHECK_MSG(same_text(x->name, y->name), "span %zu: '%s', '%s'", i, x->name, y->name);
        CHECK(same_text(x->args, y->args) && same_text(x->category, y->category));
    }
}

static void compare_rest(const sn_profile *a, const sn_profile *b)
{
    CHECK(same_text(a->model_name, b->model_name) && same_text(a->version, b->version));
    CHECK(same_text(a->cpu_model, b->cpu_model) && same_text(a->cpu_level, b->cpu_level));
    CHECK_STR(a->precision, b->precision);
    CHECK(a->cores == b->cores && a->threads == b->threads && a->level == b->level);
    CHECK(a->pid == b->pid && a->start_wall_ns == b->start_wall_ns && a->dropped == b->dropped);
    CHECK(a->record_ns == b->record_ns && a->instance == b->instance);
    CHECK(same_machine(a, b));
    CHECK(same_origin(a, b));
    CHECK_EQ(a->threads_seen.n, b->threads_seen.n);
    for (size_t i = 0; i < a->threads_seen.n; i++) {
        CHECK_EQ(a->threads_seen.data[i].id, b->threads_seen.data[i].id);
        CHECK_EQ(a->threads_seen.data[i].os_tid, b->threads_seen.data[i].os_tid);
        CHECK_STR(a->threads_seen.data[i].name, b->threads_seen.data[i].name);
    }
    CHECK_EQ(a->counters.n, b->counters.n);
    for (size_t i = 0; i < a->counters.n; i++) {
        const sn_prof_counter *x = &a->counters.data[i], *y = &b->counters.data[i];
        CHECK(x->at_ns == y->at_ns && x->value == y->value && x->step == y->step);
        CHECK_STR(x->name, y->name);
    }
    CHECK(same_lives(a, b));
}

TEST(a_profile_comes_back_as_it_was)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    write_trace(p, &out);
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    CHECK_STR(q->note, "");
    compare_steps(p, q);
    compare_spans(p, q);
    compare_rest(p, q);
    /* And what is made of it is the same, letter by letter. */
    const sn_exporter *row;
    for (size_t k = 0; (row = sn_exporter_row(k)) != NULL; k++) {
        memory_sink first, second;
        if (is_missing(row))
            continue;
        CHECK_OK(row->write(p, memory_sink_init(&first), &err));
        CHECK_OK(row->write(q, memory_sink_init(&second), &err));
        CHECK_MSG(first.n == second.n && memcmp(first.text, second.text, first.n) == 0, "%s",
                  row->suffix);
        free(first.text);
        free(second.text);
    }
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(what_is_counted_after_a_step_was_told_is_kept)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_pftrace *t = NULL;
    sn_profile *p = rich_profile(failing_init(&m)), *q = NULL;
    sn_prof_usage usage = p->usage;
    sn_prof_step early = p->steps.data[0];
    early.hw = (sn_prof_hw){.calls = 1, .cycles = 5};
    p->usage.known = false; /* the process goes on as well */
    CHECK_OK(sn_pftrace_open(&t, memory_sink_init(&out), p, &m.a, &err));
    CHECK(sn_pftrace_step(t, &early) && sn_pftrace_step(t, &p->steps.data[1]));
    p->usage = usage;
    CHECK_OK(sn_pftrace_close(t, p, &err));
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    CHECK_EQ(q->steps.n, 2);
    CHECK(same_counts(&q->steps.data[0].hw, &p->steps.data[0].hw));
    CHECK_EQ(q->steps.data[1].hw.calls, 0);
    CHECK(same_machine(p, q));
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(a_trace_cut_at_any_byte_opens_up_to_the_cut)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m));
    write_trace(p, &out);
    size_t most = 0, opened = 0;
    for (size_t n = 0; n < out.n; n++) {
        /* A copy of the exact size: reading past its end is seen by the sanitizer. */
        char *cut = malloc(n ? n : 1);
        memcpy(cut, out.text, n);
        sonde_error err = {0};
        sn_profile *q = NULL;
        sonde_status st = sn_profile_read_bytes(cut, n, "cut.pftrace", &m.a, &q, &err);
        if (st == SONDE_OK) {
            opened++;
            CHECK_HAS(q->note, "truncated");
            CHECK_MSG(q->spans.n >= most, "%zu bytes: %zu spans after %zu", n, q->spans.n, most);
            most = q->spans.n;
            sn_prof_summary s;
            CHECK_OK(sn_profile_summarise(q, SN_BY_OP, &s, &err));
            sn_prof_summary_free(&s);
        } else {
            CHECK_EQ(st, SONDE_INVALID_ARGUMENT);
            CHECK_HAS(err.message, "cut.pftrace");
            CHECK_MSG(most == 0, "%zu bytes: %s", n, err.message);
        }
        sn_profile_free(q);
        free(cut);
    }
    CHECK_EQ(most, p->spans.n);
    CHECK(opened > out.n / 2);
    sn_profile_free(p);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(changed_bytes_do_no_harm)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m));
    write_trace(p, &out);
    for (int round = 0; round < 3000; round++) {
        char *bad = malloc(out.n);
        memcpy(bad, out.text, out.n);
        for (int k = 0; k < 3; k++)
            bad[test_rand() % out.n] = (char)test_rand();
        sonde_error err = {0};
        sn_profile *q = NULL;
        if (sn_profile_read_bytes(bad, out.n, "x", &m.a, &q, &err) == SONDE_OK) {
            const sn_exporter *row;
            for (size_t k = 0; round % 20 == 0 && (row = sn_exporter_row(k)) != NULL; k++) {
                memory_sink again;
                (void)row->write(q, memory_sink_init(&again), &err);
                free(again.text);
            }
        }
        sn_profile_free(q);
        free(bad);
    }
    sn_profile_free(p);
    free(out.text);
    CHECK_EQ(m.live, 0);
}

TEST(spans_that_arrive_out_of_order_are_put_in_order)
{
    failing_alloc m;
    sonde_error err = {0};
    memory_sink out;
    sn_profile *p = syn_tiny(failing_init(&m)), *q = NULL;
    for (size_t i = 0; i < p->spans.n / 2; i++) { /* as a stream may bring them: ends first */
        sn_prof_span swap = p->spans.data[i];
        p->spans.data[i] = p->spans.data[p->spans.n - 1 - i];
        p->spans.data[p->spans.n - 1 - i] = swap;
    }
    write_trace(p, &out);
    CHECK_OK(sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err));
    sn_prof_summary s;
    CHECK_OK(sn_profile_summarise(q, SN_BY_OP, &s, &err));
    CHECK_EQ(s.iterations, 2);
    CHECK(fabs(s.wall_ns.mean - 11e6) < 1);
    CHECK_STR(s.rows.data[0].name, "Conv");
    CHECK(fabs(s.rows.data[0].mean_ns - 7e6) < 1);
    sn_prof_summary_free(&s);
    sn_profile_free(p);
    sn_profile_free(q);
    free(out.text);
}

TEST(every_failing_allocation_is_told)
{
    failing_alloc m;
    memory_sink out;
    sn_profile *p = rich_profile(failing_init(&m));
    write_trace(p, &out);
    sn_profile_free(p);
    for (long fail = 0; fail < 100000; fail++) {
        sonde_error err = {0};
        sn_profile *q = NULL;
        m.calls = 0;
        m.fail_at = fail;
        sonde_status st = sn_profile_read_bytes(out.text, out.n, "x", &m.a, &q, &err);
        sn_profile_free(q);
        CHECK_EQ(m.live, 0);
        if (st == SONDE_OK)
            break;
        CHECK_EQ(st, SONDE_OUT_OF_MEMORY);
    }
    free(out.text);
}

TEST(other_files_are_named_in_the_message)
{
    failing_alloc m;
    sonde_error err = {0};
    sn_profile *q = NULL;
    failing_init(&m);
    CHECK_EQ(sn_profile_read_bytes("\x0A\x02hi", 4, "a.bin", &m.a, &q, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'a.bin' is not a profile");
    CHECK_HAS(err.message, "ONNX Runtime");
    CHECK(sn_profile_read_bytes("", 0, "empty", &m.a, &q, &err) != SONDE_OK);
    CHECK_EQ(sn_profile_read_bytes("\x1F\x8B\x08\x00", 4, "x.json.gz", &m.a, &q, &err),
             SONDE_INVALID_ARGUMENT);
    CHECK_HAS(err.message, "'x.json.gz' is compressed");
    CHECK_EQ(sn_profile_read_file("/nonexistent.pftrace", true, &m.a, &q, &err), SONDE_NOT_FOUND);
    CHECK_HAS(err.message, "/nonexistent.pftrace");
    CHECK(q == NULL);
    CHECK_EQ(m.live, 0);
}

TEST_MAIN()
