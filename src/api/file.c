/* SPDX-License-Identifier: Apache-2.0 */
/* Files for programs around the library. */
#include "base/file.h"

#include "api/internal.h"
#include "sonde/experimental/file.h"

sonde_status sonde_file_write(const char *path, const void *data, size_t bytes, sonde_error *err)
{
    SN_REQUIRE(path, err);
    if (bytes)
        SN_REQUIRE(data, err);
    return sn_file_write(path, data, bytes, err);
}

sonde_status sonde_file_read(sonde_context *context, const char *path, size_t most,
                             sonde_value **bytes, sonde_error *err)
{
    SN_REQUIRE(bytes, err);
    *bytes = NULL;
    SN_REQUIRE(path, err);
    sonde_context *c = NULL;
    SN_TRY(sn_api_context(context, &c, err));
    sn_file f;
    sonde_status st = sn_file_read(&f, path, most ? most : SIZE_MAX, &c->alloc, err);
    if (st == SONDE_OK) {
        const int64_t n = (int64_t)f.bytes;
        st = sonde_tensor_create(c, SONDE_DTYPE_U8, &n, 1, f.data, f.bytes, bytes, err);
        sn_file_close(&f);
    }
    sonde_context_release(c);
    return st;
}
