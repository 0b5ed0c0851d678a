#!/usr/bin/env python3
"""Converts a nanoGPT checkpoint (ckpt.pt and its data set's meta.pkl) to octavo's single-file form.

Reads what nanoGPT's train.py writes, compiled or distributed (prefixes `_orig_mod.`, `module.`) or not. Needs no PyTorch, and opens both
pickles without running any code that they may carry, which torch.load of 1.13 cannot do: its `weights_only` refuses floats and its
`pickle_module` is ignored. Only character-level models: GPT-2's own vocabulary of word pieces is refused.

    tools/convert_nanogpt.py out/ckpt.pt baby.safetensors --meta data/shakespeare_char/meta.pkl
"""

import collections
import io
import itertools
import os
import pickle
import sys
import zipfile

import numpy as np

from arguments import Parser, file_name, one_line
from model_file import single_file_metadata, write_safetensors
from output_files import existing, overlap

PREFIXES = ("_orig_mod.", "module.", "transformer.")
MASKS = (".attn.bias", ".attn.masked_bias")
STORAGES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "BFloat16Storage": "<u2"}
LARGEST = {"F32": float(np.finfo("f4").max), "F16": float(np.finfo("f2").max), "BF16": 2.0**127 * (2 - 2.0**-7)}


def parse_arguments(argv=None):
    parser = Parser(__doc__)
    add = parser.add_argument
    add("checkpoint", metavar="CKPT", help="nanoGPT's ckpt.pt")
    add("out", type=file_name, metavar="OUT.safetensors", help="the model file to write")
    add("--meta", metavar="FILE", help="the data set's characters (default: meta.pkl beside CKPT)")
    add("--start", metavar="CHAR", help="the character that texts start from (default: newline where the vocabulary has it)")
    add("--dtype", choices=("F32", "F16", "BF16"), default="F32", help="how OUT stores weights (%(default)s)")
    add(
        "--activation",
        choices=("gelu", "gelu_new"),
        default="gelu",
        help="gelu_new for checkpoints of nanoGPT's first versions, which had their own tanh GELU (%(default)s)",
    )
    add("--force", action="store_true", help="overwrite OUT")
    arguments = parser.parse_args(argv)
    arguments.meta = arguments.meta or os.path.join(os.path.dirname(arguments.checkpoint), "meta.pkl")
    if message := overlap({"OUT": arguments.out}, [arguments.checkpoint, arguments.meta]):
        parser.error(message)
    if not arguments.force and (message := existing([arguments.out])):
        fail(message)
    return arguments


def fail(message):
    sys.exit("convert_nanogpt.py: " + one_line(message))


class StoredTensor:
    """A tensor of a checkpoint, its numbers not read yet: most belong to the optimizer."""

    def __init__(self, storage, offset, shape, strides, *_):
        self.kind, self.key = storage
        self.offset, self.shape, self.strides = offset, tuple(shape), tuple(strides)

    def read(self, archive, folder):
        if self.kind not in STORAGES:
            raise ValueError(f"it is a torch.{self.kind}")
        numbers = np.frombuffer(archive.read(f"{folder}/data/{self.key}"), STORAGES[self.kind])[self.offset :]
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))
        if min(self.offset, *self.strides) < 0 or last >= len(numbers):
            raise ValueError("it reaches beyond its storage")
        strides = [stride * numbers.itemsize for stride in self.strides]
        numbers = np.lib.stride_tricks.as_strided(numbers, self.shape, strides)
        if self.kind == "BFloat16Storage":
            numbers = (numbers.astype("<u4") << 16).view("<f4")
        return np.ascontiguousarray(numbers, dtype="<f4")


class PlainUnpickler(pickle.Unpickler):
    """Makes dictionaries, strings, numbers and StoredTensors; nothing that a pickle names is ever imported or called."""

    KNOWN = {
        ("collections", "OrderedDict"): collections.OrderedDict,
        ("torch._utils", "_rebuild_tensor_v2"): StoredTensor,
        ("torch._utils", "_rebuild_parameter"): lambda tensor, *_: tensor,
    }

    def find_class(self, module, name):
        if module == "torch" and name.endswith("Storage"):
            return name
        if (module, name) not in self.KNOWN:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return self.KNOWN[module, name]

    def persistent_load(self, saved):
        _, kind, key, _, _ = saved  # "storage", type, name in the archive, device, count
        return kind, key


