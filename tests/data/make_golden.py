#!/usr/bin/env python3
"""Makes the golden data: small random models in every form that files come in, and what PyTorch in float64 computes from them.

Writes golden/NAME.safetensors or golden/NAME/ (the models), golden/NAME.expected.safetensors (`tokens` I32 [n], `logits` F64
[n, vocabulary], `attention` [layers, heads, n, n], n = the context; where that would be large, `attention` has the rows of the
positions in `positions` I32 only) and golden/manifest.json. NAME.gelu.expected.safetensors is what the
same weights give under another activation. The built-in model is not copied: its expected values stand under `tiny_...`. The weights are
the same bits on every machine: uniform numbers of a frozen generator, no libm. verify_golden.py computes all of it again without PyTorch.

    /usr/bin/python3 tests/data/make_golden.py && /usr/bin/python3 tests/data/verify_golden.py
"""

import argparse
import dataclasses
import json
import math
import pathlib
import random
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from model_file import read_safetensors, single_file_metadata, write_safetensors  # noqa: E402

TINY_TEXTS = {
    "tiny_bag": "The bag didn't fit in the car because it was too small",
    "tiny_verse": "Come, gentle night: why weep'st thou so?\nO stay; I'll sing - go!",
}
MATRICES = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
TYPES = ("F32", "F64", "F16", "BF16")
TORCH_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclasses.dataclass
class Specimen:
    """One model: its sizes and all that may differ in how a file says the same."""

    name: str
    seed: int
    vocabulary: list
    text: str  # as long as the context
    layers: int
    heads: int
    width: int
    activation: str
    other_activation: str = ""  # expected values under this one too
    epsilon: float = 1e-5
    biases: bool = True
    tied: bool = False
    type: str = "F32"  # "mixed": TYPES in turn
    inputs_first: bool = False  # [in, out], as Hugging Face's Conv1D has it
    prefix: str = ""
    stored_rows: int = 0  # rows of the embedding and the head, when they are padded beyond the vocabulary
    head: str = "as needed"  # "twice": a tied head stored under both names; "alone": only as lm_head
    directory: bool = False  # Hugging Face's layout instead of one file
    masks: bool = False  # attn.bias and attn.masked_bias, buffers of old Hugging Face versions
    escapes: bool = False  # vocab.json in ASCII, the rest as \u escapes
    start: str = None
    inner: int = 0  # of the network; 0: 4 * width
    positions: tuple = ()  # whose attention is kept; none: all
    extra_config: dict = dataclasses.field(default_factory=dict)

    def config(self):
        return {
            "n_embd": self.width,
            "n_head": self.heads,
            "n_layer": self.layers,
            "n_positions": len(self.text),
            "vocab_size": len(self.vocabulary),
            "activation_function": self.activation,
            "layer_norm_epsilon": self.epsilon,
            "tie_word_embeddings": self.tied,
            "bias": self.biases,
            **({"n_inner": self.inner} if self.inner else {}),
        }


def shuffled(characters):
    """A vocabulary whose ids follow no order that a reader could take for granted."""
    return random.Random(1).sample(characters, len(characters))


HUGGING_FACE = {
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "embd_pdrop": 0.1,
    "eos_token_id": 50256,
    "initializer_range": 0.02,
    "model_type": "gpt2",
    "n_inner": None,
    "reorder_and_upcast_attn": False,
    "resid_pdrop": 0.1,
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
    "summary_activation": None,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "torch_dtype": "float32",
    "transformers_version": "4.26.1",
    "use_cache": True,
}
LETTERS = "abcdefghijklmnopqrstuvwxyz"

