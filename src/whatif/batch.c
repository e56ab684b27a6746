/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs with another batch. The batch is the first dimension of the first input, if the model
 * leaves it open; the other inputs that begin with the same dimension follow. */
#include "whatif/whatif.h"

/* The declared type of the k-th given input; NULL: it is none of the graph's inputs. */
static const sonde_type_info *declared(const sonde_session *s, const char *const *names, size_t k)
{
    for (size_t i = 0; i < s->n_inputs; i++)
        if (names ? strcmp(s->input_names[i], names[k]) == 0 : i == k)
            return &s->inputs[i];
    return NULL;
}

static bool is_open(const sonde_type_info *t)
{
    return t && t->kind == SONDE_KIND_TENSOR && t->rank > 0 && t->dims[0] < 0;
}

static bool counts_samples(const sonde_session *s, const char *const *names, size_t k)
{
    const sonde_type_info *t = declared(s, names, k), *first = &s->inputs[0];
    if (!is_open(t))
        return false;
    const char *a = t->dim_names[0], *b = first->dim_names[0];
    return t == first || (a && b && strcmp(a, b) == 0);
}

int64_t sn_batch_of(const sonde_session *s, const char *const *names, sonde_value *const *values,
                    size_t n, const char **reason)
{
    *reason = "the model has no inputs";
    if (!s->n_inputs)
        return 0;
    *reason = "the first dimension of the model's first input is fixed";
    if (!is_open(&s->inputs[0]))
        return 0;
    int64_t batch = 0;
    *reason = "no batch is known: the first input is not given";
    for (size_t k = 0; k < n; k++) {
        const sn_slot *slot = &values[k]->slot;
        if (!counts_samples(s, names, k))
            continue;
        if (slot->kind != SN_KIND_TENSOR || slot->t.rank < 1 || slot->t.dims[0] < 1 ||
            slot->t.dtype == SONDE_DTYPE_STRING) {
            *reason = "samples of the inputs cannot be repeated";
            return 0;
        }
        batch = slot->t.dims[0];
    }
    return batch;
}

static sonde_status repeat(const sn_tensor *t, int64_t batch, sonde_context *context,
                           sonde_value **out, sonde_error *err)
{
    int64_t dims[SN_MAX_RANK];
    size_t bytes = 0;
    memcpy(dims, t->dims, sizeof dims);
    dims[0] = batch;
    if (!sn_tensor_bytes(t->dtype, dims, t->rank, &bytes))
        return sn_fail(err, SONDE_LIMIT, "an input of %lld samples is too large", (long long)batch);
    SN_TRY(sonde_tensor_create(context, t->dtype, dims, (size_t)t->rank, NULL, bytes, out, err));
    const size_t sample = t->bytes / (size_t)t->dims[0];
    for (int64_t i = 0; i < batch && sample; i++)
        memcpy((char *)(*out)->slot.t.data + (size_t)i * sample,
               (const char *)t->data + (size_t)(i % t->dims[0]) * sample, sample);
    return SONDE_OK;
}

sonde_status sn_batch_values(const sonde_session *s, const char *const *names,
                             sonde_value *const *values, size_t n, int64_t batch,
                             sonde_context *context, sonde_value **out, sonde_error *err)
{
    for (size_t k = 0; k < n; k++) {
        if (batch && counts_samples(s, names, k))
            SN_TRY(repeat(&values[k]->slot.t, batch, context, &out[k], err));
        else
            out[k] = sonde_value_retain(values[k]);
    }
    return SONDE_OK;
}
