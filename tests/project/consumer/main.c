/* SPDX-License-Identifier: Apache-2.0 */
/* The public header alone, in plain C. */
#include <sonde/sonde.h>
#include <stdio.h>

int main(void)
{
    sonde_run_options options = SONDE_INIT(sonde_run_options);
    if (options.struct_size != sizeof options)
        return 1;
    printf("sonde %s\n", sonde_version());
    return 0;
}
