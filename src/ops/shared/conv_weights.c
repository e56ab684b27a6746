/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/shared/conv_weights.h"

#include "compute/conv_rows.h"
#include "compute/conv_tiles.h"
#include "compute/packs.h"
#include "ops/shared/converted.h"

/* Does f32 go by tiles of f16, in two halves? Lines that lie apart would be copied one by one. */
static bool in_halves(const sn_pack_request *r, uint32_t i, int64_t dilation_x)
{
    const sn_type *w = &r->in[i]->type;
    return dilation_x == 1 && r->in_block && r->out_block && sn_pack_may_halve(r, i) &&
           sn_conv_halves_pay(sn_pack_known_rows(r, 0, 1, 2), w->dims, w->rank,
                              sn_node_attr(r->node, "winograd") != NULL);
}

void sn_conv_weights_pack(sn_pack_request *r, uint32_t i, int64_t groups, int64_t dilation_x)
{
    const sn_fact *w = r->n_in > i ? r->in[i] : NULL;
    if (!w || !w->data || !sn_type_is_concrete(&w->type))
        return;
    const int64_t *dims = w->type.dims;
    const int rank = w->type.rank;
    const sn_dtype dtype = sn_pack_dtype(r, i);
    r->pack_arg[i] = groups;
    if (in_halves(r, i, dilation_x)) {
        r->pack[i] = (uint8_t)sn_conv_tiles_pack_id(SONDE_DTYPE_F32, dims, rank, groups,
                                                    r->in_block, r->out_block, r->cpu_flags);
        r->pack_arg[i] = sn_conv_tiles_pack_arg(groups, false, dims[rank - 1], dilation_x);
        if (r->pack[i] != SN_PACK_NONE)
            return;
        r->pack_arg[i] = groups;
    }
    if (sn_pack_by_tiles(r, i, sn_pack_rows(r, 0, 1))) {
        if (r->in_block == 0 && r->out_block == 0) {
            r->pack[i] = (uint8_t)sn_conv_rows_pack_id(dtype, dims, rank, groups, r->cpu_flags);
            return;
        }
        r->pack[i] = (uint8_t)sn_conv_tiles_pack_id(dtype, dims, rank, groups, r->in_block,
                                                    r->out_block, r->cpu_flags);
        if (r->pack[i] != SN_PACK_NONE) {
            r->pack_arg[i] =
                sn_conv_tiles_pack_arg(groups, r->in_block == 0, dims[rank - 1], dilation_x);
            return;
        }
    }
    r->pack[i] = (uint8_t)sn_conv_pack_id(dtype, dims, rank, groups, r->in_block, r->out_block,
                                          r->cpu_flags);
}

bool sn_conv_weights_in_tiles(const sn_fact *w)
{
    return w->pack == SN_PACK_F32_CONV_TILES16 || w->pack == SN_PACK_BF16_CONV_TILES16 ||
           w->pack == SN_PACK_F16_CONV_TILES16 || w->pack == SN_PACK_BF16_CONV_ROWS16;
}

uint32_t sn_conv_in_half(const sn_node *n, uint32_t x, uint32_t w, uint32_t z, int64_t groups,
                         sn_dtype half, uint32_t cpu_flags)
{
    const sn_value *image = n->in[x].value, *weight = n->in[w].value, *y = n->out[0];
    if (!image || !weight || !y || !weight->fact.data || weight->fact.type.rank != 4 ||
        !sn_type_is_concrete(&weight->fact.type) || !sn_pack_has_image_tiles(cpu_flags))
        return 0;
    const bool f16 = half == SONDE_DTYPE_F16;
    if (f16 && (weight->fact.type.dtype != half || !sn_pack_has_fast_tiles(cpu_flags)))
        return 0;
    const unsigned in = sn_fact_block(&image->fact), out = sn_fact_block(&y->fact);
    const int64_t *dims = weight->fact.type.dims;
    const bool blocks = in != 0 && in == out && out == sn_conv_block(cpu_flags);
    if (sn_conv_tiles_pack_id(half, dims, 4, groups, in, out, cpu_flags) == SN_PACK_NONE)
        return blocks && sn_conv_stores_planes(dims, 4, groups, out) ? 1u << x | SN_HALF_OUT : 0;
    return (in || f16 ? 1u << x : 0) | 1u << z | SN_HALF_OUT;
}

bool sn_conv_stored(const sn_bind *b, uint32_t x_in, uint32_t w, uint32_t z, sn_conv_desc *d)
{
    const sn_dtype halves[] = {b->in[x_in]->form.dtype, b->out[0].form.dtype,
                               b->n_in > z && b->in[z] ? b->in[z]->form.dtype : (sn_dtype)0};
    d->x_half = halves[0];
    d->y_half = halves[1];
    d->z_half = halves[2];
    d->f16 = b->in[w]->type.dtype == SONDE_DTYPE_F16;
    const int64_t dims[4] = {d->oc, d->c / sn_max(d->groups, 1), d->kernel[1], d->kernel[2]};
    const bool planes = d->packed && d->in_block != 0 && d->in_block == d->out_block &&
                        d->in[0] == 1 && d->kernel[0] == 1 &&
                        sn_conv_stores_planes(dims, 4, d->groups, d->out_block);
    if (!d->tiles)
        return planes ? !d->z_half : !d->x_half && !d->y_half && !d->z_half;
    /* Plain images of f16 are read by tiles of bf16, too. */
    const bool x =
        !d->x_half || d->x_half == d->w_dtype || (d->in_block == 0 && d->x_half == SONDE_DTYPE_F16);
    return x && (!d->y_half || d->y_half == d->w_dtype) && (!d->z_half || d->z_half == d->w_dtype);
}
