#!/usr/bin/env python3
"""A small network of PyTorch's on two digits of MNIST, as a learner of Ringwave's.

    ringwave run hw-configs/learner-torch.toml

It needs PyTorch, NumPy and the folder with MNIST's four files: --data, or RINGWAVE_DATA. To
bring a network of your own, change network, loss and the samples; the rest is the protocol
(learner/README.md, "A model of your own"). What is printed for people belongs on standard
error.
"""
import argparse, hashlib, json, os, sys

import numpy as np
import torch

from logistic_numpy import images


def network(features):
    return torch.nn.Sequential(torch.nn.Linear(features, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


class Learner:
    def __init__(self, data, classes, seed):
        torch.manual_seed(seed)
        torch.set_num_threads(1)  # the same sums however many cores there are
        (train, train_y), (test, test_y) = (images(data, kind, classes) for kind in ("train", "t10k"))
        self.train, self.test = len(train), len(test)
        # Samples are numbered: first those to train on, then those to test on.
        self.x = torch.tensor(np.concatenate([train, test]), dtype=torch.float32)
        self.y = torch.tensor(np.concatenate([train_y, test_y]), dtype=torch.long)
        self.net = network(self.x.shape[1])
        # theta is all parameters one after the other; requires_grad_ may choose some of them.
        self.parameters = [p for p in self.net.parameters() if p.requires_grad]
        self.theta = torch.nn.utils.parameters_to_vector(self.parameters).detach()

    @torch.no_grad()
    def outputs(self, theta, samples):
        torch.nn.utils.vector_to_parameters(theta, self.parameters)
        return self.net(self.x[samples]), self.y[samples]

    def loss(self, theta, samples):
        """Returns the mean loss over samples."""
        return torch.nn.functional.cross_entropy(*self.outputs(theta, samples)).item()

    def accuracy(self, theta, samples):
        outputs, y = self.outputs(theta, samples)
        return (outputs.argmax(1) == y).float().mean().item()


def direction(key, dim):
    """Returns Phi, +1 and -1 by the bits of Philox's words, each from its lowest bit on."""
    words = np.random.Philox(key=key).random_raw((dim + 63) // 64)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")[:dim]
    return torch.from_numpy(1 - 2 * bits.astype(np.float32))


def answer(model, r):
    """Returns what is asked for."""
    theta, kind = model.theta, r["request"]
    if kind == "hello":
        return {"version": 1, "name": "network in PyTorch", "dim": len(theta), "dtype": "float32",
                "train": model.train, "test": model.test}
    if kind == "loss":
        phi = r["gamma"] * direction(r["direction"], len(theta))
        points = {"plus": theta + phi}
        if r["minus"]:
            points["minus"] = theta - phi
        if r["base"]:
            points["base"] = theta
        return {name: [model.loss(at, b) for b in r["batches"]] for name, at in points.items()}
    if kind == "update":
        for step in r["steps"]:
            theta -= step["size"] * direction(step["direction"], len(theta))
    if kind == "evaluate":
        return {"loss": model.loss(theta, r["samples"]), "accuracy": model.accuracy(theta, r["samples"])}
    if kind == "save":
        theta.numpy().tofile(r["path"])
    if kind == "load":
        theta[:] = torch.from_numpy(np.fromfile(r["path"], np.float32))
    return {"digest": hashlib.sha256(theta.numpy().tobytes()).hexdigest()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default=os.environ.get("RINGWAVE_DATA"), help="folder with MNIST")
    p.add_argument("--classes", type=int, nargs=2, default=(0, 1))
    a = p.parse_args()
    if not a.data:
        p.error("name the folder with MNIST: --data, or RINGWAVE_DATA")
    model = None
    for line in sys.stdin:
        r = json.loads(line)
        model = model or Learner(a.data, a.classes, r["seed"])  # hello comes first
        print(json.dumps({"id": r["id"], **answer(model, r)}), flush=True)


if __name__ == "__main__":
    main()
