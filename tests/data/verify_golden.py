#!/usr/bin/env python3
"""Verifies the golden data that make_golden.py made: reads the models back from their files alone and computes logits and attention weights again
in numpy and loops, as the formulas of the model are written, sharing nothing with torch_gpt.py. Changes nothing.

    /usr/bin/python3 tests/data/verify_golden.py
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from model_file import read_safetensors  # noqa: E402

MATRICES = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


def load(path):
    """(config, vocabulary, name -> [out, in] array without prefix, masks and padding, whether [in, out] was found, rows of padding)."""
    if path.is_dir():
        config = json.loads((path / "config.json").read_text())
        config.setdefault("tie_word_embeddings", True)  # Hugging Face leaves out what is at its default
        config["bias"] = True
        ids = json.loads((path / "vocab.json").read_text(encoding="utf-8"))
        vocabulary = sorted(ids, key=ids.get)
        tensors, _ = read_safetensors(path / "model.safetensors")
    else:
        tensors, metadata = read_safetensors(path)
        config, vocabulary = json.loads(metadata["config"]), json.loads(metadata["vocabulary"])
    weights = {}
    for name, array in tensors.items():
        parts = [part for part in name.split(".") if part not in ("transformer", "_orig_mod", "module")]
        if parts[-2:] not in (["attn", "bias"], ["attn", "masked_bias"]):
            weights[".".join(parts)] = array
    width = config["n_embd"]
    inputs_first = weights["h.0.attn.c_attn.weight"].shape == (width, 3 * width)
    for name in weights:
        if inputs_first and name.endswith(MATRICES):
            weights[name] = weights[name].T
    if config["tie_word_embeddings"]:
        head = weights.pop("lm_head.weight", None)
        weights.setdefault("wte.weight", head)
        assert head is None or np.array_equal(head, weights["wte.weight"]), f"{path}: tied, but the head differs"
    padding = len(weights["wte.weight"]) - config["vocab_size"]
    for name in weights.keys() & {"wte.weight", "lm_head.weight"}:
        weights[name] = weights[name][: config["vocab_size"]]
    return config, vocabulary, weights, inputs_first, padding


def activate(name, x):
    if name == "relu":
        return max(x, 0.0)
    if name == "gelu":
        return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))
    assert name == "gelu_new"
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def compute(config, weights, tokens):
    """(logits, attention), position by position, as the formulas of the model are written."""
    width, heads, layers, n = config["n_embd"], config["n_head"], config["n_layer"], len(tokens)
    size = width // heads

    def linear(name, x):
        return weights[f"{name}.weight"] @ x + weights.get(f"{name}.bias", 0.0)

    def layer_norm(name, x):
        centered = x - sum(x) / width
        deviation = math.sqrt(sum(centered**2) / width + config["layer_norm_epsilon"])
        return centered / deviation * weights[f"{name}.weight"] + weights.get(f"{name}.bias", 0.0)

    attention = np.zeros((layers, heads, n, n))
    keys, values = np.zeros((2, layers, n, width))
    logits = []
    for t, token in enumerate(tokens):
        x = weights["wte.weight"][token] + weights["wpe.weight"][t]
        for layer in range(layers):
            block = f"h.{layer}."
            q, keys[layer, t], values[layer, t] = np.split(linear(block + "attn.c_attn", layer_norm(block + "ln_1", x)), 3)
            mixed = np.zeros(width)
            for head in range(heads):
                own = slice(head * size, (head + 1) * size)
                scores = [q[own] @ keys[layer, s, own] / math.sqrt(size) for s in range(t + 1)]
                powers = [math.exp(score - max(scores)) for score in scores]
                for s in range(t + 1):
                    attention[layer, head, t, s] = powers[s] / sum(powers)
                    mixed[own] += attention[layer, head, t, s] * values[layer, s, own]
            x = x + linear(block + "attn.c_proj", mixed)
            hidden = linear(block + "mlp.c_fc", layer_norm(block + "ln_2", x))
            x = x + linear(block + "mlp.c_proj", np.array([activate(config["activation_function"], h) for h in hidden]))
        logits.append(weights.get("lm_head.weight", weights["wte.weight"]) @ layer_norm("ln_f", x))
    return np.array(logits), attention


def verify(golden, tiny):
    manifest = json.loads((golden / "manifest.json").read_text())
    for item in list(manifest):
        for path in golden.glob(f"{item['name']}.*.expected.safetensors"):  # NAME.ACTIVATION: the same model under another activation
            name = path.name.removesuffix(".expected.safetensors")
            manifest.append({**item, "name": name, "expected": path.name, "activation": name.split(".")[1], "other": True})
    wrong = 0
    for item in manifest:
        item.setdefault("inner_width", 4 * item["width"])
        config, vocabulary, weights, inputs_first, padding = load(tiny if item["model"] == "tiny" else golden / item["model"])
        expected, _ = read_safetensors(golden / item["expected"])
        if "other" in item:
            config["activation_function"] = item["activation"]
        tokens = [vocabulary.index(character) for character in item["text"]]
        logits, attention = compute(config, weights, tokens)
        above = ~np.tri(len(tokens), dtype=bool)
        masked = (attention[..., above] == 0).all()
        if "positions" in expected:  # of a large one, only these rows are kept
            positions = expected["positions"].astype(int)
            attention, above = attention[:, :, positions], above[positions]
        facts = {
            "tied": config["tie_word_embeddings"],
            "activation": config["activation_function"],
            "biases": "ln_f.bias" in weights,
            "orientation": "[in, out]" if inputs_first else "[out, in]",
            "padding": padding,
            "vocabulary": len(vocabulary),
            "parameters": sum(array.size for array in weights.values()),
            "context": len(weights["wpe.weight"]),
            "width": weights["wpe.weight"].shape[1],
            "inner_width": len(weights["h.0.mlp.c_fc.weight"]),
            "layers": sum(name.endswith("ln_1.weight") for name in weights),
            "heads": config["n_head"],
        }
        # Weights of tiny's attention may be stored as F32: half a unit in the last place of numbers up to 1.
        attention_bound = 2.0**-25 + 1e-9 if item["model"] == "tiny" else 1e-9
        errors = [np.abs(logits - expected["logits"]).max(), np.abs(attention - expected["attention"]).max()]
        good = (
            errors[0] < 1e-9
            and errors[1] < attention_bound
            and tokens == list(expected["tokens"])
            and masked
            and (expected["attention"][..., above] == 0).all()
            and all(item[name] == value for name, value in facts.items())
        )
        wrong += not good
        print(f"{item['name']}: {'agrees' if good else 'WRONG'}, logits within {errors[0]:.1e}, attention within {errors[1]:.1e}")
    if wrong or not manifest:
        sys.exit(f"verify_golden.py: {wrong} of {len(manifest)} do not agree")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golden", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "golden", metavar="DIR")
    parser.add_argument("--tiny", type=pathlib.Path, default=ROOT / "engine/models/tiny.safetensors", metavar="FILE")
    given = parser.parse_args()
    verify(given.golden, given.tiny)