def read_vocabulary(path):
    """The characters of meta.pkl, by id."""
    try:
        with open(path, "rb") as file:
            meta = PlainUnpickler(file).load()
    except OSError as error:
        fail(f"{path}: {error.strerror}; --meta names the meta.pkl of the data set")
    except Exception as error:  # a damaged pickle raises nearly anything
        fail(f"{path}: not a meta.pkl of nanoGPT: {error}")
    itos = meta.get("itos") if isinstance(meta, dict) else None
    if not isinstance(itos, dict) or not itos:
        fail(f"{path}: expected a dictionary with `itos` (id to character), as nanoGPT's character data sets have")
    if set(itos) != set(range(len(itos))):
        fail(f"{path}: the ids of `itos` are not 0 to {len(itos) - 1}")
    vocabulary = [itos[i] for i in range(len(itos))]
    for i, entry in enumerate(vocabulary):
        if not isinstance(entry, str) or len(entry) != 1 or 0xD800 <= ord(entry) <= 0xDFFF:
            fail(f"{path}: entry {i} of `itos` is {entry!r}, not a single character")
    ids = {character: i for i, character in enumerate(vocabulary)}
    if len(ids) != len(vocabulary):
        fail(f"{path}: `itos` has the same character twice")
    if meta.get("stoi", ids) != ids or meta.get("vocab_size", len(ids)) != len(ids):
        fail(f"{path}: `stoi`, `itos` and `vocab_size` contradict one another")
    return vocabulary


def read_checkpoint(path):
    """(name without prefix -> StoredTensor, model_args, a function that reads such a tensor).

    The file is a zip: FOLDER/data.pkl names the storages, FOLDER/data/KEY holds the numbers of one.
    """
    try:
        with open(path, "rb") as file:
            archive = zipfile.ZipFile(io.BytesIO(file.read()))
        (index,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        checkpoint = PlainUnpickler(archive.open(index)).load()
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    except Exception as error:
        fail(f"{path}: not a checkpoint of nanoGPT: {error}")
    for key in ("model", "model_args"):
        if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get(key), dict):
            fail(f"{path}: not a checkpoint of nanoGPT: there is no dictionary `{key}` in it")
    tensors = {}
    for name, tensor in checkpoint["model"].items():
        if not isinstance(name, str) or not isinstance(tensor, StoredTensor):
            fail(f"{path}: {name} is not a tensor")
        while (prefix := next((p for p in PREFIXES if name.startswith(p)), None)) is not None:
            name = name[len(prefix) :]
        if not name.endswith(MASKS):
            tensors[name] = tensor
    return tensors, checkpoint["model_args"], lambda tensor: tensor.read(archive, os.path.dirname(index))


def read_sizes(path, arguments, tensors):
    """nanoGPT's model_args under the names of the configuration; `vocab_size` still counts the padding."""
    sizes = {}
    names = {"n_embd": "n_embd", "n_head": "n_head", "n_layer": "n_layer", "n_positions": "block_size", "vocab_size": "vocab_size"}
    for name, theirs in names.items():
        if theirs not in arguments:
            fail(f"{path}: `model_args` has no `{theirs}`")
        value = arguments[theirs]
        if type(value) is not int or value < 1:
            fail(f"{path}: {theirs} of `model_args` is {value!r}, not a positive integer")
        sizes[name] = value
    if sizes["n_embd"] % sizes["n_head"]:
        fail(f"{path}: n_head {sizes['n_head']} does not divide n_embd {sizes['n_embd']}")
    # The first versions knew no `bias` and always had them.
    sizes["bias"] = bool(arguments.get("bias", "ln_f.bias" in tensors))
    return sizes


