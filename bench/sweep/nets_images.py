# SPDX-License-Identifier: Apache-2.0
"""Networks on images, video and points that no library has in a small form. Each function
without a capital letter returns a torch module."""

import torch
from torch import nn
from torch.nn import functional as F


def conv_norm(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.SiLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([act()] if act else []))


class Residual(nn.Module):
    """x + scale · body(x)"""

    def __init__(self, *body, scale=1.0):
        super().__init__()
        self.body, self.scale = nn.Sequential(*body), scale

    def forward(self, x):
        return x + self.body(x) * self.scale


def depthwise_multiplier():
    """Depthwise convolutions that double the channels, and groups of few channels."""
    def block(width, stride):
        return nn.Sequential(nn.Conv2d(width, 2 * width, 7, stride, 3, groups=width), nn.BatchNorm2d(2 * width), nn.GELU(),
                             nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=width // 2), nn.ReLU(),
                             nn.Conv2d(2 * width, 2 * width, 1), nn.ReLU())
    return nn.Sequential(conv_norm(3, 24, 3, 2), block(24, 1), block(48, 2), block(96, 2), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(192, 100))


def edsr(width=48, blocks=8, scale=2):
    def block():
        return Residual(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), scale=0.1)
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), Residual(*(block() for _ in range(blocks))),
                         nn.Conv2d(width, width * scale**2, 3, padding=1), nn.PixelShuffle(scale),
                         nn.Conv2d(width, 3, 3, padding=1))


def espcn(scale=3):
    return nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, scale**2, 3, padding=1), nn.PixelShuffle(scale))


def style_transfer(width=32):
    """Reflection padding, instance normalisation, transposed convolutions."""
    def conv(inputs, outputs, kernel, stride=1):
        return [nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride),
                nn.InstanceNorm2d(outputs, affine=True)]
    def block():
        return Residual(*conv(2 * width, 2 * width, 3), nn.PReLU(), *conv(2 * width, 2 * width, 3))
    return nn.Sequential(*conv(3, width, 9), nn.PReLU(), *conv(width, 2 * width, 3, 2), nn.PReLU(), block(), block(),
                         nn.ConvTranspose2d(2 * width, width, 3, 2, 1, 1), nn.InstanceNorm2d(width, affine=True),
                         nn.PReLU(), nn.ReflectionPad2d(4), nn.Conv2d(width, 3, 9), nn.Tanh())


