/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the public API: versions, status and type names, lists of passes, formats and
 * categories. */
#include <stdio.h>

#include "api/internal.h"
#include "findings/plain_kernel.h"
#include "passes/pass.h"
#include "sonde/experimental/inspect.h"

const char *sonde_version(void)
{
    return SONDE_VERSION_TEXT;
}

const char *sonde_status_text(sonde_status status)
{
    switch (status) {
#define CASE(name, number, text)                                                                   \
    case SONDE_##name:                                                                             \
        return text;
        SONDE_STATUS_LIST(CASE)
#undef CASE
    }
    return "unknown status";
}

/* Any number may come in through an enum of a public API. */
static sn_dtype checked(sonde_dtype dtype)
{
    return sn_dtype_valid((int64_t)dtype) ? dtype : SONDE_DTYPE_UNDEFINED;
}

const char *sonde_dtype_text(sonde_dtype dtype)
{
    return sn_dtype_name(checked(dtype));
}

const char *sonde_precision_text(sonde_precision precision)
{
    return sn_precision_name(precision);
}

const char *sonde_dtype_onnx_text(sonde_dtype dtype)
{
    return sn_dtype_onnx_name(checked(dtype));
}

size_t sonde_dtype_bytes(sonde_dtype dtype)
{
    return sn_dtype_bytes(checked(dtype));
}

const char *sn_api_onnx_type(const sn_type *type, char *buf, size_t cap)
{
    static const char *const words[] = {
        [SN_KIND_SEQUENCE] = "seq(", [SN_KIND_OPTIONAL] = "optional(", [SN_KIND_MAP] = "map("};
    size_t n = 0, depth = 0;
    for (; type && type->kind != SN_KIND_NONE && n < cap; type = type->elem, depth++) {
        if (type->kind == SN_KIND_TENSOR) {
            n += (size_t)snprintf(buf + n, cap - n, "tensor(%s)", sn_dtype_onnx_name(type->dtype));
            break;
        }
        n += (size_t)snprintf(buf + n, cap - n, "%s", words[type->kind]);
        if (type->kind == SN_KIND_MAP && n < cap)
            n += (size_t)snprintf(buf + n, cap - n, "%s,", sn_dtype_onnx_name(type->dtype));
    }
    for (; depth > 0 && n + 1 < cap; depth--)
        buf[n++] = ')';
    buf[n < cap ? n : cap - 1] = '\0';
    return buf;
}

const char *sonde_pass_name(size_t index)
{
    const sn_pass *pass = sn_pass_row(index);
    return pass ? pass->name : NULL;
}

const char *sonde_pass_summary(size_t index)
{
    const sn_pass *pass = sn_pass_row(index);
    return pass ? pass->summary : NULL;
}

int sonde_pass_reads_weights(size_t index)
{
    const sn_pass *pass = sn_pass_row(index);
    return pass && pass->reads_weights;
}

int sonde_kernel_is_plain(const char *kernel)
{
    return sn_kernel_is_plain(kernel);
}

const char *sonde_format_suffix(size_t index)
{
    const sn_exporter *exporter = sn_exporter_row(index);
    return exporter ? exporter->suffix : NULL;
}

const char *sonde_category_name(size_t index)
{
    return index < SN_CAT_COUNT ? sn_prof_cat_name((sn_prof_cat)index) : NULL;
}
