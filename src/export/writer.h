/* SPDX-License-Identifier: Apache-2.0 */
/* A buffered writer in front of a sink, with the few forms exporters need. Numbers never depend on
 * the host program's locale; names from a model are made safe for JSON, Markdown or a terminal. */
#ifndef SN_EXPORT_WRITER_H
#define SN_EXPORT_WRITER_H

#include "base/utf8.h"
#include "export/export.h"

typedef struct sn_writer {
    sn_sink *sink;
    size_t n;
    char buf[4096]; /* small: writers are on stacks of the caller's threads */
} sn_writer;

void sn_writer_init(sn_writer *w, sn_sink *sink);
/* Hands the rest to the sink; SONDE_IO when anything could not be written. */
sonde_status sn_writer_finish(sn_writer *w, sonde_error *err);

void sn_put_bytes(sn_writer *w, const void *data, size_t n);
void sn_put(sn_writer *w, const char *text);
void sn_put_spaces(sn_writer *w, size_t n);
void sn_put_u64(sn_writer *w, uint64_t v);
void sn_put_i64(sn_writer *w, int64_t v);
/* With that many decimals (0 to 9). Not finite: "null". */
void sn_put_fixed(sn_writer *w, double v, int decimals);
/* A JSON number: whole ones without a point, others with six decimals. */
void sn_put_number(sn_writer *w, double v);
/* Nanoseconds as microseconds with three decimals: exact. */
void sn_put_us(sn_writer *w, uint64_t ns);
/* Nanoseconds as "0.044ms": three decimals, up to six where they matter: exact. */
void sn_put_ms_text(sn_writer *w, uint64_t ns);
const char *sn_ms_text(char *buf, uint64_t ns); /* into at least 40 bytes; returns it */

/* Inside a JSON string: escaped, bytes that are not UTF-8 become U+FFFD. NULL is "". */
void sn_put_json_part(sn_writer *w, const char *s);
void sn_put_json(sn_writer *w, const char *s); /* with the quotes */
/* "key": before a value, with the comma that separates it from what came before unless *first. */
void sn_put_key(sn_writer *w, bool *first, const char *key);
/* The same with a text or a number behind it. */
void sn_put_key_text(sn_writer *w, bool *first, const char *key, const char *value);
void sn_put_key_number(sn_writer *w, bool *first, const char *key, double value);
/* "labels":{"host":"a","worker":"1"} */
void sn_put_labels(sn_writer *w, bool *first, const sn_labels *labels);

/* A field of a CSV file (csv_field.c), its characters as sn_put_char writes them. The first is text
 * that no spreadsheet takes for a formula; the second may be one unless `harmless`. */
void sn_put_csv(sn_writer *w, const char *text);
void sn_put_csv_field(sn_writer *w, const char *text, bool harmless);

/* The character at s, U+FFFD for a byte that is not UTF-8 and for what a terminal would obey when
 * the file is shown there: control characters but tabs and ends of lines, direction marks. Returns
 * how many bytes it took. *s is not 0. */
size_t sn_put_char(sn_writer *w, const char *s);

/* For a terminal: control characters, direction marks and bytes that are not UTF-8 as \xNN. */
void sn_put_terminal(sn_writer *w, const char *s);
size_t sn_terminal_width(const char *s); /* columns of the above, one per character */

/* The same in at most so many columns: without what parts of a path repeat, then without the middle
 * (short_name.c). Returns the columns it took. */
size_t sn_put_short(sn_writer *w, const char *name, size_t room);

/* f16, f32 and f64, which some formats call fp16, fp32 and fp64. NULL is none. */
bool sn_is_plain_float(const char *dtype);

/* The same fixed-point text in a buffer of at least 32 bytes; returns it. */
const char *sn_fixed_text(char *buf, double v, int decimals);
/* "16.00 KiB", "40 B"; returns the buffer. */
enum { SN_BYTES_TEXT = 48 };
const char *sn_bytes_text(char buf[SN_BYTES_TEXT], uint64_t bytes);

#endif
