/* SPDX-License-Identifier: Apache-2.0 */
/* One field of a CSV file, quoted as RFC 4180 says. Text is data: a quote mark before what would
 * start a formula keeps it text, also where a ";" separates columns. */
#include <string.h>

#include "export/writer.h"

/* What a spreadsheet may take for the beginning of a formula. */
static bool starts_formula(char c)
{
    return c && strchr("=+-@\t\r", c) != NULL;
}

void sn_put_csv_field(sn_writer *w, const char *text, bool harmless)
{
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    bool fresh = harmless;
    sn_put(w, quoted ? "\"" : "");
    for (const char *s = text; *s;) {
        sn_put(w, fresh && starts_formula(*s) ? "'" : "");
        sn_put(w, *s == '"' ? "\"" : "");
        fresh = harmless && *s == ';';
        const bool line = s[0] == '\r' && s[1] == '\n'; /* an end of a line, which may stand here */
        if (line)
            sn_put(w, "\r");
        s += line ? 1 : sn_put_char(w, s);
    }
    sn_put(w, quoted ? "\"" : "");
}

void sn_put_csv(sn_writer *w, const char *text)
{
    sn_put_csv_field(w, text, true);
}
