/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator says of the forms of its values (graph/form.h). The passes that choose forms
 * know operators by this alone: one word for element types, one signature for layouts. */
#ifndef SN_OPS_FRAMEWORK_SIGNATURE_H
#define SN_OPS_FRAMEWORK_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

/* What an operator does with 16-bit floats (f16, bf16). */
typedef enum sn_half {
    SN_HALF_AS_TYPED, /* its values have the type of the file: it rounds to it, compares, or needs
                         it for another reason */
    SN_HALF_IN_F32,   /* it computes in f32: what it reads and makes may be f32 instead */
    SN_HALF_MOVED, /* it moves elements without looking at them: all of them may be f32 instead */
} sn_half;

/* What a port does in a signature. */
typedef enum sn_port_form {
    SN_PORT_NATIVE, /* has the native form */
    SN_PORT_SAME,   /* has the form of the signature, as all ports that say so */
    SN_PORT_ANY,    /* an input that is taken however it lies */
} sn_port_form;

enum {
    SN_SIGNATURE_INPUTS = 32,
    SN_COST_MOVE = 16,         /* unit of costs: writing an image in another layout costs so much */
    SN_COST_NEVER = UINT16_MAX /* native_cost of what is always taken in the form */
};

/* All ports of a node together, in one form that is not native. The native signature, with all
 * ports native, needs no words. */
typedef struct sn_op_signature {
    uint8_t in[SN_SIGNATURE_INPUTS]; /* SN_PORT_* of the first inputs … */
    uint8_t out;                     /* … and of output 0 */
    bool all_in, all_out;            /* SN_PORT_SAME for every one, however many there are */
    uint16_t native_cost; /* what the node loses where its ports are native; 0: it does not care and
                             follows its neighbours */
} sn_op_signature;

static inline sn_port_form sn_op_signature_in(const sn_op_signature *s, uint32_t i)
{
    if (s->all_in)
        return SN_PORT_SAME;
    return i < SN_SIGNATURE_INPUTS ? (sn_port_form)s->in[i] : SN_PORT_NATIVE;
}
static inline sn_port_form sn_op_signature_out(const sn_op_signature *s, uint32_t o)
{
    if (s->all_out)
        return SN_PORT_SAME;
    return o == 0 ? (sn_port_form)s->out : SN_PORT_NATIVE;
}

#endif
