# SPDX-License-Identifier: Apache-2.0
"""Networks on sound and other signals over time that no library has in a small form. Each function without a capital
letter returns a torch module."""

import torch
from torch import nn
from torch.nn import functional as F


def heads(x, count):
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


class Conformer(nn.Module):
    """Half feed-forward, attention, gated depthwise convolution, half feed-forward."""

    class Block(nn.Module):
        def __init__(self, width, count=4):
            super().__init__()
            self.count = count
            self.feeds = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                                                     nn.Linear(4 * width, width)) for _ in range(2))
            self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.convolve_norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
            self.enter, self.leave = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(width, width, 1)
            self.deep, self.batch = nn.Conv1d(width, width, 15, padding=7, groups=width), nn.BatchNorm1d(width)

        def forward(self, x):
            x = x + 0.5 * self.feeds[0](x)
            q, k, v = (heads(y, self.count) for y in self.qkv(self.norm(x)).chunk(3, -1))
            x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
            y = F.glu(self.enter(self.convolve_norm(x).transpose(1, 2)), 1)
            x = x + self.leave(F.silu(self.batch(self.deep(y)))).transpose(1, 2)
            return self.last(x + 0.5 * self.feeds[1](x))

    def __init__(self, width=144, blocks=4):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 32, 3, 2), nn.ReLU())
        self.enter = nn.Linear(32 * 19, width)
        self.blocks = nn.Sequential(*(self.Block(width) for _ in range(blocks)))
        self.head = nn.Linear(width, 256)

    def forward(self, features):
        x = self.front(features[:, None])
        return self.head(self.blocks(self.enter(x.transpose(1, 2).flatten(2)))).log_softmax(-1)


def conformer():
    return Conformer()


class ConvTasNet(nn.Module):
    """Speakers apart: a learned filter bank, dilated depthwise convolutions, masks."""

    class Block(nn.Module):
        def __init__(self, width, inner, dilation):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv1d(width, inner, 1), nn.PReLU(), nn.GroupNorm(1, inner),
                nn.Conv1d(inner, inner, 3, padding=dilation, dilation=dilation, groups=inner), nn.PReLU(),
                nn.GroupNorm(1, inner))
            self.stay, self.skip = nn.Conv1d(inner, width, 1), nn.Conv1d(inner, width, 1)

        def forward(self, x):
            y = self.body(x)
            return x + self.stay(y), self.skip(y)

    def __init__(self, filters=128, width=64, inner=128, speakers=2):
        super().__init__()
        self.speakers = speakers
        self.encode, self.decode = nn.Conv1d(1, filters, 16, 8), nn.ConvTranspose1d(filters, 1, 16, 8)
        self.enter = nn.Sequential(nn.GroupNorm(1, filters), nn.Conv1d(filters, width, 1))
        self.blocks = nn.ModuleList(self.Block(width, inner, 2**k) for _ in range(2) for k in range(6))
        self.mask = nn.Sequential(nn.PReLU(), nn.Conv1d(width, speakers * filters, 1), nn.Sigmoid())

    def forward(self, wave):
        coded = F.relu(self.encode(wave))
        x, total = self.enter(coded), 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        masks = self.mask(total).unflatten(1, (self.speakers, -1))
        return torch.cat([self.decode(coded * masks[:, k]) for k in range(self.speakers)], 1)


def conv_tasnet():
    return ConvTasNet()


class Vocoder(nn.Module):
    """From a mel spectrogram to sound: transposed convolutions, then sums of residual stacks of several kernels."""

    class Stack(nn.Module):
        def __init__(self, width, kernel):
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv1d(width, width, kernel, padding=kernel // 2 * d, dilation=d)
                                        for d in (1, 3, 5))

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(F.leaky_relu(x, 0.1))
            return x

    def __init__(self, width=64):
        super().__init__()
        self.enter = nn.Conv1d(80, width, 7, padding=3)
        self.ups, self.stacks = nn.ModuleList(), nn.ModuleList()
        for rate, kernel in ((8, 16), (8, 16), (2, 4)):
            self.ups.append(nn.ConvTranspose1d(width, width // 2, kernel, rate, (kernel - rate) // 2))
            width //= 2
            self.stacks.append(nn.ModuleList(self.Stack(width, k) for k in (3, 7, 11)))
        self.leave = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, mel):
        x = self.enter(mel)
        for up, stacks in zip(self.ups, self.stacks):
            x = up(F.leaky_relu(x, 0.1))
            x = (stacks[0](x) + stacks[1](x) + stacks[2](x)) / 3
        return torch.tanh(self.leave(F.leaky_relu(x, 0.01)))


def vocoder():
    return Vocoder()


def kws_dscnn(width=64):
    layers = [nn.Conv2d(1, width, (10, 4), 2, (5, 1)), nn.BatchNorm2d(width), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(width, width, 3, padding=1, groups=width), nn.BatchNorm2d(width), nn.ReLU(),
                   nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 12), nn.Softmax(-1))


