/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as requests to an OpenTelemetry collector: the JSON of OTLP's
 * ExportTraceServiceRequest, whole or in parts of bounded size. Each run is a span, its operators
 * are spans inside of it, and a run that had a caller's trace belongs to that. Each worker of a
 * joined profile is a resource of its own. docs/service.md lists the attributes. */
#ifndef SN_EXPORT_OTLP_H
#define SN_EXPORT_OTLP_H

#include "export/export.h"

/* What the spans come from. */
typedef struct sn_otlp_resource {
    const char *service_name; /* NULL: as the attributes say, else "sonde" */
    const char *attributes;   /* "key=value,key=value", values percent-encoded; NULL: none */
} sn_otlp_resource;

typedef struct sn_otlp sn_otlp;

/* `categories`: spans to send, a set of iteration, operator, executor (within runs) and user; 0:
 * those. The profile and the texts of the resource must live as long. */
sonde_status sn_otlp_open(sn_otlp **otlp, const sn_profile *p, const sn_otlp_resource *resource,
                          uint32_t categories, sonde_error *err);
/* The next request: at most `most_bytes` (0: everything that is left), at least one span. *spans:
 * how many are in it; 0: none was left, and nothing was written. */
sonde_status sn_otlp_next(sn_otlp *o, size_t most_bytes, sn_sink *sink, size_t *spans,
                          sonde_error *err);
void sn_otlp_close(sn_otlp *o); /* NULL accepted */

/* ---- otlp_json.c: the forms of OTLP ---- */
/* A text of more bytes is cut at a character, a list after so many. */
enum { SN_OTLP_TEXT_BYTES = 1024, SN_OTLP_LIST_ITEMS = 64 };

struct sn_writer;
void sn_otlp_text(struct sn_writer *w, bool *first, const char *key, const char *value);
void sn_otlp_integer(struct sn_writer *w, bool *first, const char *key, int64_t value);
void sn_otlp_true(struct sn_writer *w, bool *first, const char *key);
/* A list of texts: items between the two, and in each a text of at most SN_OTLP_TEXT_BYTES. */
void sn_otlp_list_begin(struct sn_writer *w, bool *first, const char *key);
void sn_otlp_list_item(struct sn_writer *w, size_t index, const char *value);
void sn_otlp_list_end(struct sn_writer *w);
/* {"attributes":[…]} of the process that the profile is of. `one_of_several`: it was joined to
 * others, and what tells them apart is not what `resource` says of all of them. */
void sn_otlp_put_resource(struct sn_writer *w, const sn_profile *p,
                          const sn_otlp_resource *resource, bool one_of_several);

#endif