SPECIMENS = [
    Specimen("m8", 1, list("\n abc"), "a cab\nba", layers=2, heads=2, width=16, activation="gelu_new", other_activation="gelu", start="\n"),
    Specimen(
        "modd",
        2,
        shuffled(list('€é\u2028😀"\\\t\x01 \n' + LETTERS + LETTERS.upper()[:25])),
        'One "café" for €\tX\\Y\u2028😀 and\x01\nagain',
        layers=2,
        heads=3,
        width=36,
        activation="gelu_new",
        tied=True,
        inputs_first=True,
        prefix="transformer.",
        directory=True,
        masks=True,
        escapes=True,
        extra_config=HUGGING_FACE,
    ),
    Specimen(
        "w33",
        3,
        list(".0123456789"),
        "3.141592653589793",
        layers=1,  # three would take 300 KB in F64; headonly has three
        heads=1,
        width=33,
        activation="gelu",
        epsilon=1e-6,
        biases=False,
        type="F64",
        prefix="_orig_mod.transformer.",
    ),
    Specimen(
        "s4",
        4,
        list("\n !',dehlorw"),
        "hello, world",
        layers=2,
        heads=5,
        width=20,
        activation="relu",
        epsilon=1e-3,
        tied=True,
        type="BF16",
        prefix="module.",
        head="twice",
    ),
    Specimen(
        "pad",
        5,
        list("\n-ACGNT"),
        "GATTACA-N",
        layers=2,
        heads=2,
        width=12,
        activation="gelu",
        epsilon=1e-12,  # its embeddings are subnormal in F16: layer norm must see them as they are
        type="F16",
        inputs_first=True,
        prefix="_orig_mod.module.",
        stored_rows=16,
    ),
    Specimen(
        "headonly",
        6,
        shuffled(list("\n aeélmrtà")),
        "la mer à été",
        layers=3,
        heads=3,
        width=15,
        activation="gelu_new",
        tied=True,
        type="mixed",
        inputs_first=True,
        head="alone",
        directory=True,
        extra_config={**HUGGING_FACE, "tie_word_embeddings": True},
    ),
    Specimen(
        "eos",
        7,
        ["<pad>", *"#()1=CNOc", "<eos>"],
        "CC(=O)Nc1c",
        layers=1,
        heads=2,
        width=8,
        activation="gelu",
        start="C",
        extra_config={"eos_token_id": 10, "pad_token_id": 0},
    ),
    # A head of 64, as nanoGPT's and GPT-2's models have, and a long text; 500 KB are enough, so the network is narrow.
    Specimen(
        "w128",
        9,
        list("\n ehilorst"),
        "".join("\n ehilorst"[i * i * i // 11 % 10] for i in range(256)),
        layers=1,
        heads=2,
        width=128,
        activation="gelu_new",
        epsilon=2.0**-7,
        tied=True,
        type="F16",
        inner=128,
        positions=(0, 1, 40, 63, 64, 127, 200, 255),
    ),
    Specimen("t1", 8, list("ab"), "b", layers=1, heads=3, width=3, activation="relu"),
]


# ---- making -------------------------------------------------------------------------------------------------------------------------


def draw_weights(specimen):
    """name -> float64 array of float32 values (float64 ones for F64), [out, in], scaled so that logits and attention spread."""
    from torch_gpt import GPT

    generator = np.random.RandomState(specimen.seed)
    weights = {}
    for name, tensor in GPT(specimen.config()).tensors().items():
        if name.endswith(".bias"):
            middle, deviation = 0.0, 0.2
        elif tensor.dim() == 1:  # layer norm
            middle, deviation = 1.0, 0.25
        else:
            middle, deviation = 0.0, 2.0 / math.sqrt(tensor.shape[1])
        array = middle + deviation * math.sqrt(3.0) * generator.uniform(-1.0, 1.0, tuple(tensor.shape))
        weights[name] = array if specimen.type == "F64" else array.astype("<f4").astype("<f8")
    if specimen.name == "pad":
        for name, array in weights.items():
            array.reshape(-1)[3::7] = 0.0
            array.reshape(-1)[5::11] *= 2.0**-16
        for name in ("wte.weight", "wpe.weight"):  # below 2^-14 F16 is subnormal
            weights[name] *= 2.0**-15
    return weights


def as_stored(array, kind):
    """The values that are left of `array` in a file, as a float64 tensor. By PyTorch, not by the code that writes the file."""
    import torch

    return torch.from_numpy(array).to(getattr(torch, TORCH_TYPES[kind])).double()


def stored_types(specimen, weights):
    kinds = [specimen.type] if specimen.type != "mixed" else TYPES
    return {name: kinds[i % len(kinds)] for i, name in enumerate(weights)}


def expected_values(config, weights, tokens):
    """(logits [n, V], attention [L, H, n, n]) by PyTorch; `weights` are float64 tensors."""
    import torch
    from torch_gpt import GPT

    model = GPT(config).double().eval()
    model.load_state_dict({"lm_head.weight": weights["wte.weight"], **weights} if config["tie_word_embeddings"] else weights)
    for block in model.h:
        block.attn.keep_weights = True
    with torch.no_grad():
        logits = model(torch.tensor([tokens]))[0].numpy()
    return logits, np.stack([block.attn.weights[0].numpy() for block in model.h])


def write_expected(path, tokens, logits, attention, type_of_attention="F64", positions=()):
    tensors = {"logits": logits, "attention": attention, "tokens": np.array(tokens)}
    if positions:
        tensors["attention"], tensors["positions"] = attention[:, :, list(positions)], np.array(positions)
    kinds = {"logits": "F64", "attention": type_of_attention, "tokens": "I32", "positions": "I32"}
    write_safetensors(path, tensors, dtype=kinds)


def write_model(golden, specimen, weights, types):
    """Stores `weights` in the specimen's form; returns the path relative to `golden`."""
    tensors, kinds = {}, {}

    def store(name, array, kind):
        # As in the files of both projects, `transformer.` stands before all names but the head's.
        prefix = specimen.prefix.replace("transformer.", "") if name == "lm_head.weight" else specimen.prefix
        tensors[prefix + name], kinds[prefix + name] = array, kind

    for name, array in weights.items():
        if specimen.inputs_first and name.endswith(MATRICES):
            array = array.T
        if specimen.stored_rows and name in ("wte.weight", "lm_head.weight"):
            padding = 1000.0 * (1 + np.arange((specimen.stored_rows - len(array)) * specimen.width) % 60)
            array = np.concatenate([array, padding.reshape(-1, specimen.width)])
        if specimen.masks and name.endswith("attn.c_attn.weight"):
            context = len(specimen.text)
            block = name.removesuffix("c_attn.weight")
            store(block + "bias", np.tri(context)[None, None], "U8")
            store(block + "masked_bias", np.array(-1e4), "F32")
        if name == "wte.weight" and specimen.head == "alone":
            store("lm_head.weight", array, types[name])
        else:
            store(name, array, types[name])
    if specimen.head == "twice":
        store("lm_head.weight", weights["wte.weight"], types["wte.weight"])

    if not specimen.directory:
        config = {**specimen.config(), **specimen.extra_config}
        path = golden / f"{specimen.name}.safetensors"
        write_safetensors(path, tensors, single_file_metadata(config, specimen.vocabulary, specimen.start), kinds)
        return path.name
    folder = golden / specimen.name
    folder.mkdir(exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"}, kinds)
    config = {k: v for k, v in specimen.config().items() if k not in ("bias", "tie_word_embeddings")}
    config = {**config, "n_ctx": config["n_positions"], **specimen.extra_config}
    ids = {character: i for i, character in enumerate(specimen.vocabulary)}
    for name, content in (("config.json", config), ("vocab.json", ids)):
        ascii_only = name == "config.json" or specimen.escapes
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=ascii_only)
        (folder / name).write_bytes(text.encode("utf-8") + b"\n")
    return folder.name


def entry(name, model, text, config, weights, **form):
    """One object of manifest.json; `weights` as computed with: without padding, a tied head counted once."""
    return {
        "name": name,
        "model": model,
        "expected": f"{name}.expected.safetensors",
        "text": text,
        "tied": config["tie_word_embeddings"],
        "activation": config["activation_function"],
        "biases": config["bias"],
        **form,
        "vocabulary": config["vocab_size"],
        "parameters": sum(int(np.prod(array.shape)) for array in weights.values()),
        "context": config["n_positions"],
        "width": config["n_embd"],
        "layers": config["n_layer"],
        "heads": config["n_head"],
    }


def report(name, logits, attention):
    spread = f"logits {logits.min():.2f} to {logits.max():.2f}, deviation {logits.std():.2f}"
    print(f"{name}: {len(logits)} positions, {spread}, last position's largest attention weight {attention[..., -1, :].max():.2f}")


def make(golden, tiny):
    import torch

    torch.set_num_threads(1)
    golden.mkdir(exist_ok=True)
    manifest = []
    for specimen in SPECIMENS:
        weights = draw_weights(specimen)
        types = stored_types(specimen, weights)
        model = write_model(golden, specimen, weights, types)
        tokens = [specimen.vocabulary.index(character) for character in specimen.text]
        stored = {name: as_stored(array, types[name]) for name, array in weights.items()}
        logits, attention = expected_values(specimen.config(), stored, tokens)
        write_expected(golden / f"{specimen.name}.expected.safetensors", tokens, logits, attention, positions=specimen.positions)
        report(specimen.name, logits, attention)
        if other := specimen.other_activation:
            logits, attention = expected_values({**specimen.config(), "activation_function": other}, stored, tokens)
            write_expected(golden / f"{specimen.name}.{other}.expected.safetensors", tokens, logits, attention)
            report(f"{specimen.name} with {other}", logits, attention)
        form = {
            "type": specimen.type,
            "orientation": "[in, out]" if specimen.inputs_first else "[out, in]",
            "padding": max(0, specimen.stored_rows - len(specimen.vocabulary)),
            **({"inner_width": specimen.inner} if specimen.inner else {}),
        }
        manifest.append(entry(specimen.name, model, specimen.text, specimen.config(), stored, **form))
    if tiny.exists():
        arrays, metadata = read_safetensors(tiny)
        config, vocabulary = json.loads(metadata["config"]), json.loads(metadata["vocabulary"])
        weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
        for name, text in TINY_TEXTS.items():
            tokens = [vocabulary.index(character) for character in text]
            logits, attention = expected_values(config, weights, tokens)
            kind = "F64" if 8 * (logits.size + attention.size) < 200_000 else "F32"
            write_expected(golden / f"{name}.expected.safetensors", tokens, logits, attention, kind)
            report(name, logits, attention)
            form = {"type": "F32", "orientation": "[out, in]", "padding": 0}
            manifest.append(entry(name, "tiny", text, config, weights, **form))
    else:
        print(f"tiny: LEFT OUT, there is no {tiny}")
    (golden / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent / "golden", metavar="DIR")
    parser.add_argument("--tiny", type=pathlib.Path, default=ROOT / "engine/models/tiny.safetensors", metavar="FILE")
    given = parser.parse_args()
    make(given.out, given.tiny)
