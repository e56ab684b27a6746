/* SPDX-License-Identifier: Apache-2.0 */
/* A voice-activity detector for a stream of samples at 16 kHz: frames by STFT, log-mel energies,
 * three 1-d convolutions, an LSTM whose state comes in and goes out, and one probability per pair
 * of frames. The structure is our own, in the manner of the small detectors in use (spectrogram,
 * convolutions, LSTM, sigmoid). */
#include <math.h>

#include "zoo/blocks.h"

#define F32 SONDE_DTYPE_F32
#define I64 SONDE_DTYPE_I64

enum { RATE = 16000 };

typedef struct vad {
    int64_t frame, hop;     /* samples */
    int64_t mels, channels; /* features of a frame, before and after the convolutions */
    int64_t hidden;
    int64_t samples; /* size by default */
} vad;

/* [batch, samples] ► [batch, mels, frames]. */
static sn_value *features(sn_builder *b, const vad *v, sn_value *x)
{
    const char *path = "features";
    const int64_t last = -1;
    sn_value *frame = sn_blk_int(b, path, v->frame);
    sn_value *window = sn_blk_unary(b, path, "HannWindow", frame);
    sn_value *filters =
        sn_b_op(b, path, "MelWeightMatrix",
                SN_IN(sn_blk_int(b, path, v->mels), frame, sn_blk_int(b, path, RATE),
                      sn_b_scalar(b, path, 0.0f), sn_b_scalar(b, path, (float)RATE / 2.0f)),
                SN_NO_ATTRS);
    sn_value *signal = sn_blk_axis(b, path, "Unsqueeze", x, -1);
    x = sn_b_op(b, path, "STFT", SN_IN(signal, sn_blk_int(b, path, v->hop), window, frame),
                SN_ATTRS(sn_a_int("onesided", 1)));
    x = sn_blk_binary(b, path, "Mul", x, x);
    x = sn_b_op(b, path, "ReduceSum", SN_IN(x, sn_blk_ints(b, path, &last, 1)),
                SN_ATTRS(sn_a_int("keepdims", 0)));
    x = sn_blk_binary(b, path, "MatMul", x, filters);
    x = sn_blk_binary(b, path, "Add", x, sn_b_scalar(b, path, 1e-5f));
    x = sn_blk_unary(b, path, "Log", x);
    return sn_blk_transpose(b, path, x, (const int64_t[]){0, 2, 1}, 3);
}

/* Three wide, ReLU behind. */
static sn_value *conv(sn_builder *b, const char *path, sn_value *x, int64_t in, int64_t out,
                      int64_t stride)
{
    const int64_t dims[3] = {out, in, 3}, one = 1, pads[2] = {1, 1};
    sn_value *w = sn_b_weight(b, sn_b_name(b, path, "weight"), dims, 3, in * 3);
    sn_value *bias = sn_b_uniform(b, sn_b_name(b, path, "bias"), &out, 1, 0.0f, 0.1f);
    x = sn_b_op(b, path, "Conv", SN_IN(x, w, bias),
                SN_ATTRS(sn_a_ints("dilations", &one, 1), sn_a_int("group", 1),
                         sn_a_ints("kernel_shape", &dims[2], 1), sn_a_ints("pads", pads, 2),
                         sn_a_ints("strides", &stride, 1)));
    return sn_blk_unary(b, path, "Relu", x);
}

/* state: h and c, replaced by those after the last frame. The output is [frames, batch, hidden]. */
static sn_value *lstm(sn_builder *b, const char *path, sn_value *x, int64_t in, int64_t hidden,
                      sn_value *state[2])
{
    const int64_t w_dims[3] = {1, 4 * hidden, in}, r_dims[3] = {1, 4 * hidden, hidden};
    const int64_t b_dims[2] = {1, 8 * hidden};
    const float half = 1.0f / sqrtf((float)hidden); /* torch's own range */
    sn_value *w = sn_b_uniform(b, sn_b_name(b, path, "weight_ih_l0"), w_dims, 3, 0.0f, half);
    sn_value *r = sn_b_uniform(b, sn_b_name(b, path, "weight_hh_l0"), r_dims, 3, 0.0f, half);
    sn_value *bias = sn_b_uniform(b, sn_b_name(b, path, "bias_l0"), b_dims, 2, 0.0f, half);
    sn_value *out[3];
    sn_b_multi(b, path, "LSTM", SN_IN(x, w, r, bias, NULL, state[0], state[1]),
               SN_ATTRS(sn_a_int("hidden_size", hidden)), out, 3);
    state[0] = out[1];
    state[1] = out[2];
    return sn_blk_axis(b, path, "Squeeze", out[0], 1);
}

static sonde_status build(sn_model *m, uint64_t seed, const vad *v, sonde_error *err)
{
    sn_builder b;
    sn_b_init(&b, m, 17, seed, err);
    const sn_dim batch = sn_b_symbol(&b, "batch", 1);
    const sn_dim samples = sn_b_symbol(&b, "samples", v->samples);
    const sn_dim dims[3] = {1, batch, v->hidden};
    sn_value *x = sn_b_input(&b, "input", F32, (const sn_dim[]){batch, samples}, 2);
    sn_value *state[2] = {sn_b_input(&b, "h0", F32, dims, 3), sn_b_input(&b, "c0", F32, dims, 3)};

    x = features(&b, v, x);
    x = conv(&b, "encoder.0", x, v->mels, v->channels, 1);
    x = conv(&b, "encoder.1", x, v->channels, v->channels, 2);
    x = conv(&b, "encoder.2", x, v->channels, v->channels, 1);
    x = sn_blk_transpose(&b, "", x, (const int64_t[]){2, 0, 1}, 3);
    x = lstm(&b, "rnn", x, v->channels, v->hidden, state);
    x = sn_b_project(&b, x, "decoder", v->hidden, 1);
    x = sn_blk_axis(&b, "", "Squeeze", x, -1);
    x = sn_blk_transpose(&b, "", x, (const int64_t[]){1, 0}, 2);
    x = sn_blk_unary(&b, "", "Sigmoid", x);

    sn_b_output(&b, x, "probability", F32, (const sn_dim[]){batch, SN_DIM_UNKNOWN}, 2);
    sn_b_output(&b, state[0], "hn", F32, dims, 3);
    sn_b_output(&b, state[1], "cn", F32, dims, 3);
    return *b.status;
}

/* Frame, hop, mels, channels, hidden, default samples. */
#define VAD(id, ...)                                                                               \
    sonde_status sn_zoo_build_##id(sn_model *m, uint64_t seed, sonde_error *err)                   \
    {                                                                                              \
        return build(m, seed, &(const vad){__VA_ARGS__}, err);                                     \
    }
VAD(speech_vad, 400, 160, 40, 64, 128, 16000)
VAD(tiny_vad, 64, 32, 8, 8, 8, 640)
