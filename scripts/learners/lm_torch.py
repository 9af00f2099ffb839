#!/usr/bin/env python3
"""A small language model, trained on one text and adapted to another by zero-order steps.

    lm_torch.py pretrain TEXT_A   back-propagation on one text; writes the model, base.pt
    lm_torch.py learn             the learner that Ringwave starts: theta is a part of the parameters
    lm_torch.py adapt             the reference: back-propagation of the same part on the same text
    lm_torch.py measure           perplexity of text held out; with --theta RUN/model.npy after a run
    lm_torch.py sample            what it writes; with --theta RUN/model.npy after a run

Model and text are in a folder, --folder or RINGWAVE_LM: base.pt, and text.txt, the text that the
devices have. It needs PyTorch and NumPy. learner/README.md, "A language model over the air".
"""
import argparse, copy, math, os, sys
from concurrent.futures import ThreadPoolExecutor

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the same sums however many cores there are
import numpy as np
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from lm_model import ALPHABET, CODES, Transformer, perplexity, read, split, trained
from protocol_torch import serve

torch.set_num_threads(1)


def load(a):
    """Returns the model as it was pretrained."""
    saved = torch.load(os.path.join(a.folder, "base.pt"))
    net = Transformer(**saved["shape"])
    net.load_state_dict(saved["state"])
    return net


def windows(a, net):
    """Returns the windows of the devices' text to train on, to choose by and to test on."""
    return split(read(os.path.join(a.folder, a.text)), net.shape["context"])


class Learner:
    """The losses on either side are computed at the same time, on a core
    each, and each as if it were alone."""

    def __init__(self, a, device, devices):
        net = load(a)
        train, validation, test = windows(a, net)
        if device > 0:  # a device on a host of its own has its stretch of the text
            train = train.chunk(devices)[device - 1]
        heldout = validation if a.validation else test
        self.name = f"language model, {a.train} of {sum(p.numel() for p in net.parameters())} parameters"
        self.train, self.test = len(train), len(heldout)
        self.samples = torch.cat([train, heldout])
        self.nets = {name: copy.deepcopy(net) for name in ("plus", "minus", "base")}
        self.theta = parameters_to_vector(trained(net, a.train)).detach().clone()
        self.parameters = {name: trained(n, a.train) for name, n in self.nets.items()}
        self.threads = ThreadPoolExecutor(2)

    @torch.no_grad()
    def at(self, name, theta, samples):
        """Returns the loss of each sample at theta, and the share of right characters."""
        vector_to_parameters(theta, self.parameters[name])
        return self.nets[name].losses(self.samples[samples])

    def losses(self, points, batches):
        """Returns the mean loss of each batch at each point. All devices have the same theta: their
        batches are one, and the losses are sorted by device afterwards."""
        sizes, samples = [len(b) for b in batches], [s for b in batches for s in b]
        asked = {name: self.threads.submit(self.at, name, at, samples) for name, at in points.items()}
        return {name: [x.mean().item() for x in f.result()[0].split(sizes)] for name, f in asked.items()}

    def evaluate(self, theta, samples):
        loss, right = self.at("base", theta, samples)
        return loss.mean().item(), right.mean().item()


def pretrain(a):
    torch.manual_seed(a.seed)
    net = Transformer(a.width, a.layers)
    train, validation, _ = split(read(a.source), net.shape["context"])
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3, weight_decay=0.05)
    law = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=a.steps, pct_start=0.1)
    for step in range(a.steps):
        if step % 100 == 0:
            print(f"step {step} of {a.steps}, perplexity of held-out text {perplexity(net, validation[:512]):.2f}", flush=True)
        loss = net.losses(train[torch.randint(len(train), (64,))])[0].mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        law.step()
    os.makedirs(a.folder, exist_ok=True)
    torch.save({"shape": net.shape, "state": net.state_dict()}, os.path.join(a.folder, "base.pt"))
    print(f"{sum(p.numel() for p in net.parameters())} parameters, perplexity of held-out text {perplexity(net, validation):.3f}")


