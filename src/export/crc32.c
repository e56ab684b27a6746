/* SPDX-License-Identifier: Apache-2.0 */
/* By a table of the sixteen half-byte steps: 64 bytes that can be checked by eye, fast enough for
 * files of a few megabytes. Each entry is its index shifted out bit by bit through the reflected
 * polynomial 0xEDB88320. */
#include "export/crc32.h"

static const uint32_t steps[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
};

uint32_t sn_crc32(uint32_t crc, const void *data, size_t bytes)
{
    const unsigned char *s = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= s[i];
        crc = crc >> 4 ^ steps[crc & 15];
        crc = crc >> 4 ^ steps[crc & 15];
    }
    return ~crc;
}
