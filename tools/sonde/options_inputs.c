/* SPDX-License-Identifier: Apache-2.0 */
/* Where inputs come from and how large they are; feeds.c makes them. */
#include "tool.h"

#define AT(field) offsetof(input_options, field)

const option_row input_option_rows[] = {
    {'i', "input", OPT_LIST, AT(inputs), "[NAME=]FILE",
     "read an input from a .npy, .npz, .safetensors, .pb, .jpg, .png or .ppm file, or all "
     "inputs from a folder"},
    {'s', "size", OPT_LIST, AT(sizes), "DIM=N",
     "size of a symbolic dimension; INPUT.DIM=N or INPUT.k=N sets it for one input only"},
    {'r', "range", OPT_LIST, AT(ranges), "INPUT=MIN:MAX",
     "range of the random numbers for an input"},
    SEED_ROW(input_options, seed),
    {0, "batch-size", OPT_INT, AT(batch_size), "N", "size of the batch dimension"},
    {0, "batch_size", OPT_INT, AT(batch_size), "N", NULL},
    {0, "seq-len", OPT_INT, AT(seq_len), "N", "size of the sequence dimension"},
    {0, "seq_len", OPT_INT, AT(seq_len), "N", NULL},
    {0, "image-resize", OPT_INT, AT(image_resize), "N",
     "resize the shorter side of images to N pixels before the crop"},
    {0, "image-layout", OPT_TEXT, AT(image_layout), "nchw|nhwc",
     "layout of image inputs (default: from the input's shape)"},
    {0, "image-scale", OPT_TEXT, AT(image_scale), "X",
     "multiply the bytes of images by X (default: 1/255; 1 for integer inputs)"},
    {0, "image-mean", OPT_TEXT, AT(image_mean), "R,G,B",
     "mean per channel, subtracted after scaling (default: ImageNet; integer inputs: none, and 128 "
     "for int8)"},
    {0, "image-std", OPT_TEXT, AT(image_std), "R,G,B",
     "standard deviation per channel (default: ImageNet; integer inputs: 1)"},
    {0, "image-bgr", OPT_FLAG, AT(image_bgr), NULL, "channels in the order blue, green, red"},
    {0, "image-raw", OPT_FLAG, AT(image_raw), NULL, "only scale: no mean and standard deviation"},
    {0}};
