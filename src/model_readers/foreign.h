/* SPDX-License-Identifier: Apache-2.0 */
/* Files that people take for models: what they are, in words. */
#ifndef SN_MODEL_READERS_FOREIGN_H
#define SN_MODEL_READERS_FOREIGN_H

#include <stddef.h>

/* "it is a zip archive": what the bytes look like; NULL: nothing we know. */
const char *sn_foreign_text(const void *data, size_t bytes);

#endif
