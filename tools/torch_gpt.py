"""The model in plain PyTorch: GPT-2's architecture over characters, with nanoGPT's tensor names.

Shared by train.py, the converter's test and the script that makes the golden data. Attention is written out because Debian 12's torch
(1.13) has no public fused one. Shapes: B rows, T positions, W width, H heads, S = W/H head size, V vocabulary.
"""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def activation(name):
    """gelu (erf), gelu_new (tanh) or relu, by the names that configurations use."""
    return {
        "gelu": F.gelu,
        "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
        "relu": F.relu,
    }[name]


def dropout(x, p, training):
    """F.dropout with p rounded down to a multiple of 2^-16: one 64-bit draw serves four elements, which makes it four times as fast."""
    if not training or p == 0.0:
        return x
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = draws.view(torch.int16)[: x.numel()].view(x.shape) >= int(p * 65536) - 32768
    return x * kept.to(x.dtype).mul_(1.0 / (1.0 - p))


class LayerNorm(nn.Module):
    def __init__(self, width, bias, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.epsilon = epsilon

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, bias = config["n_embd"], config["bias"]
        self.num_heads = config["n_head"]
        self.dropout = config.get("dropout", 0.0)
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        mask = torch.full((config["n_positions"],) * 2, -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)
        self.weights = None  # [B, H, T, T] of the last pass, when keep_weights is set
        self.keep_weights = False

    def forward(self, x):
        rows, length, width = x.shape
        heads, size = self.num_heads, width // self.num_heads
        # [3, B·H, T, S]
        q, k, v = (
            self.c_attn(x).view(rows, length, 3, heads, size).permute(2, 0, 3, 1, 4).reshape(3, rows * heads, length, size)
        )
        mask = self.mask[:length, :length].expand(rows * heads, length, length)
        weights = torch.softmax(torch.baddbmm(mask, q, k.transpose(1, 2), alpha=1.0 / math.sqrt(size)), dim=-1)
        if self.keep_weights:
            self.weights = weights.view(rows, heads, length, length)
        weights = dropout(weights, self.dropout, self.training)
        mixed = torch.bmm(weights, v).view(rows, heads, length, size).transpose(1, 2).reshape(rows, length, width)
        return dropout(self.c_proj(mixed), self.dropout, self.training)


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, bias = config["n_embd"], config["bias"]
        inner = config.get("n_inner") or 4 * width
        self.c_fc = nn.Linear(width, inner, bias=bias)
        self.c_proj = nn.Linear(inner, width, bias=bias)
        self.activation = activation(config["activation_function"])
        self.dropout = config.get("dropout", 0.0)

    def forward(self, x):
        return dropout(self.c_proj(self.activation(self.c_fc(x))), self.dropout, self.training)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, bias, epsilon = config["n_embd"], config["bias"], config["layer_norm_epsilon"]
        self.ln_1 = LayerNorm(width, bias, epsilon)
        self.attn = Attention(config)
        self.ln_2 = LayerNorm(width, bias, epsilon)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """`config` has the names of the single-file form; `dropout` and `n_inner` are optional. state_dict() has nanoGPT's names without prefix."""

    def __init__(self, config):
        super().__init__()
        width = config["n_embd"]
        self.config = config
        self.wte = nn.Embedding(config["vocab_size"], width)
        self.wpe = nn.Embedding(config["n_positions"], width)
        self.h = nn.ModuleList(Block(config) for _ in range(config["n_layer"]))
        self.ln_f = LayerNorm(width, config["bias"], config["layer_norm_epsilon"])
        self.lm_head = nn.Linear(width, config["vocab_size"], bias=False)
        if config["tie_word_embeddings"]:
            self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        """tokens [B, T] -> logits [B, T, V]."""
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        x = dropout(x, self.config.get("dropout", 0.0), self.training)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))

    def tensors(self):
        """name -> float tensor, as stored in a file (one entry when the head is tied)."""
        state = {name: tensor.detach() for name, tensor in self.state_dict().items()}
        if self.config["tie_word_embeddings"]:
            del state["lm_head.weight"]
        return state


def initialize(model, seed):
    """Weights drawn from N(0, 1/fan-in), the two residual projections a further 1/sqrt(2·layers) smaller, embeddings 0.02."""
    generator = torch.Generator().manual_seed(seed)
    residual = 1.0 / math.sqrt(2 * model.config["n_layer"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.dim() == 1:
                parameter.fill_(1.0)
            elif name in ("wte.weight", "wpe.weight"):
                parameter.normal_(0.0, 0.02, generator=generator)
            else:
                scale = 1.0 / math.sqrt(parameter.shape[1]) * (residual if name.endswith("c_proj.weight") else 1.0)
                parameter.normal_(0.0, scale, generator=generator)
