/* SPDX-License-Identifier: Apache-2.0 */
/* Where inputs come from and how large they are; feeds.c makes them. */
#include "tool.h"

#define AT(field) offsetof(input_options, field)

const option_row input_option_rows[] = {
    {'i', "input", OPT_LIST, AT(inputs), "[NAME=]FILE",
     "an input from a .npy, .npz, .safetensors, .pb, .jpg, .png or .ppm file, or all from a "
     "folder"},
    {'s', "size", OPT_LIST, AT(sizes), "DIM=N",
     "size of a symbolic dimension; INPUT.DIM=N or INPUT.k=N for one input"},
    {'r', "range", OPT_LIST, AT(ranges), "INPUT=MIN:MAX",
     "range of the random numbers of an input"},
    SEED_ROW(input_options, seed),
    {0, "batch-size", OPT_INT, AT(batch_size), "N", "size of the batch dimension"},
    {0, "batch_size", OPT_INT, AT(batch_size), "N", NULL},
    {0, "seq-len", OPT_INT, AT(seq_len), "N", "size of the sequence dimension"},
    {0, "seq_len", OPT_INT, AT(seq_len), "N", NULL},
    {0, "image-resize", OPT_INT, AT(image_resize), "N", "shorter side of images before the crop"},
    {0, "image-layout", OPT_TEXT, AT(image_layout), "nchw|nhwc", "instead of what the shape says"},
    {0, "image-mean", OPT_TEXT, AT(image_mean), "R,G,B", "instead of ImageNet's"},
    {0, "image-std", OPT_TEXT, AT(image_std), "R,G,B", "instead of ImageNet's"},
    {0, "image-bgr", OPT_FLAG, AT(image_bgr), NULL, "channels in the order blue, green, red"},
    {0, "image-raw", OPT_FLAG, AT(image_raw), NULL, "values / 255, without mean and deviation"},
    {0}};
