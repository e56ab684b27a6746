/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a convolution as rows at equal distances, for kernels that read them so. Channels
 * are last. The result is computed in parts, some lines of an image; the lines of x that a part
 * reads are copied one behind the other, with what lies outside of the image:
 *
 *     [slice of the kernel][line modulo the stride][line][pixel, `width` of them][channels]
 *
 * Then row v of the part reads, for every run of the kernel, bytes that lie v · row behind those of
 * row 0. A run is a row of the kernel, whose pixels are neighbours, or one tap if they are not.
 * Rows go on from line to line: of `across` rows only the first `columns` are results, the others
 * are computed and left out. Where x has this order already, nothing is copied. */
#ifndef SN_COMPUTE_LINES_H
#define SN_COMPUTE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sn_conv_desc sn_conv_desc; /* conv.h */

typedef struct sn_lines {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int64_t x_pixel, pixel; /* bytes from pixel to pixel, of x and of the copy */
    bool in_place;          /* x has this order already */
    bool flat;              /* row r reads pixel r and nothing else */
    bool merged;            /* runs are rows of the kernel */
    int64_t runs;           /* of the kernel */
    int64_t lines, columns; /* of a part */
    int64_t width, across;  /* pixels of a copied line, and the rows they are */
    int64_t row;            /* bytes from row to row */
    int64_t phases, high;   /* lines modulo the stride, and lines of each */
    int64_t parts[3];       /* along depth, height, width */
    int64_t read;           /* bytes that the rows of a part read, counted from the first */
    int64_t bytes;          /* of the copy */
} sn_lines;

/* A part of the result: lines of one slice, from column `x` on. */
typedef struct sn_lines_part {
    int64_t z, y, x, lines, columns;
    int64_t rows; /* (lines - 1) · across + columns */
} sn_lines_part;

/* Parts take about `budget` bytes; there are at least `want` of them if lines allow it. Rows are
 * read in multiples of row_multiple, each run up to byte run_end behind its beginning. */
typedef struct sn_lines_request {
    const sn_conv_desc *conv;
    int64_t x_pixel, channels_bytes; /* from pixel to pixel; that count */
    bool merged;                     /* runs are rows of the kernel */
    bool converted;                  /* pixels of the copy are not just bytes of those of x */
    int64_t row_multiple, run_end;
    int64_t budget, want;
} sn_lines_request;
bool sn_lines_plan(sn_lines *l, const sn_lines_request *r); /* false: sizes overflow */
/* Does row r of the result read pixel r of x and nothing else? */
bool sn_lines_flat(const sn_conv_desc *d);
/* Are runs of a kernel its rows? */
bool sn_lines_merge(int64_t groups, int64_t kernel_x, int64_t dilation_x);
/* Parts of an image. */
int64_t sn_lines_parts(const sn_lines *l);
sn_lines_part sn_lines_part_of(const sn_lines *l, int64_t index);
/* Where a run lies, in bytes behind row 0; run < l->runs. */
int64_t sn_lines_run_at(const sn_lines *l, int64_t run);
/* An image that lines are copied from. */
typedef struct sn_lines_image {
    const uint8_t *pixels;
    int64_t left;    /* bytes that may be read, where nothing is copied */
    uint8_t outside; /* every byte of pixels outside of the image */
    /* n neighbouring pixels, x_pixel bytes apart, become `pixel` bytes each; NULL: as they are. */
    void (*convert)(const void *arg, uint8_t *to, const uint8_t *from, int64_t n);
    const void *arg;
} sn_lines_image;
/* Row 0 of a part: in the image, or in `copy`, which has l->bytes. */
const uint8_t *sn_lines_prepare(const sn_lines *l, const sn_lines_part *part,
                                const sn_lines_image *image, uint8_t *copy);
/* What a worker's copy holds: tasks that share a part copy it once. `key` is the owner's. */
typedef struct sn_lines_held {
    int64_t image, part, key; /* part -1: nothing yet */
    bool finite;              /* the owner's, too */
    float back;               /* and this */
} sn_lines_held;
/* Does it hold this? Afterwards it says that it does: the caller copies if it did not. */
static inline bool sn_lines_holds(sn_lines_held *h, int64_t image, int64_t part, int64_t key)
{
    const bool same = h->part == part && h->image == image && h->key == key;
    h->image = image;
    h->part = part;
    h->key = key;
    return same;
}
/* Results from row v on that are neighbours: how many, at most n, and where the first is among the
 * pixels of the image. 0: v is none; *at is then the number of rows to leave out. */
int64_t sn_lines_results(const sn_lines *l, const sn_lines_part *part, int64_t v, int64_t n,
                         int64_t *at);

#endif
