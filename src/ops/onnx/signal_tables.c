/* SPDX-License-Identifier: Apache-2.0 */
/* HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix: tables that signal models begin
 * with. Their sizes are values of scalars; with constant scalars they fold away. */
#include "compute/signal_tables.h"
#include "compute/element.h"
#include "ops/shared/checks.h"

typedef struct table_params {
    sn_window_kind kind;
    bool periodic;
    sn_dtype dtype;
} table_params;

static sonde_status prepare_dtype(sn_prep *p, sn_dtype *out)
{
    int64_t number;
    SN_TRY(sn_prep_int(p, "output_datatype", SONDE_DTYPE_F32, &number));
    if (!sn_dtype_valid(number))
        return sn_prep_fail(p, "output_datatype %lld is unknown", (long long)number);
    *out = (sn_dtype)number;
    if (!sn_is_common_float(*out) && (!sn_dtype_is_int(*out) || sn_dtype_bits(*out) < 8))
        return sn_prep_fail(p, "output_datatype %s is not allowed", sn_dtype_name(*out));
    return SONDE_OK;
}

static sonde_status prepare_window(sn_prep *p, sn_window_kind kind)
{
    table_params *r = p->params;
    int64_t periodic;
    r->kind = kind;
    SN_TRY(sn_prep_int(p, "periodic", 1, &periodic));
    r->periodic = periodic != 0;
    return prepare_dtype(p, &r->dtype);
}

static sonde_status prepare_hann(sn_prep *p)
{
    return prepare_window(p, SN_WINDOW_HANN);
}
static sonde_status prepare_hamming(sn_prep *p)
{
    return prepare_window(p, SN_WINDOW_HAMMING);
}
static sonde_status prepare_blackman(sn_prep *p)
{
    return prepare_window(p, SN_WINDOW_BLACKMAN);
}

static sonde_status infer_window(sn_infer *c)
{
    const table_params *r = c->params;
    sn_dim n;
    SN_TRY(sn_check_integer(c, 0, &n));
    return sn_infer_bounded(c, 0, r->dtype, &n, 1);
}

static sonde_status run_window(const sn_step *s, sn_frame *f)
{
    const table_params *r = s->params;
    const sn_tensor *y = sn_out(s, f, 0);
    sn_window_run(r->kind, r->periodic, y->dtype, y->data, y->dims[0]);
    return SONDE_OK;
}

#define WINDOW(NAME, PREPARE)                                                                      \
    {                                                                                              \
        .name = NAME, .domain = "", .since = 17, .min_in = 1, .max_in = 1, .min_out = 1,           \
        .max_out = 1, .params_size = sizeof(table_params), .prepare = PREPARE,                     \
        .infer = infer_window, .run = run_window, .types = "i32 i64"                               \
    }
const sn_op sn_op_hann_window[] = {WINDOW("HannWindow", prepare_hann), {.name = NULL}};
const sn_op sn_op_hamming_window[] = {WINDOW("HammingWindow", prepare_hamming), {.name = NULL}};
const sn_op sn_op_blackman_window[] = {WINDOW("BlackmanWindow", prepare_blackman), {.name = NULL}};

/* ------------------------------------------------------------------ MelWeightMatrix */
enum { BINS, LENGTH, RATE, LOW, HIGH };

static sonde_status prepare_mel(sn_prep *p)
{
    table_params *r = p->params;
    return prepare_dtype(p, &r->dtype);
}

static sonde_status infer_mel(sn_infer *c)
{
    const table_params *r = c->params;
    sn_dim bins, length, rate;
    SN_TRY(sn_check_integer(c, BINS, &bins));
    SN_TRY(sn_check_integer(c, LENGTH, &length));
    SN_TRY(sn_check_integer(c, RATE, &rate));
    SN_TRY(sn_check_float(c, LOW));
    SN_TRY(sn_check_float(c, HIGH));
    if (sn_dim_known(length) && (length < 0 || length > INT32_MAX))
        return sn_infer_fail(c, "dft_length is %lld, which is invalid", (long long)length);
    const sn_dim dims[2] = {sn_dim_known(length) ? length / 2 + 1 : SN_DIM_UNKNOWN, bins};
    return sn_infer_bounded(c, 0, r->dtype, dims, 2);
}

static sonde_status run_mel(const sn_step *s, sn_frame *f)
{
    const sn_tensor *y = sn_out(s, f, 0);
    double v[5];
    for (uint32_t i = 0; i < 5; i++) {
        const sn_tensor *t = sn_in(s, f, i);
        if (sn_tensor_count(t) != 1)
            return sn_run_fail(s, f, "input %u must be one number", i);
        v[i] = sn_elem_f64(t->dtype, t->data, 0);
    }
    if (v[RATE] <= 0)
        return sn_run_fail(s, f, "the sample rate must be positive");
    const sn_mel_bank m = {.rows = y->dims[0],
                           .bands = y->dims[1],
                           .dft_length = v[LENGTH],
                           .sample_rate = v[RATE],
                           .low = v[LOW],
                           .high = v[HIGH]};
    sn_mel_bank_run(&m, y->dtype, y->data);
    return SONDE_OK;
}

const sn_op sn_op_mel_weight_matrix[] = {{.name = "MelWeightMatrix",
                                          .domain = "",
                                          .since = 17,
                                          .min_in = 5,
                                          .max_in = 5,
                                          .min_out = 1,
                                          .max_out = 1,
                                          .params_size = sizeof(table_params),
                                          .prepare = prepare_mel,
                                          .infer = infer_mel,
                                          .run = run_mel,
                                          .types = "i32 i64"},
                                         {.name = NULL}};
