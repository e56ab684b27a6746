/* SPDX-License-Identifier: Apache-2.0 */
/* The words of boolean.h. */
#include "base/boolean.h"

#include <stddef.h>
#include <strings.h>

bool sn_boolean_parse(const char *text, bool *value)
{
    static const struct {
        const char *text;
        bool value;
    } words[] = {{"1", true},  {"true", true},   {"t", true},  {"yes", true}, {"y", true},
                 {"0", false}, {"false", false}, {"f", false}, {"no", false}, {"n", false}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i].text) == 0) {
            *value = words[i].value;
            return true;
        }
    }
    return false;
}

bool sn_boolean_is_off(const char *text)
{
    bool value = true;
    return !text || !*text || (sn_boolean_parse(text, &value) && !value);
}
