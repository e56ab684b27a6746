/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are written from integers rather than by printf, whose decimal point follows the locale
 * of whatever program the library runs in. */
#include "export/writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void sn_writer_init(sn_writer *w, sn_sink *sink)
{
    w->sink = sink;
    w->n = 0;
}

static void flush(sn_writer *w)
{
    if (w->n)
        sn_sink_write(w->sink, w->buf, w->n);
    w->n = 0;
}

sonde_status sn_writer_finish(sn_writer *w, sonde_error *err)
{
    flush(w);
    if (w->sink->failed)
        return sn_fail(err, SONDE_IO, "writing the profile failed");
    return SONDE_OK;
}

void sn_put_bytes(sn_writer *w, const void *data, size_t n)
{
    if (n > sizeof w->buf - w->n)
        flush(w);
    if (n > sizeof w->buf) {
        sn_sink_write(w->sink, data, n);
        return;
    }
    memcpy(w->buf + w->n, data, n);
    w->n += n;
}

void sn_put(sn_writer *w, const char *text)
{
    sn_put_bytes(w, text, strlen(text));
}

void sn_put_spaces(sn_writer *w, size_t n)
{
    static const char spaces[] = "                                ";
    while (n) {
        size_t part = n < sizeof spaces - 1 ? n : sizeof spaces - 1;
        sn_put_bytes(w, spaces, part);
        n -= part;
    }
}

void sn_put_u64(sn_writer *w, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    sn_put(w, text);
}

void sn_put_i64(sn_writer *w, int64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, v);
    sn_put(w, text);
}

const char *sn_fixed_text(char *buf, double v, int decimals)
{
    static const double scales[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
    enum { CAP = 32 };
    double scaled = fabs(v) * scales[decimals];
    if (!isfinite(v)) {
        snprintf(buf, CAP, "null");
    } else if (scaled < 9e18) {
        uint64_t units = (uint64_t)llround(scaled), scale = (uint64_t)scales[decimals];
        const char *sign = v < 0 && units ? "-" : "";
        if (decimals)
            snprintf(buf, CAP, "%s%" PRIu64 ".%0*" PRIu64, sign, units / scale, decimals,
                     units % scale);
        else
            snprintf(buf, CAP, "%s%" PRIu64, sign, units);
    } else if (fabs(v) < 1e24) { /* too large for decimals to mean anything */
        snprintf(buf, CAP, "%.0f", v);
    } else { /* a one-digit mantissa has no point */
        snprintf(buf, CAP, "%.0e", v);
    }
    return buf;
}

void sn_put_fixed(sn_writer *w, double v, int decimals)
{
    char text[32];
    sn_put(w, sn_fixed_text(text, v, decimals));
}

void sn_put_number(sn_writer *w, double v)
{
    sn_put_fixed(w, v, fabs(v) < 9e15 && v == floor(v) ? 0 : 6);
}

bool sn_is_plain_float(const char *dtype)
{
    return dtype &&
           (strcmp(dtype, "f16") == 0 || strcmp(dtype, "f32") == 0 || strcmp(dtype, "f64") == 0);
}

void sn_put_us(sn_writer *w, uint64_t ns)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
    sn_put(w, text);
}

const char *sn_ms_text(char *buf, uint64_t ns)
{
    /* By hand: every slice of a trace has one, and printf would be a third of its cost. */
    char digits[24];
    int n = 0, first = (int)sizeof digits;
    uint64_t whole = ns / 1000000;
    uint32_t part = (uint32_t)(ns % 1000000);
    do
        digits[--first] = (char)('0' + whole % 10);
    while (whole /= 10);
    for (; first < (int)sizeof digits; first++)
        buf[n++] = digits[first];
    buf[n++] = '.';
    for (int k = 5; k >= 0; k--, part /= 10)
        buf[n + k] = (char)('0' + part % 10);
    n += 6;
    for (int k = 0; k < 3 && buf[n - 1] == '0'; k++)
        n--;
    memcpy(buf + n, "ms", 3);
    return buf;
}

void sn_put_ms_text(sn_writer *w, uint64_t ns)
{
    char text[40];
    sn_put(w, sn_ms_text(text, ns));
}

