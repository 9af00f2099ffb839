"""A small transformer over characters and the texts that it reads, for lm_torch.py."""
import gzip, math, re

import torch
from torch import nn
from torch.nn import functional as F

# The characters are those of printable ASCII and the newline; others are dropped.
ALPHABET = "\n" + "".join(map(chr, range(32, 127)))
CODES = {c: i for i, c in enumerate(ALPHABET)}


def read(path):
    """Returns the codes of a text, gzipped or not: a line a paragraph, of spaces one. Paragraphs
    of less than 40 characters, such as headings and tables of contents, are left out."""
    raw = (gzip.open if path.endswith(".gz") else open)(path, "rb").read().decode("utf-8", "ignore")
    paragraphs = (" ".join(p.split()) for p in re.split(r"\n\s*\n", raw))
    return torch.tensor([CODES[c] for p in paragraphs if len(p) >= 40 for c in p + "\n" if c in CODES], dtype=torch.long)


def split(codes, context, block=64):
    """Returns windows of context + 1 characters to train on, to choose by and to test on: of every
    ten stretches of block windows eight, one and one, so that all three are of the whole text."""
    windows = codes[:(len(codes) - 1) // context * context + 1].unfold(0, context + 1, context)
    of = torch.arange(len(windows)) // block % 10
    return windows[of < 8], windows[of == 8], windows[of == 9]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, mask):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, 2))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[3]) + mask, 3)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """Decoder of layers blocks, whose output weights are those of its embedding."""

    def __init__(self, width=96, layers=2, heads=4, context=64):
        super().__init__()
        self.shape = {"width": width, "layers": layers, "heads": heads, "context": context}
        self.embedding, self.position = nn.Embedding(len(ALPHABET), width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.bias = nn.LayerNorm(width), nn.Parameter(torch.zeros(len(ALPHABET)))
        self.register_buffer("mask", torch.full((context, context), -math.inf).triu(1), persistent=False)
        for p in (self.embedding.weight, self.position.weight):
            nn.init.normal_(p, std=0.02)

    def forward(self, codes):
        t = codes.shape[1]
        x = self.embedding(codes) + self.position.weight[:t]
        for b in self.blocks:
            x = b(x, self.mask[:t, :t])
        return F.linear(self.norm(x), self.embedding.weight, self.bias)

    def losses(self, windows):
        """Returns the mean loss of each window, and the share of characters foretold right."""
        logits, wanted = self(windows[:, :-1]), windows[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="none").view(wanted.shape)
        return loss.mean(1), (logits.argmax(2) == wanted).float().mean(1)


def trained(net, kinds):
    """Returns the parameters of some kinds, such as "norms+biases"; the others stay as they are."""
    def kind(name):
        if "norm" in name:
            return "norms"
        if name.endswith("bias"):
            return "biases"
        return name.split(".")[0] if "blocks" not in name else "weights"
    wanted = kinds.split("+")
    named = {name: p for name, p in net.named_parameters() if kinds == "all" or kind(name) in wanted}
    unknown = set(wanted) - {"all"} - {kind(name) for name, _ in net.named_parameters()}
    if unknown:
        raise ValueError(f"{', '.join(unknown)}: allowed are norms, biases, embedding, position, weights or all")
    for name, p in net.named_parameters():
        p.requires_grad_(name in named)
    return list(named.values())


def perplexity(net, windows):
    """Returns the perplexity of a character over windows."""
    with torch.no_grad():
        return math.exp(torch.cat([net.losses(w)[0] for w in windows.split(128)]).double().mean())
