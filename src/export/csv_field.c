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
    const unsigned char *s = (const unsigned char *)text;
    size_t n = strlen(text);
    bool fresh = harmless;
    sn_put(w, quoted ? "\"" : "");
    while (n) {
        uint32_t code;
        const size_t len = sn_utf8_char(s, n, &code);
        sn_put(w, fresh && starts_formula((char)*s) ? "'" : "");
        sn_put(w, *s == '"' ? "\"" : "");
        if (len)
            sn_put_bytes(w, s, len);
        else
            sn_put(w, "\xEF\xBF\xBD");
        fresh = harmless && *s == ';';
        s += len ? len : 1;
        n -= len ? len : 1;
    }
    sn_put(w, quoted ? "\"" : "");
}

void sn_put_csv(sn_writer *w, const char *text)
{
    sn_put_csv_field(w, text, true);
}
