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