class Step(nn.Module):
    """A residual block of two convolutions over time."""

    def __init__(self, inputs, outputs, kernel, stride=1, dilation=1):
        super().__init__()
        pad = (kernel - 1) // 2 * dilation
        self.body = nn.Sequential(nn.Conv1d(inputs, outputs, kernel, stride, pad, dilation, bias=False),
                                  nn.BatchNorm1d(outputs), nn.ReLU(),
                                  nn.Conv1d(outputs, outputs, kernel, 1, pad, dilation, bias=False),
                                  nn.BatchNorm1d(outputs))
        plain = inputs == outputs and stride == 1
        self.skip = nn.Identity() if plain else nn.Conv1d(inputs, outputs, 1, stride)

    def forward(self, x):
        return F.relu(self.skip(x) + self.body(x))


def kws_tcresnet():
    return nn.Sequential(nn.Conv1d(40, 16, 3, padding=1), Step(16, 24, 9, 2), Step(24, 32, 9, 2), Step(32, 48, 9, 2),
                         nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(48, 12))


def tcn(width=48):
    return nn.Sequential(Step(8, width, 3), *(Step(width, width, 3, 1, 2**k) for k in range(1, 7)),
                         nn.Conv1d(width, 1, 1))


class Vad(nn.Module):
    """Voice activity in a chunk of 32 ms: a spectrum by convolution, an encoder, one step of an LSTM cell."""

    def __init__(self):
        super().__init__()
        self.spectrum = nn.Conv1d(1, 258, 256, 128, bias=False)
        widths = ((129, 64, 1), (64, 32, 2), (32, 32, 2), (32, 64, 1))
        self.encoder = nn.Sequential(*(layer for a, b, s in widths for layer in (nn.Conv1d(a, b, 3, s, 1), nn.ReLU())))
        self.cell, self.head = nn.LSTM(64, 64), nn.Conv1d(64, 1, 1)

    def forward(self, chunk, state):
        x = self.spectrum(F.pad(chunk[:, None], (0, 64), mode="reflect"))
        x = self.encoder((x[:, :129] ** 2 + x[:, 129:] ** 2).sqrt())
        out, (h, c) = self.cell(x.permute(2, 0, 1), (state[:1], state[1:]))
        speech = torch.sigmoid(self.head(F.relu(out.permute(1, 2, 0)))).mean(2)
        return speech, torch.cat([h, c])


def vad():
    return Vad()


class Crnn(nn.Module):
    """A line of text: convolutions, then two LSTM layers in both directions."""

    def __init__(self):
        super().__init__()
        layers, pools = [], (2, 2, (2, 1), (2, 1), (2, 1))
        for a, b, pool in zip((1, 32, 64, 96, 128), (32, 64, 96, 128, 128), pools):
            layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(pool)]
        self.body, self.lstm = nn.Sequential(*layers), nn.LSTM(128, 96, 2, bidirectional=True)
        self.head = nn.Linear(192, 80)

    def forward(self, line):
        return self.head(self.lstm(self.body(line).squeeze(2).permute(2, 0, 1))[0]).log_softmax(-1)


def crnn():
    return Crnn()


class Rnnoise(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.first = nn.Linear(42, 24), nn.GRU(24, 24, batch_first=True)
        self.noise, self.gain = nn.GRU(90, 48, batch_first=True), nn.GRU(114, 96, batch_first=True)
        self.voice, self.gains = nn.Linear(24, 1), nn.Linear(96, 22)

    def forward(self, features):
        x = torch.tanh(self.enter(features))
        a, _ = self.first(x)
        b, _ = self.noise(torch.cat([x, a, features], -1))
        c, _ = self.gain(torch.cat([a, b, features], -1))
        return torch.sigmoid(self.gains(c)), torch.sigmoid(self.voice(a))


def rnnoise():
    return Rnnoise()
