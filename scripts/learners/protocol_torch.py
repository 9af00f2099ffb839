"""The protocol of learners (learner/README.md, "A model of your own") for models of PyTorch's.

A model has a name, theta (a vector of float32), train and test (how many samples it has of
each), evaluate(theta, samples), a mean loss and the share that is right, and losses(points,
batches): by the name of each point, a theta, the mean loss of each batch there.
"""
import hashlib, json, sys

import numpy as np
import torch


def direction(key, dim):
    """Returns Phi, +1 and -1 by the bits of Philox's words, each from its lowest bit on."""
    words = np.random.Philox(key=key).random_raw((dim + 63) // 64)
    bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little")[:dim]
    return torch.from_numpy(1 - 2 * bits.astype(np.float32))


def answer(model, r):
    """Returns what is asked for."""
    theta, kind = model.theta, r["request"]
    if kind == "hello":
        return {"version": 1, "name": model.name, "dim": len(theta), "dtype": "float32",
                "train": model.train, "test": model.test}
    if kind == "loss":
        phi = r["gamma"] * direction(r["direction"], len(theta))
        points = {"plus": theta + phi}
        if r["minus"]:
            points["minus"] = theta - phi
        if r["base"]:
            points["base"] = theta
        return model.losses(points, r["batches"])
    if kind == "update":
        for step in r["steps"]:
            theta -= step["size"] * direction(step["direction"], len(theta))
    if kind == "evaluate":
        loss, accuracy = model.evaluate(theta, r["samples"])
        return {"loss": loss, "accuracy": accuracy}
    if kind == "save":
        theta.numpy().tofile(r["path"])
    if kind == "load":
        theta[:] = torch.from_numpy(np.fromfile(r["path"], np.float32))
    return {"digest": hashlib.sha256(theta.numpy().tobytes()).hexdigest()}


def serve(start):
    """Answers line by line until there are no more; start makes the model of a hello."""
    model = None
    for line in sys.stdin:
        r = json.loads(line)
        model = model or start(r)  # hello comes first
        print(json.dumps({"id": r["id"], **answer(model, r)}), flush=True)
