# SPDX-License-Identifier: Apache-2.0
"""Networks on text, graphs, tables and series that no library has in a small form. Each function without a capital
letter returns a torch module."""

import torch
from torch import nn
from torch.nn import functional as F

from nets_sound import heads


class Tagger(nn.Module):
    def __init__(self, layer, **options):
        super().__init__()
        self.embed, self.recurrent = nn.Embedding(1000, 96), layer(96, 128, batch_first=True, **options)
        self.head = nn.Linear(256 if options.get("bidirectional") else 128, 20)

    def forward(self, input_ids):
        return self.head(self.recurrent(self.embed(input_ids))[0]).log_softmax(-1)


def lstm_tagger():
    return Tagger(nn.LSTM, num_layers=2, bidirectional=True)


def gru_tagger():
    return Tagger(nn.GRU, num_layers=2)


class Seq2seq(nn.Module):
    """An encoder, and a decoder that attends to it in eight steps."""

    def __init__(self, width=128):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(1000, width), nn.GRU(width, width, batch_first=True)
        self.cell, self.head = nn.GRUCell(2 * width, width), nn.Linear(width, 1000)

    def forward(self, input_ids):
        memory, last = self.encoder(self.embed(input_ids))
        state, word, outputs = last[0], self.embed(input_ids[:, 0]), []
        for _ in range(8):
            weights = torch.softmax(torch.bmm(memory, state[:, :, None]), 1)
            state = self.cell(torch.cat([word, (weights * memory).sum(1)], -1), state)
            outputs.append(self.head(state))
            word = self.embed(outputs[-1].argmax(-1))
        return torch.stack(outputs, 1)


def seq2seq():
    return Seq2seq()


class TextCnn(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.convolutions = nn.ModuleList(nn.Conv1d(width, 100, k) for k in (3, 4, 5))
        self.head = nn.Linear(300, 5)

    def forward(self, input_ids):
        x = self.embed(input_ids).transpose(1, 2)
        return self.head(torch.cat([F.relu(c(x)).amax(2) for c in self.convolutions], 1))


def text_cnn():
    return TextCnn()


class LinearAttention(nn.Module):
    """Causal attention without a softmax: running sums of keys times values."""

    def __init__(self, width=128, layers=3, count=4):
        super().__init__()
        self.count, self.embed, self.head = count, nn.Embedding(1000, width), nn.Linear(width, 1000)
        self.qkv = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(layers))
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for qkv, out, norm in zip(self.qkv, self.out, self.norms):
            q, k, v = (heads(y, self.count) for y in qkv(norm(x)).chunk(3, -1))
            q, k = F.elu(q) + 1, F.elu(k) + 1
            sums = (k[..., :, None] * v[..., None, :]).cumsum(2)
            y = (q[..., None, :] @ sums).squeeze(-2) / (q * k.cumsum(2)).sum(-1, keepdim=True)
            x = x + out(y.transpose(1, 2).flatten(2))
        return self.head(x)


def linear_attention():
    return LinearAttention()


class Experts(nn.Module):
    """A layer of eight experts, all computed, the best two kept."""

    def __init__(self, width=128, inner=256, experts=8):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.enter = nn.Parameter(torch.randn(experts, width, 2 * inner) * 0.05)
        self.leave = nn.Parameter(torch.randn(experts, inner, width) * 0.05)

    def forward(self, x):
        rows = x.flatten(0, 1)
        best, which = torch.topk(self.gate(rows), 2, -1)
        weights = torch.zeros(rows.shape[0], self.gate.out_features).scatter(1, which, best.softmax(-1))
        a, b = torch.matmul(rows[None], self.enter).chunk(2, -1)
        each = torch.matmul(F.silu(a) * b, self.leave)
        return x + torch.einsum("te,ted->td", weights, each.transpose(0, 1)).unflatten(0, x.shape[:2])


def mixture_of_experts():
    return nn.Sequential(Experts(), nn.LayerNorm(128), Experts(), nn.LayerNorm(128))


class Gnn(nn.Module):
    """Messages along edges: gathered, changed, added up where they arrive."""

    def __init__(self, width=64, layers=3):
        super().__init__()
        self.enter = nn.Linear(32, width)
        self.message = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.update = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, nodes, edges):
        x = F.relu(self.enter(nodes))
        for message, update in zip(self.message, self.update):
            sent = F.relu(message(torch.cat([x[edges[0]], x[edges[1]]], -1)))
            got = torch.zeros_like(x).index_put((edges[1],), sent, accumulate=True)
            x = F.relu(update(torch.cat([x, got], -1)))
        return self.head(x)


def gnn():
    return Gnn()


class GraphAttention(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.enter, self.head = nn.Linear(32, width), nn.Linear(width, 10)
        self.source, self.target = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, nodes, edges):
        x = self.enter(nodes)
        score = F.leaky_relu(self.source(x)[edges[0]] + self.target(x)[edges[1]], 0.2)
        power = torch.exp(score - score.max())
        index = edges[1][:, None]
        total = torch.zeros(x.shape[0], 1).scatter_add(0, index, power)
        sent = x[edges[0]] * power / (total[edges[1]] + 1e-9)
        return self.head(F.elu(torch.zeros_like(x).scatter_add(0, index.expand(-1, x.shape[1]), sent)))


def graph_attention():
    return GraphAttention()


class NBeats(nn.Module):
    """Stacks of perceptrons, each taking away what it explains."""

    def __init__(self, past=96, future=24, width=128, blocks=6):
        super().__init__()
        self.past = past
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(past, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width),
                          nn.ReLU(), nn.Linear(width, past + future)) for _ in range(blocks))

    def forward(self, series):
        forecast = 0
        for block in self.blocks:
            y = block(series)
            series, forecast = series - y[:, :self.past], forecast + y[:, self.past:]
        return forecast


def nbeats():
    return NBeats()


class Dlrm(nn.Module):
    """Recommendation: embeddings and a perceptron, multiplied in pairs."""

    def __init__(self, width=32, tables=8):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(1000, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 128), nn.ReLU(), nn.Linear(128, width), nn.ReLU())
        pairs = [(i, j) for i in range(tables + 1) for j in range(i)]
        self.register_buffer("pairs", torch.tensor([i * (tables + 1) + j for i, j in pairs]))
        self.top = nn.Sequential(nn.Linear(width + len(pairs), 256), nn.ReLU(), nn.Linear(256, 1), nn.Sigmoid())

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        rows = torch.stack([x, *(table(sparse[:, k]) for k, table in enumerate(self.tables))], 1)
        products = torch.bmm(rows, rows.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([x, products.index_select(1, self.pairs)], 1))


def dlrm():
    return Dlrm()


class TabTransformer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.place = nn.Embedding(50, width), nn.Parameter(torch.randn(12, width))
        layer = nn.TransformerEncoderLayer(width, 4, 128, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(10)
        self.head = nn.Sequential(nn.Linear(12 * width + 10, 128), nn.SELU(), nn.Linear(128, 2))

    def forward(self, numbers, classes):
        x = self.encoder(self.embed(classes) + self.place)
        return self.head(torch.cat([x.flatten(1), self.norm(numbers)], 1))


def tab_transformer():
    return TabTransformer()
