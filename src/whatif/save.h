/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files that write results. */
#ifndef SN_WHATIF_SAVE_H
#define SN_WHATIF_SAVE_H

#include "whatif/whatif.h"

sonde_status sn_whatif_write_xlsx(const sonde_whatif *r, sn_sink *sink, sonde_error *err);

#endif
