/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that signal models begin with: window functions and mel filter banks, computed in double
 * and stored as any number. */
#ifndef SN_COMPUTE_SIGNAL_TABLES_H
#define SN_COMPUTE_SIGNAL_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "sonde/types.h"

typedef enum sn_window_kind {
    SN_WINDOW_HANN,
    SN_WINDOW_HAMMING,
    SN_WINDOW_BLACKMAN
} sn_window_kind;
/* n values; periodic: of a window of n + 1 without its last, as spectra want it. */
void sn_window_run(sn_window_kind kind, bool periodic, sonde_dtype t, void *y, int64_t n);

/* y [rows][bands]: how much of each spectrogram bin goes into each mel band. */
typedef struct sn_mel_bank {
    int64_t rows, bands;
    double dft_length, sample_rate; /* of the spectrogram; the rate is positive */
    double low, high;               /* hertz, edges of the first and the last band */
} sn_mel_bank;
void sn_mel_bank_run(const sn_mel_bank *m, sonde_dtype t, void *y);

#endif