/* Characters that would move the cursor, change colours or turn the direction of what follows. */
static bool harmless(uint32_t c)
{
    return c >= 0x20 && c != 0x7F && !(c >= 0x80 && c <= 0x9F) && !(c >= 0x200E && c <= 0x200F) &&
           !(c >= 0x2028 && c <= 0x202E) && !(c >= 0x2066 && c <= 0x2069);
}

void sn_put_json_part(sn_writer *w, const char *text)
{
    const unsigned char *s = (const unsigned char *)(text ? text : "");
    size_t n = strlen((const char *)s);
    while (n) {
        size_t plain = 0; /* the usual case: a stretch of ASCII that needs nothing */
        while (plain < n && s[plain] >= 0x20 && s[plain] < 0x7F && s[plain] != '"' &&
               s[plain] != '\\')
            plain++;
        sn_put_bytes(w, s, plain);
        s += plain;
        n -= plain;
        if (!n)
            break;
        uint32_t code = 0;
        size_t len = sn_utf8_char(s, n, &code);
        char escape[8];
        if (len == 0) {
            sn_put(w, "\\ufffd");
            len = 1;
        } else if (code == '"' || code == '\\') {
            snprintf(escape, sizeof escape, "\\%c", (char)code);
            sn_put(w, escape);
        } else if (!harmless(code)) {
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code & 0xFFFFu);
            sn_put(w, escape);
        } else {
            sn_put_bytes(w, s, len);
        }
        s += len;
        n -= len;
    }
}

void sn_put_json(sn_writer *w, const char *s)
{
    sn_put(w, "\"");
    sn_put_json_part(w, s);
    sn_put(w, "\"");
}

void sn_put_key(sn_writer *w, bool *first, const char *key)
{
    sn_put(w, *first ? "\"" : ",\"");
    sn_put(w, key);
    sn_put(w, "\":");
    *first = false;
}

void sn_put_key_text(sn_writer *w, bool *first, const char *key, const char *value)
{
    sn_put_key(w, first, key);
    sn_put_json(w, value);
}

void sn_put_key_number(sn_writer *w, bool *first, const char *key, double value)
{
    sn_put_key(w, first, key);
    sn_put_number(w, value);
}

void sn_put_labels(sn_writer *w, bool *first, const sn_labels *labels)
{
    sn_put_key(w, first, "labels");
    sn_put(w, "{");
    for (size_t i = 0; i < labels->list.n; i++) {
        sn_put(w, i ? "," : "");
        sn_put_json(w, labels->list.data[i].key);
        sn_put(w, ":");
        sn_put_json(w, labels->list.data[i].value);
    }
    sn_put(w, "}");
}

size_t sn_put_char(sn_writer *w, const char *s)
{
    uint32_t code = 0;
    const size_t len = sn_utf8_char((const unsigned char *)s, strnlen(s, 4), &code);
    if (len && (harmless(code) || code == '\t' || code == '\n'))
        sn_put_bytes(w, s, len);
    else
        sn_put(w, "\xEF\xBF\xBD");
    return len ? len : 1;
}

static size_t terminal(sn_writer *w, const char *text)
{
    const unsigned char *s = (const unsigned char *)(text ? text : "");
    size_t n = strlen((const char *)s), columns = 0;
    while (n) {
        uint32_t code = 0;
        size_t len = sn_utf8_char(s, n, &code);
        if (len && harmless(code)) {
            if (w)
                sn_put_bytes(w, s, len);
            columns++;
        } else {
            len = len ? len : 1;
            for (size_t i = 0; i < len; i++) {
                char escape[8];
                snprintf(escape, sizeof escape, "\\x%02x", s[i]);
                if (w)
                    sn_put(w, escape);
                columns += 4;
            }
        }
        s += len;
        n -= len;
    }
    return columns;
}

void sn_put_terminal(sn_writer *w, const char *s)
{
    terminal(w, s);
}

size_t sn_terminal_width(const char *s)
{
    return terminal(NULL, s);
}

const char *sn_bytes_text(char buf[SN_BYTES_TEXT], uint64_t bytes)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    double v = (double)bytes;
    size_t unit = 0;
    for (; v >= 1024 && unit + 1 < sizeof units / sizeof *units; unit++)
        v /= 1024;
    sn_fixed_text(buf, v, unit ? 2 : 0);
    return strcat(buf, units[unit]);
}
