/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the blocks of a matrix that are not zero: bits of a block are joined by OR, without the
 * signs of floats. */
#include <string.h>

#include "compute/sparse.h"
#include "compute/split.h"

/* What counts of eight bytes, and what they are xored with first. */
typedef struct bits {
    uint64_t mask, flip;
} bits;

static bits bits_of(sn_dtype dtype)
{
    switch (dtype) {
    case SONDE_DTYPE_F32:
        return (bits){0x7fffffff7fffffffu, 0};
    case SONDE_DTYPE_F16:
    case SONDE_DTYPE_BF16:
        return (bits){0x7fff7fff7fff7fffu, 0};
    case SONDE_DTYPE_U8:
        return (bits){UINT64_MAX, 0x8080808080808080u};
    default:
        return (bits){UINT64_MAX, 0};
    }
}

/* Is any of these bytes not zero? A piece begins with an element. */
static inline uint64_t any_bits(const uint8_t *p, size_t bytes, bits b)
{
    uint64_t all = 0, word;
    size_t i = 0;
    for (; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, p + i, sizeof word);
        all |= word ^ b.flip;
    }
    if (i < bytes) {
        word = b.flip;
        memcpy(&word, p + i, bytes - i);
        all |= word ^ b.flip;
    }
    return all & b.mask;
}

/* Rows are k: `ks` rows from `p` on, `row` bytes apart, in pieces of `piece` bytes. */
static inline __attribute__((always_inline)) int64_t
count_line(const uint8_t *p, size_t row, int64_t ks, size_t bytes, size_t piece, bits b)
{
    int64_t found = 0;
    for (size_t at = 0; at < bytes; at += piece) {
        const size_t some = bytes - at < piece ? bytes - at : piece;
        uint64_t all = 0;
        for (int64_t i = 0; i < ks; i++)
            all |= any_bits(p + (size_t)i * row + at, some, b);
        found += all != 0;
    }
    return found;
}

/* The same; the compiler knows the usual sizes. */
static int64_t count_pieces(const uint8_t *p, size_t row, int64_t ks, size_t bytes, size_t piece,
                            bits b)
{
    switch (piece) {
    case 1:
        return count_line(p, row, ks, bytes, 1, b);
    case 4:
        return count_line(p, row, ks, bytes, 4, b);
    case 16:
        return count_line(p, row, ks, bytes, 16, b);
    case 64:
        return count_line(p, row, ks, bytes, 64, b);
    default:
        return count_line(p, row, ks, bytes, piece, b);
    }
}

static int64_t count_plain(const sn_sparse_source *s, int outputs, int ks)
{
    const size_t elem = sn_dtype_bytes(s->dtype), row = (size_t)s->n * elem;
    const size_t piece = (size_t)outputs * elem;
    const bits b = bits_of(s->dtype);
    int64_t found = 0;
    for (int64_t k = 0; k < s->k; k += ks) {
        const uint8_t *p = (const uint8_t *)s->data + (size_t)k * row;
        const int64_t some = sn_min(ks, s->k - k);
        found += count_pieces(p, row, some, row, piece, b);
    }
    return found;
}

/* Rows are outputs: their bits are joined a stretch of k at a time. */
static int64_t count_turned(const sn_sparse_source *s, int outputs, int ks)
{
    enum { STRETCH = 4096 }; /* bytes, a multiple of every block's */
    const size_t elem = sn_dtype_bytes(s->dtype), row = (size_t)s->k * elem;
    const bits b = bits_of(s->dtype);
    uint64_t all[STRETCH / sizeof(uint64_t)];
    int64_t found = 0;
    for (int64_t n = 0; n < s->n; n += outputs)
        for (size_t at = 0; at < row; at += STRETCH) {
            const size_t bytes = row - at < STRETCH ? row - at : STRETCH;
            const size_t words = (bytes + sizeof *all - 1) / sizeof *all;
            memset(all, 0, words * sizeof *all);
            for (int64_t o = n; o < sn_min(n + outputs, s->n); o++) {
                const uint8_t *p = (const uint8_t *)s->data + (size_t)o * row + at;
                size_t i = 0;
                for (; (i + 1) * sizeof *all <= bytes; i++) {
                    uint64_t word;
                    memcpy(&word, p + i * sizeof word, sizeof word);
                    all[i] |= (word ^ b.flip) & b.mask;
                }
                if (i < words) {
                    uint64_t word = b.flip;
                    memcpy(&word, p + i * sizeof word, bytes - i * sizeof word);
                    all[i] |= (word ^ b.flip) & b.mask;
                }
            }
            found += count_pieces((const uint8_t *)all, 0, 1, bytes, (size_t)ks * elem,
                                  (bits){UINT64_MAX, 0});
        }
    return found;
}

int64_t sn_sparse_blocks(const sn_sparse_source *s, int outputs, int ks)
{
    return s->turned ? count_turned(s, outputs, ks) : count_plain(s, outputs, ks);
}

double sn_sparse_sample(const sn_sparse_source *s, int outputs, int ks)
{
    enum { PLACES = 16, RUN = 16 }; /* blocks of a place, side by side in a row */
    const size_t elem = sn_dtype_bytes(s->dtype);
    const bits b = bits_of(s->dtype);
    const int64_t rows = s->turned ? s->n : s->k, row = s->turned ? s->k : s->n;
    const int64_t high = s->turned ? outputs : ks, wide = s->turned ? ks : outputs;
    const int64_t run = sn_min(RUN * wide, row);
    uint64_t place = 88172645463325252u;
    int64_t found = 0, looked = 0;
    for (int i = 0; i < PLACES; i++) {
        place ^= place << 13;
        place ^= place >> 7;
        place ^= place << 17;
        const int64_t r = (int64_t)(place % (uint64_t)(sn_max(rows / high, 1))) * high;
        const int64_t spots = sn_max((row - run) / wide, 0) + 1;
        const int64_t c = (int64_t)((place >> 32) % (uint64_t)spots) * wide;
        found += count_line((const uint8_t *)s->data + (size_t)(r * row + c) * elem,
                            (size_t)row * elem, sn_min(high, rows - r),
                            (size_t)sn_min(run, row - c) * elem, (size_t)wide * elem, b);
        looked += sn_ceil_div(sn_min(run, row - c), wide);
        if (found ==
            looked) /* so far: dense weights are left alone, as their pages are in a file */
            break;
    }
    return (double)found / (double)looked;
}
