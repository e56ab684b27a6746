/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates are sorted in their table; what is kept moves to its front. */
#include "compute/nms.h"

#include "compute/element.h"

typedef struct box {
    float y1, x1, y2, x2;
} box;

static box read_box(const sn_nms *r, const float *p)
{
    if (r->center) { /* x, y, width, height */
        float hw = p[2] / 2, hh = p[3] / 2;
        return (box){p[1] - hh, p[0] - hw, p[1] + hh, p[0] + hw};
    }
    return (box){p[0] < p[2] ? p[0] : p[2], p[1] < p[3] ? p[1] : p[3], p[0] < p[2] ? p[2] : p[0],
                 p[1] < p[3] ? p[3] : p[1]};
}

static bool overlaps(box a, box b, float threshold)
{
    float h = (a.y2 < b.y2 ? a.y2 : b.y2) - (a.y1 > b.y1 ? a.y1 : b.y1);
    float w = (a.x2 < b.x2 ? a.x2 : b.x2) - (a.x1 > b.x1 ? a.x1 : b.x1);
    if (h <= 0 || w <= 0)
        return false;
    float both = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - h * w;
    return both > 0 && h * w / both > threshold;
}

int64_t sn_nms_select(const sn_nms *p, const float *boxes, const float *scores, int64_t n,
                      sn_ranked *items)
{
    int64_t found = 0, kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (!p->has_score || scores[i] > p->score)
            items[found++] = (sn_ranked){sn_elem_key(SONDE_DTYPE_F32, scores, i), i};
    sn_ranked_sort(items, found);
    for (int64_t i = 0; i < found && kept < p->limit; i++) {
        const box a = read_box(p, boxes + 4 * items[i].index);
        bool keep = true;
        for (int64_t j = 0; keep && j < kept; j++)
            keep = !overlaps(a, read_box(p, boxes + 4 * items[j].index), p->overlap);
        if (keep)
            items[kept++] = items[i];
    }
    return kept;
}
