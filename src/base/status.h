/* SPDX-License-Identifier: Apache-2.0 */
/* Status and error text. A function that can fail returns sonde_status and takes a sonde_error it
 * fills with one sentence; NULL is always accepted. SN_TRY passes a status up. */
#ifndef SN_BASE_STATUS_H
#define SN_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sonde/types.h"

#define SN_TRY(expr)                                                                               \
    do {                                                                                           \
        sonde_status sn_try_status_ = (expr);                                                      \
        if (sn_try_status_ != SONDE_OK)                                                            \
            return sn_try_status_;                                                                 \
    } while (0)

/* For functions with one cleanup path: sets `st` and jumps to `fail`. */
#define SN_TRY_GOTO(st, expr)                                                                      \
    do {                                                                                           \
        (st) = (expr);                                                                             \
        if ((st) != SONDE_OK)                                                                      \
            goto fail;                                                                             \
    } while (0)

/* Writes the sentence and returns `status`, so that `return sn_fail(err, ...)` reads naturally. */
sonde_status sn_fail(sonde_error *err, sonde_status status, const char *fmt, ...)
    SONDE_PRINTF(3, 4);
sonde_status sn_fail_va(sonde_error *err, sonde_status status, const char *fmt, va_list args);

/* Puts "where: " before the sentence already in err (used while a status travels up). */
void sn_error_prefix(sonde_error *err, const char *fmt, ...) SONDE_PRINTF(2, 3);

/* The one sentence for a failed allocation. */
sonde_status sn_fail_memory(sonde_error *err, size_t bytes); /* 0: how many is not known */

#endif
