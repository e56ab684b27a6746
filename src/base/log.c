/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines are composed here, once, and only when somebody listens at that level. */
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static const char *const level_names[] = {"none", "error", "warning", "info", "debug"};

void sn_log_write(const sn_log *log, sn_log_level level, const char *fmt, ...)
{
    if (!log || !log->sink || level == SN_LOG_NONE || level > log->level)
        return;
    char line[2048];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n >= 0)
        log->sink(log->user, level, line);
}

void sn_log_stderr(void *user, sn_log_level level, const char *line)
{
    (void)user;
    /* One call, so that lines of different threads do not mix. */
    fprintf(stderr, "sonde: %s: %s\n", level_names[level], line);
}

bool sn_log_parse_level(const char *text, sn_log_level *level)
{
    if (strcmp(text, "warn") == 0) {
        *level = SN_LOG_WARN;
        return true;
    }
    for (int i = SN_LOG_NONE; i <= SN_LOG_DEBUG; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level = (sn_log_level)i;
            return true;
        }
    }
    return false;
}
