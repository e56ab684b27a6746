/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines go to the context's sink; without one nothing is ever printed. */
#ifndef SN_BASE_LOG_H
#define SN_BASE_LOG_H

#include "base/status.h"

typedef enum sn_log_level {
    SN_LOG_NONE,
    SN_LOG_ERROR,
    SN_LOG_WARN,
    SN_LOG_INFO,
    SN_LOG_DEBUG
} sn_log_level;

typedef struct sn_log {
    sn_log_level level;
    void (*sink)(void *user, sn_log_level level, const char *line); /* NULL: silent */
    void *user;
} sn_log;

void sn_log_write(const sn_log *log, sn_log_level level, const char *fmt, ...) SONDE_PRINTF(3, 4);
void sn_log_stderr(void *user, sn_log_level level,
                   const char *line); /* a sink: "sonde: warning: …" */
bool sn_log_parse_level(const char *text, sn_log_level *level);

#endif
