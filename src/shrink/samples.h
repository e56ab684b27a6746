/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files of samples: the list of them, and what is read from files and folders. */
#ifndef SN_SHRINK_SAMPLES_H
#define SN_SHRINK_SAMPLES_H

#include "api/internal.h"
#include "sonde/experimental/samples.h"

/* Where samples come from: values in memory, or files that are read when their turn comes. */
typedef struct sn_sample_source {
    sonde_value_set *set; /* values: one sample as it is (`whole`), or arrays of samples */
    bool whole;
    const char *const *paths; /* NULL: values. Images: a batch of them; else test data in order */
    const size_t *inputs;     /* of test data: the input of each path */
    size_t n_paths;
    const sonde_image_options *image; /* NULL: test data */
    const char *input;                /* of images */
    size_t count;
} sn_sample_source;

struct sonde_samples {
    sonde_context *context;
    sonde_session *session; /* knows the inputs; runs nothing */
    sn_arena arena;
    SN_VEC(sn_sample_source) sources;
    size_t count;
    size_t most;      /* SIZE_MAX: all */
    size_t left_over; /* rows and images in no sample */
    size_t skipped;   /* files of folders that cannot be read */
};

/* samples.c */
/* An error lists the inputs there are. */
sonde_status sn_samples_input(const sonde_samples *s, const char *name, sonde_type_info *info,
                              sonde_error *err);
sonde_status sn_samples_push(sonde_samples *s, const sn_sample_source *source, sonde_error *err);
/* Another sample would not be taken. */
bool sn_samples_are_enough(const sonde_samples *s);
/* One sample (`one`) or arrays of them. Takes the set over, also on failure. */
sonde_status sn_samples_push_set(sonde_samples *s, sonde_value_set *set, bool one,
                                 sonde_error *err);
/* Whether an array of these dims may be samples of input `name` beside those before it: *first is
 * the input that has *count of them, NULL and 1 at first. */
sonde_status sn_samples_fit(const sonde_samples *s, const char *name, const int64_t *dims,
                            size_t rank, const char **first, size_t *count, sn_arena *arena,
                            sonde_error *err);
/* Sample `index` of arrays. */
sonde_status sn_samples_cut(const sonde_samples *s, const sonde_value_set *set, size_t index,
                            sonde_value_set *out, sonde_error *err);

#endif
