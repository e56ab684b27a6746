/* SPDX-License-Identifier: Apache-2.0 */
/* What a Chrome trace says beside its events, once for those who write it and those who read it:
 * each key is the name of a field. */
#ifndef SN_PROFILE_CHROME_KEYS_H
#define SN_PROFILE_CHROME_KEYS_H

enum { SN_CHROME_FIRST_THREAD = 100 }; /* lanes (tid) below are no threads */

#define SN_CHROME_MEMORY(X)                                                                        \
    X(mapped)                                                                                      \
    X(constants)                                                                                   \
    X(packed)                                                                                      \
    X(arenas)                                                                                      \
    X(workspaces)                                                                                  \
    X(outputs)                                                                                     \
    X(held)                                                                                        \
    X(held_peak)                                                                                   \
    X(rss)                                                                                         \
    X(rss_peak)                                                                                    \
    X(rss_anon)                                                                                    \
    X(rss_file)
#define SN_CHROME_LIFE(X)   X(table) X(first) X(last) X(offset) X(bytes) /* name and place: texts */
#define SN_CHROME_USAGE(X)  X(cpu_ns) X(minor_faults) X(major_faults) X(voluntary) X(involuntary)
#define SN_CHROME_COUNTS(X) X(calls) X(cycles) X(instructions) X(cache_misses) X(branch_misses)

#endif