def tensor_shapes(sizes):
    """Yields (name, shape) of each tensor that a nanoGPT of these sizes has."""
    width, rows = sizes["n_embd"], sizes["vocab_size"]
    block = {
        "ln_1": (width,),
        "attn.c_attn": (3 * width, width),
        "attn.c_proj": (width, width),
        "ln_2": (width,),
        "mlp.c_fc": (4 * width, width),
        "mlp.c_proj": (width, 4 * width),
    }
    yield "wte.weight", (rows, width)
    yield "wpe.weight", (sizes["n_positions"], width)
    layers = ((f"h.{layer}.{part}", shape) for layer in range(sizes["n_layer"]) for part, shape in block.items())
    for part, shape in itertools.chain(layers, [("ln_f", (width,))]):  # lazy: n_layer is not to be trusted yet
        yield f"{part}.weight", shape
        if sizes["bias"]:
            yield f"{part}.bias", shape[:1]
    yield "lm_head.weight", (rows, width)


def checked_arrays(path, tensors, read, sizes, dtype):
    """name -> float32 array, in the order of the model, each one there, of its shape, finite, and nothing left over."""
    arrays = {}
    for name, shape in tensor_shapes(sizes):
        if name not in tensors:
            fail(f"{path}: {name} is missing")
        if tensors[name].shape != shape:
            fail(f"{path}: {name} has shape {list(tensors[name].shape)}, expected {list(shape)}")
        try:
            arrays[name] = read(tensors[name])
        except Exception as error:
            fail(f"{path}: {name} cannot be read: {error}")
        if not (np.abs(arrays[name]) <= LARGEST[dtype]).all():  # written so that NaN fails too
            fail(f"{path}: {name} has values that are not finite as {dtype}")
    if unknown := sorted(set(tensors) - set(arrays)):
        fail(f"{path}: {unknown[0]} is no tensor of a nanoGPT with {'' if sizes['bias'] else 'no '}biases")
    return arrays


def convert(arguments):
    tensors, model_args, read = read_checkpoint(arguments.checkpoint)
    meta = arguments.meta
    vocabulary = read_vocabulary(meta)
    sizes = read_sizes(arguments.checkpoint, model_args, tensors)
    rows = sizes["vocab_size"]
    if len(vocabulary) > rows:
        fail(f"{meta}: {len(vocabulary)} characters, but the embedding in {arguments.checkpoint} has {rows} rows")
    start = arguments.start if arguments.start is not None else "\n" if "\n" in vocabulary else None
    if start is not None and start not in vocabulary:
        fail(f"--start {start!r} is no character of {meta}")
    arrays = checked_arrays(arguments.checkpoint, tensors, read, sizes, arguments.dtype)
    for name in ("wte.weight", "lm_head.weight"):  # nanoGPT pads its vocabulary for speed on GPUs
        arrays[name] = arrays[name][: len(vocabulary)]
    tied = np.array_equal(arrays["wte.weight"], arrays["lm_head.weight"])
    if tied:
        del arrays["lm_head.weight"]
    config = {
        **sizes,
        "vocab_size": len(vocabulary),
        "activation_function": arguments.activation,
        "layer_norm_epsilon": 1e-5,  # fixed in nanoGPT's source
        "tie_word_embeddings": tied,
    }
    try:
        write_safetensors(arguments.out, arrays, single_file_metadata(config, vocabulary, start), arguments.dtype)
    except OSError as error:
        fail(f"{arguments.out}: {error.strerror}")
    print(
        f"{arguments.out}: {sum(a.size for a in arrays.values()):,} parameters as {arguments.dtype}, {config['n_layer']} layers, "
        f"{config['n_head']} heads, width {config['n_embd']}, context {config['n_positions']}, {len(vocabulary)} characters"
        f"{f' ({rows - len(vocabulary)} rows of padding cut)' if rows > len(vocabulary) else ''}, "
        f"{'tied' if tied else 'separate'} head, {'biases' if config['bias'] else 'no biases'}, {arguments.activation}"
    )


if __name__ == "__main__":
    convert(parse_arguments())
