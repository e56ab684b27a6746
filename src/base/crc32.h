/* SPDX-License-Identifier: Apache-2.0 */
/* The check sum of zip and gzip (IEEE 802.3, reflected). Start with 0 and feed piece by piece. */
#ifndef SN_BASE_CRC32_H
#define SN_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

uint32_t sn_crc32(uint32_t crc, const void *data, size_t bytes);

#endif
