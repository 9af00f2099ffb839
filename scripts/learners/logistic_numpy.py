#!/usr/bin/env python3
"""Logistic regression on two digits of MNIST, as a learner of Ringwave's.

    ringwave run hw-configs/learner-numpy.toml

It needs NumPy and the folder with MNIST's four files: --data, or RINGWAVE_DATA. Copy it to
bring a model of your own: all but Model is the protocol (learner/README.md, "A model of your
own"). What is printed for people belongs on standard error.
"""
import argparse, gzip, hashlib, json, os, sys

import numpy as np


def images(folder, kind, classes):
    """Returns the images of two classes, 0 to 1, and their classes, 0 and 1."""
    def read(name, header):
        for path in (os.path.join(folder, name), os.path.join(folder, "mnist", name)):
            if os.path.exists(path):
                return np.frombuffer(gzip.open(path).read(), np.uint8, offset=header)
        sys.exit(f"{name} is neither in {folder} nor in its folder mnist")
    y = read(f"{kind}-labels-idx1-ubyte.gz", 8)
    x = read(f"{kind}-images-idx3-ubyte.gz", 16).reshape(len(y), -1)
    chosen = np.isin(y, classes)
    return x[chosen] / 255, (y[chosen] == classes[1]).astype(float)


class Model:
    def __init__(self, data, classes):
        (train, train_y), (test, test_y) = (images(data, kind, classes) for kind in ("train", "t10k"))
        self.train, self.test = len(train), len(test)
        # Samples are numbered: first those to train on, then those to test on.
        self.x, self.y = np.concatenate([train, test]), np.concatenate([train_y, test_y])
        self.theta = np.zeros(self.x.shape[1] + 1)

    def logits(self, theta, samples):
        return self.x[samples] @ theta[:-1] + theta[-1]

    def loss(self, theta, samples):
        """Returns the mean loss over samples."""
        return np.mean(np.logaddexp(0, self.logits(theta, samples) * (1 - 2 * self.y[samples])))

    def accuracy(self, theta, samples):
        return np.mean((self.logits(theta, samples) > 0) == (self.y[samples] == 1))


def direction(key, dim):
    """Returns Phi, +1 and -1 by the bits of Philox's words, each from its lowest bit on."""
    words = np.random.Philox(key=key).random_raw((dim + 63) // 64)
    return 1.0 - 2.0 * np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")[:dim]


def answer(model, r):
    """Returns what is asked for."""
    theta, kind = model.theta, r["request"]
    if kind == "hello":
        return {"version": 1, "name": "logistic regression in NumPy", "dim": len(theta), "dtype": str(theta.dtype),
                "train": model.train, "test": model.test}
    if kind == "loss":
        phi = r["gamma"] * direction(r["direction"], len(theta))
        points = {"plus": theta + phi}
        if r["minus"]:
            points["minus"] = theta - phi
        if r["base"]:
            points["base"] = theta
        return {name: [float(model.loss(at, b)) for b in r["batches"]] for name, at in points.items()}
    if kind == "update":
        for step in r["steps"]:
            theta -= step["size"] * direction(step["direction"], len(theta))
    if kind == "evaluate":
        return {"loss": float(model.loss(theta, r["samples"])), "accuracy": float(model.accuracy(theta, r["samples"]))}
    if kind == "save":
        theta.tofile(r["path"])
    if kind == "load":
        theta[:] = np.fromfile(r["path"], theta.dtype)
    return {"digest": hashlib.sha256(theta.tobytes()).hexdigest()}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--data", default=os.environ.get("RINGWAVE_DATA"), help="folder with MNIST")
    p.add_argument("--classes", type=int, nargs=2, default=(0, 1))
    a = p.parse_args()
    if not a.data:
        p.error("name the folder with MNIST: --data, or RINGWAVE_DATA")
    model = Model(a.data, a.classes)
    for line in sys.stdin:
        r = json.loads(line)
        print(json.dumps({"id": r["id"], **answer(model, r)}), flush=True)


if __name__ == "__main__":
    main()