def adapt(a):
    """Adam whose rate falls to 0; what is best in validation is kept."""
    torch.manual_seed(a.seed)
    net = load(a)
    train, validation, test = windows(a, net)
    parameters = trained(net, a.train)
    print(f"{sum(p.numel() for p in parameters)} trained of {sum(p.numel() for p in net.parameters())} parameters, {len(train)} windows")
    print(f"before: perplexity {perplexity(net, test):.4f}", flush=True)
    optimizer = torch.optim.Adam(parameters, lr=a.rate)
    law = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / a.steps)
    best, at, theta = math.inf, 0, None
    for step in range(a.steps + 1):
        if step % 200 == 0 or step == a.steps:
            now = perplexity(net, validation)
            print(f"step {step}, perplexity of validation {now:.4f}", flush=True)
            if now < best:
                best, at, theta = now, step, parameters_to_vector(parameters).detach().clone()
        loss = net.losses(train[torch.randint(len(train), (32,))])[0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        law.step()
    vector_to_parameters(theta, parameters)
    print(f"after {at} steps: perplexity {perplexity(net, test):.4f}, of validation {best:.4f}")
    if a.out:
        np.save(a.out, theta.numpy())


def learned(a):
    """Returns the model after a run, or as it was before."""
    net = load(a)
    if a.theta:
        theta = torch.from_numpy(np.load(a.theta).astype(np.float32))
        vector_to_parameters(theta, trained(net, a.train))
    return net


def measure(a):
    net = learned(a)
    print(f"perplexity {perplexity(net, windows(a, net)[2]):.4f}")


@torch.no_grad()
def sample(a):
    net = learned(a)
    generator = torch.Generator().manual_seed(a.seed)
    codes = [CODES[c] for c in a.prompt]
    for _ in range(a.characters):
        logits = net(torch.tensor([codes[-net.shape["context"]:]]))[0, -1] / a.temperature
        codes.append(torch.multinomial(torch.softmax(logits, 0), 1, generator=generator).item())
    print("".join(ALPHABET[c] for c in codes).strip())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--folder", default=os.environ.get("RINGWAVE_LM"), help="folder of base.pt and text.txt")
    p.add_argument("--text", default="text.txt", help="the devices' text in it")
    p.add_argument("--train", default="norms+biases", help="what is trained of the model: norms, biases, embedding, position, weights or all, with + between")
    p.add_argument("--seed", type=int, default=1)
    kinds = p.add_subparsers(dest="what", required=True)
    q = kinds.add_parser("pretrain")
    q.add_argument("source", metavar="TEXT_A")
    q.add_argument("--steps", type=int, default=1300)
    q.add_argument("--width", type=int, default=96)
    q.add_argument("--layers", type=int, default=2)
    q = kinds.add_parser("learn")
    q.add_argument("--validation", action="store_true", help="tests on the text to choose by, not on that to report of")
    q = kinds.add_parser("adapt")
    q.add_argument("--rate", type=float, default=0.01)
    q.add_argument("--steps", type=int, default=1000)
    q.add_argument("--out", help="where theta is written, in NumPy's format")
    theta = "model.npy of a run, or what adapt has written; without it the model is as pretrained"
    q = kinds.add_parser("measure")
    q.add_argument("--theta", help=theta)
    q = kinds.add_parser("sample")
    q.add_argument("--theta", help=theta)
    q.add_argument("--prompt", default="\n")
    q.add_argument("--characters", type=int, default=1500)
    q.add_argument("--temperature", type=float, default=0.8)
    a = p.parse_args()
    if not a.folder:
        p.error("name the folder of base.pt and text.txt: --folder, or RINGWAVE_LM")
    if a.what == "learn":
        serve(lambda hello: Learner(a, hello["device"], hello["devices"]))
    else:
        {"pretrain": pretrain, "adapt": adapt, "measure": measure, "sample": sample}[a.what](a)


if __name__ == "__main__":
    main()
