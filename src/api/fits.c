/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a run fits into memory, told from the shapes of its inputs alone: who has to make large
 * inputs first should not learn it from the run. */
#include "api/internal.h"
#include "plan/binding.h"
#include "sonde/experimental/inspect.h"

/* A tensor without contents: a binding looks at nothing but its type. */
static sonde_status set_shape(sonde_value *v, const sonde_input_shape *shape, sonde_error *err)
{
    size_t bytes = sn_dtype_bytes(shape->dtype);
    SN_REQUIRE(shape->name, err);
    if (shape->rank > 0)
        SN_REQUIRE(shape->dims, err);
    if (shape->rank > SN_MAX_RANK)
        return sn_fail(err, SONDE_INVALID_ARGUMENT,
                       "input '%s' has rank %zu; at most %d is "
                       "supported",
                       shape->name, shape->rank, SN_MAX_RANK);
    v->slot.kind = SN_KIND_TENSOR;
    v->slot.t.dtype = shape->dtype;
    v->slot.t.rank = (int)shape->rank;
    for (size_t d = 0; d < shape->rank; d++) {
        const int64_t n = shape->dims[d];
        if (n < 0)
            return sn_fail(err, SONDE_INVALID_ARGUMENT, "dimension %zu of input '%s' is negative",
                           d, shape->name);
        v->slot.t.dims[d] = n;
        if (!sn_size_mul(bytes, (size_t)n, &bytes))
            return sn_fail(err, SONDE_LIMIT, "input '%s' is too large", shape->name);
    }
    v->slot.t.bytes = bytes;
    return SONDE_OK;
}

typedef struct shapes {
    sonde_value *values, **pointers;
    const char **names;
    size_t n, bytes;
} shapes;

static sonde_status set_shapes(shapes *s, const sonde_input_shape *inputs, sonde_error *err)
{
    for (size_t i = 0; i < s->n; i++) {
        SN_TRY(set_shape(&s->values[i], &inputs[i], err));
        s->pointers[i] = &s->values[i];
        s->names[i] = inputs[i].name;
        if (!sn_size_add(s->bytes, s->values[i].slot.t.bytes, &s->bytes))
            return sn_fail(err, SONDE_LIMIT, "the inputs are too large");
    }
    return SONDE_OK;
}

sonde_status sonde_session_fits(sonde_session *session, const sonde_input_shape *inputs,
                                size_t input_count, sonde_error *err)
{
    SN_REQUIRE(session, err);
    if (input_count > 0)
        SN_REQUIRE(inputs, err);
    sn_arena scratch;
    sn_arena_init(&scratch, &session->model->context->alloc);
    shapes s = {.values = SN_NEW_N(&scratch, sonde_value, input_count + 1),
                .pointers = SN_NEW_N(&scratch, sonde_value *, input_count + 1),
                .names = SN_NEW_N(&scratch, const char *, input_count + 1),
                .n = input_count};
    sn_binding *bound = NULL;
    sonde_status st = s.values && s.pointers && s.names
                          ? set_shapes(&s, inputs, err)
                          : sn_fail_memory(err, input_count * sizeof *s.values);
    if (st == SONDE_OK)
        st = sn_api_bind(session, s.names, s.pointers, input_count, &bound, err);
    if (st == SONDE_OK)
        st = sn_binding_fits(bound, s.bytes, err);
    if (bound)
        sn_binding_unref(bound);
    sn_arena_free(&scratch);
    return st;
}
