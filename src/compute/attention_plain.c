/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one query with plain loops, written once for float and double. */
#include <math.h>
#include <string.h>

#include "compute/attention.h"

#define T       float
#define QUERY   sn_attention_query_f32
#define NAME(x) x##_f32
#define EXP(x)  expf(x)
#define TANH(x) tanhf(x)
#include "compute/attention_plain.tmpl.h"
#undef T
#undef QUERY
#undef NAME
#undef EXP
#undef TANH

#define T       double
#define QUERY   sn_attention_query_f64
#define NAME(x) x##_f64
#define EXP(x)  exp(x)
#define TANH(x) tanh(x)
#include "compute/attention_plain.tmpl.h"
