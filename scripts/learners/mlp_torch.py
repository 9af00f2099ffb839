#!/usr/bin/env python3
"""A small network of PyTorch's on two digits of MNIST, as a learner of Ringwave's.

    ringwave run hw-configs/learner-torch.toml

It needs PyTorch, NumPy and the folder with MNIST's four files: --data, or RINGWAVE_DATA. To
bring a network of your own, change network, outputs, losses and the samples; the protocol
(learner/README.md, "A model of your own") is in protocol_torch.py. What is printed for people
belongs on standard error.
"""
import argparse, os

import numpy as np
import torch

from logistic_numpy import images
from protocol_torch import serve


def network(features):
    return torch.nn.Sequential(torch.nn.Linear(features, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


class Learner:
    name = "network in PyTorch"

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

    def losses(self, points, batches):
        """Returns, by the name of each point, the mean loss of each batch there."""
        return {name: [self.evaluate(at, b)[0] for b in batches] for name, at in points.items()}

    def evaluate(self, theta, samples):
        """Returns the mean loss of samples, and the share whose class is right."""
        outputs, y = self.outputs(theta, samples)
        return torch.nn.functional.cross_entropy(outputs, y).item(), (outputs.argmax(1) == y).float().mean().item()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default=os.environ.get("RINGWAVE_DATA"), help="folder with MNIST")
    p.add_argument("--classes", type=int, nargs=2, default=(0, 1))
    a = p.parse_args()
    if not a.data:
        p.error("name the folder with MNIST: --data, or RINGWAVE_DATA")
    serve(lambda hello: Learner(a.data, a.classes, hello["seed"]))


if __name__ == "__main__":
    main()
