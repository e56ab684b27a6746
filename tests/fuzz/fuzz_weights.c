/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of packed weights, and bytes written over a file that is right: only an
 * unchanged one may be taken. */
#include <stdlib.h>
#include <string.h>

#include "plan/weights_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { STORE = 256, HEAD = 48 };
    sn_weights_key key;
    size_t whole_bytes;
    sn_weights_key_begin(&key);
    (void)sn_weights_check(data, size, &key, STORE, NULL);
    if (size < 2 || !sn_weights_file_bytes(STORE, &whole_bytes))
        return 0;
    /* The first bytes say how much of the file there is and where the rest is written over it: in
     * the head or across the end of the page, into the store and its checksum. */
    const size_t bytes = whole_bytes - data[0] % 8;
    const size_t at = data[1] % 64 + (data[1] >= 128 ? SN_WEIGHTS_HEAD_BYTES - 16 : 0);
    uint8_t *whole = calloc(1, whole_bytes), *file = malloc(bytes);
    if (!whole || !file)
        abort();
    sn_weights_seal(whole, &key, STORE, NULL);
    memcpy(file, whole, bytes);
    const size_t n = size - 2 < bytes - at ? size - 2 : bytes - at;
    memcpy(file + at, data + 2, n);
    /* What lies between the head and the store means nothing. */
    const bool same = data[0] % 8 == 0 && memcmp(file, whole, HEAD) == 0 &&
                      memcmp(file + SN_WEIGHTS_HEAD_BYTES, whole + SN_WEIGHTS_HEAD_BYTES,
                             whole_bytes - SN_WEIGHTS_HEAD_BYTES) == 0;
    if (sn_weights_check(file, bytes, &key, STORE, NULL) != same)
        abort();
    free(file);
    free(whole);
    return 0;
}