class UNet(nn.Module):
    def __init__(self, widths=(24, 48, 96, 192)):
        super().__init__()
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip((3, *widths), widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(self.block(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(conv_norm(inputs, outputs, act=nn.ReLU), conv_norm(outputs, outputs, act=nn.ReLU))

    def forward(self, x):
        kept = []
        for k, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if k else x)
            kept.append(x)
        for k in reversed(range(len(self.up))):
            x = self.join[k](torch.cat([kept[k], self.up[k](x)], 1))
        return self.head(x)


def unet():
    return UNet()


class YoloCsp(nn.Module):
    """A one-stage detector: cross-stage blocks, spatial pyramid, a path up and down, boxes decoded on a grid."""

    def __init__(self, width=16, classes=20):
        super().__init__()
        w = width
        self.stem = nn.Sequential(conv_norm(3, w, 3, 2), conv_norm(w, 2 * w, 3, 2), Csp(2 * w, 2 * w))
        self.p3 = nn.Sequential(conv_norm(2 * w, 4 * w, 3, 2), Csp(4 * w, 4 * w))
        self.p4 = nn.Sequential(conv_norm(4 * w, 8 * w, 3, 2), Csp(8 * w, 8 * w))
        self.p5 = nn.Sequential(conv_norm(8 * w, 16 * w, 3, 2), Csp(16 * w, 16 * w))
        self.squeeze, self.mix = conv_norm(16 * w, 8 * w, 1), conv_norm(32 * w, 8 * w, 1)
        self.up4, self.up3 = Csp(16 * w, 4 * w), Csp(8 * w, 4 * w)
        self.heads = nn.ModuleList(nn.Conv2d(c, 3 * (5 + classes), 1) for c in (4 * w, 4 * w, 8 * w))
        self.outputs = 5 + classes

    def forward(self, x):
        p3 = self.p3(self.stem(x))
        p4 = self.p4(p3)
        p5 = self.squeeze(self.p5(p4))
        a = F.max_pool2d(p5, 5, 1, 2)
        b = F.max_pool2d(a, 5, 1, 2)
        p5 = self.mix(torch.cat([p5, a, b, F.max_pool2d(b, 5, 1, 2)], 1))
        p4 = self.up4(torch.cat([F.interpolate(p5, scale_factor=2.0), p4], 1))
        p3 = self.up3(torch.cat([F.interpolate(p4, scale_factor=2.0), p3], 1))
        found = []
        for feature, head, stride in zip((p3, p4, p5), self.heads, (8, 16, 32)):
            n, side = 3, 320 // stride
            y = head(feature).view(1, n, self.outputs, side, side).permute(0, 1, 3, 4, 2).sigmoid()
            line = torch.arange(side, dtype=torch.float32)
            grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).view(1, 1, side, side, 2)
            xy, wh = (y[..., :2] * 2 - 0.5 + grid) * stride, (y[..., 2:4] * 2) ** 2 * stride
            found.append(torch.cat([xy, wh, y[..., 4:]], -1).view(1, n * side * side, self.outputs))
        return torch.cat(found, 1)


class Csp(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        half = outputs // 2
        self.enter = conv_norm(inputs, outputs, 1)
        self.body = Residual(conv_norm(half, half, 1), conv_norm(half, half, 3))
        self.leave = conv_norm(outputs, outputs, 1)

    def forward(self, x):
        a, b = self.enter(x).chunk(2, 1)
        return self.leave(torch.cat([a, self.body(b)], 1))


def yolo_csp():
    return YoloCsp()


class PointNet(nn.Module):
    """Points share one perceptron; a small network turns them first."""

    def __init__(self):
        super().__init__()
        self.turn, self.shared = self.points(3, 64, 128, 256), self.points(3, 64, 128, 512)
        self.matrix = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 9))
        self.head = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40))

    @staticmethod
    def points(*widths):
        return nn.Sequential(*(layer for a, b in zip(widths, widths[1:])
                               for layer in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())))

    def forward(self, x):
        turn = self.matrix(self.turn(x).amax(2)).view(-1, 3, 3) + torch.eye(3)
        return self.head(self.shared(torch.bmm(turn, x)).amax(2)).log_softmax(-1)


def pointnet():
    return PointNet()


class TimedBlock(nn.Module):
    """The residual block of diffusion networks: group normalisation, SiLU, the time added between."""

    def __init__(self, inputs, outputs, time=128):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Linear(time, outputs)
        self.second = nn.Sequential(nn.GroupNorm(8, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, time):
        return self.skip(x) + self.second(self.first(x) + self.time(F.silu(time))[:, :, None, None])


class Attend(nn.Module):
    """Attention over the pixels, to themselves and to a text."""

    def __init__(self, width, context=128, heads=4):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(8, width), heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.queries = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(2))
        self.others = nn.ModuleList(nn.Linear(c, 2 * width, bias=False) for c in (width, context))
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.gate, self.leave = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, context):
        size = x.shape[2:]
        y = self.norm(x).flatten(2).transpose(1, 2)
        for norm, query, other, out, source in zip(self.norms, self.queries, self.others, self.outs, (None, context)):
            z = norm(y)
            k, v = other(z if source is None else source).chunk(2, -1)
            z = F.scaled_dot_product_attention(self.split(query(z)), self.split(k), self.split(v))
            y = y + out(z.transpose(1, 2).flatten(2))
        a, b = self.gate(self.norms[2](y)).chunk(2, -1)
        y = y + self.leave(a * F.gelu(b))
        return x + y.transpose(1, 2).unflatten(2, size)


class DiffusionUNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        w = width
        self.register_buffer("rates", torch.exp(torch.arange(32) * -0.3))
        self.time = nn.Sequential(nn.Linear(64, 128), nn.SiLU(), nn.Linear(128, 128))
        self.enter = nn.Conv2d(4, w, 3, padding=1)
        self.down1, self.attend1, self.shrink = TimedBlock(w, w), Attend(w), nn.Conv2d(w, w, 3, 2, 1)
        self.down2, self.attend2 = TimedBlock(w, 2 * w), Attend(2 * w)
        self.middle = TimedBlock(2 * w, 2 * w)
        self.up2, self.attend3 = TimedBlock(4 * w, 2 * w), Attend(2 * w)
        self.widen = nn.Conv2d(2 * w, w, 3, padding=1)
        self.up1, self.attend4 = TimedBlock(2 * w, w), Attend(w)
        self.leave = nn.Sequential(nn.GroupNorm(8, w), nn.SiLU(), nn.Conv2d(w, 4, 3, padding=1))

    def forward(self, sample, timestep, context):
        angles = timestep[:, None] * 1000 * self.rates[None]
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        a = self.attend1(self.down1(self.enter(sample), time), context)
        b = self.attend2(self.down2(self.shrink(a), time), context)
        x = self.middle(b, time)
        x = self.attend3(self.up2(torch.cat([x, b], 1), time), context)
        x = self.widen(F.interpolate(x, scale_factor=2.0))
        return self.leave(self.attend4(self.up1(torch.cat([x, a], 1), time), context))


def diffusion_unet():
    return DiffusionUNet()


def vae_decoder(width=64):
    def block(inputs, outputs):
        body = [nn.GroupNorm(8, inputs), nn.SiLU(), nn.Conv2d(inputs, inputs, 3, padding=1)]
        return nn.Sequential(Residual(*body), nn.Upsample(scale_factor=2, mode="nearest"),
                             nn.Conv2d(inputs, outputs, 3, padding=1))
    return nn.Sequential(nn.Conv2d(4, 2 * width, 3, padding=1), block(2 * width, width), block(width, width // 2),
                         nn.GroupNorm(8, width // 2), nn.SiLU(), nn.Conv2d(width // 2, 3, 3, padding=1))


def dcgan(width=32):
    layers, widths = [nn.Unflatten(1, (100, 1, 1))], (100, 8 * width, 4 * width, 2 * width, width)
    for k, (a, b) in enumerate(zip(widths, widths[1:])):
        layers += [nn.ConvTranspose2d(a, b, 4, 2 if k else 1, 1 if k else 0, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1), nn.Tanh())


def x3d():
    """Depthwise convolutions in three dimensions between pointwise ones."""
    def norm(width):
        return nn.BatchNorm3d(width)
    def block(width):
        inner = 2 * width
        return Residual(nn.Conv3d(width, inner, 1), norm(inner), nn.ReLU(),
                        nn.Conv3d(inner, inner, 3, padding=1, groups=inner), norm(inner), nn.SiLU(),
                        nn.Conv3d(inner, width, 1), norm(width))
    layers = [nn.Conv3d(3, 24, (1, 3, 3), (1, 2, 2), (0, 1, 1)), nn.Conv3d(24, 24, (5, 1, 1), padding=(2, 0, 0), groups=24)]
    for a, b in ((24, 24), (24, 48), (48, 96)):
        layers += [nn.Conv3d(a, b, 1, (1, 2, 2)), norm(b), nn.ReLU(), block(b), block(b)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(96, 100))


class UNet3d(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.a, self.b, self.c = self.block(1, width), self.block(width, 2 * width), self.block(3 * width, width)
        self.up, self.head = nn.ConvTranspose3d(2 * width, 2 * width, 2, 2), nn.Conv3d(width, 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv3d(inputs, outputs, 3, padding=1), nn.InstanceNorm3d(outputs, affine=True),
                             nn.LeakyReLU(0.01), nn.Conv3d(outputs, outputs, 3, padding=1), nn.LeakyReLU(0.01))

    def forward(self, x):
        a = self.a(x)
        return self.head(self.c(torch.cat([a, self.up(self.b(F.max_pool3d(a, 2)))], 1)))


def unet3d():
    return UNet3d()
