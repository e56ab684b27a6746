/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the head of a request to `sonde view`. What is parsed is judged by the rules;
 * whoever passes them must have said the token, which no input here can guess save by saying it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The program is no library: its file is taken as it is. */
#include "../../tools/sonde/view/request.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "5eed"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    request r;
    const char *why = NULL;
    char *head = malloc(size ? size : 1); /* of exactly this size, so that one byte more is seen */
    if (!head)
        return 0;
    memcpy(head, data, size);
    if (request_parse(head, size, &r) == 0) {
        const int status = request_check(&r, TOKEN, 8123, &why);
        if ((status == 0) != (why == NULL) || (status == 0 && !strstr(r.query, TOKEN)))
            __builtin_trap();
        (void)request_has(&r, "\"1\"");
    }
    free(head);
    return 0;
}
