/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of packed weights, right after a head that is right but for what the input
 * changes in it: only an unchanged head of the right size may be taken. */
#include <stdlib.h>
#include <string.h>

#include "plan/weights_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { STORE = 256 };
    sn_weights_key key;
    sn_weights_key_begin(&key);
    (void)sn_weights_head_check(data, size, &key, STORE);
    if (size < 2)
        return 0;
    /* The first bytes say how much of the file there is and where the rest is written over it. */
    const size_t bytes = SN_WEIGHTS_HEAD_BYTES + STORE - data[0] % 8, at = data[1] % 64;
    uint8_t *whole = calloc(1, SN_WEIGHTS_HEAD_BYTES + STORE), *file = malloc(bytes);
    if (!whole || !file)
        abort();
    sn_weights_head_write(whole, &key, STORE);
    memcpy(file, whole, bytes);
    const size_t n = size - 2 < bytes - at ? size - 2 : bytes - at;
    memcpy(file + at, data + 2, n);
    const bool same = data[0] % 8 == 0 && memcmp(file, whole, 40) == 0;
    if (sn_weights_head_check(file, bytes, &key, STORE) != same)
        abort();
    free(file);
    free(whole);
    return 0;
}
