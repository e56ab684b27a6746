/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the attributes of a model's nodes are known; see attributes.c. */
#ifndef SN_OPS_FRAMEWORK_ATTRIBUTES_H
#define SN_OPS_FRAMEWORK_ATTRIBUTES_H

#include "ops/framework/op.h"

/* Of the standard domain: what ops.inc covers. */
enum { SN_NEWEST_OPSET = 28 };
/* The newest known version of a domain ("" is ai.onnx); 0: its versions tell nothing. */
int32_t sn_domain_newest(const char *domain);

/* For a graph as it was read, bodies included, after sn_ops_resolve (which bounds the depth of
 * bodies) and before passes put attributes of their own on nodes. Refuses what may change a node's
 * meaning, warns of the rest; log NULL: in silence. */
sonde_status sn_ops_check_attributes(const sn_graph *g, const sn_log *log, sonde_error *err);

#endif
