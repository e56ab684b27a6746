// SPDX-License-Identifier: Apache-2.0
// The public header alone, in C++.
#include <cstdio>
#include <sonde/sonde.h>

int main()
{
    sonde_run_options options = SONDE_INIT(sonde_run_options);
    if (options.struct_size != sizeof options)
        return 1;
    std::printf("sonde %s\n", sonde_version());
    return sonde_dtype_bytes(SONDE_DTYPE_F32) == 4 ? 0 : 1;
}
