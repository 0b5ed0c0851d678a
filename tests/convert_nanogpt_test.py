#!/usr/bin/env python3
"""Tests tools/convert_nanogpt.py on checkpoints made here in nanoGPT's format, from small random models.

Reads the converted file back, compares configuration, vocabulary and tensors; with --octavo also lets that program score a text and
compares its log-probabilities with PyTorch's in float64. Where PyTorch is missing it exits with 77 (ctest: skipped), or with 1 when
OCTAVO_TEST_NO_SKIP is set.

    /usr/bin/python3 tests/convert_nanogpt_test.py [--octavo build/dev/octavo] [unittest's own arguments]
"""

import argparse
import contextlib
import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"SKIPPED: PyTorch is missing ({error})", flush=True)
    sys.exit(1 if os.environ.get("OCTAVO_TEST_NO_SKIP") else 77)

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
import convert_nanogpt  # noqa: E402
from model_file import read_safetensors  # noqa: E402
from torch_gpt import GPT  # noqa: E402

VOCABULARY = list("\n !',.abcdefghiklmnorstuwyé€")
CONTEXT = 16
TEXT = "the bag didn't fit,\nits rain was a cliché. €!"  # two windows and a short one
OCTAVO = None  # --octavo


def random_model(bias=True, tied=True, rows=len(VOCABULARY), activation="gelu"):
    """A GPT whose logits spread over a few units; `rows` beyond the vocabulary are nanoGPT's padding."""
    config = {
        "n_embd": 24,
        "n_head": 3,
        "n_layer": 2,
        "n_positions": CONTEXT,
        "vocab_size": rows,
        "activation_function": activation,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": tied,
        "bias": bias,
    }
    model = GPT(config)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            center, scale = (1.0, 0.2) if ".ln" in f".{name}" and name.endswith("weight") else (0.0, 0.3)
            parameter.normal_(center, scale, generator=generator)
    return model


def checkpoint_of(model, prefix=""):
    """What nanoGPT's train.py would save for `model`; with the mask buffers that it has where flash attention is missing."""
    config = model.config
    mask = torch.ones(CONTEXT, CONTEXT).tril().view(1, 1, CONTEXT, CONTEXT)
    state = {}
    for name, tensor in model.state_dict().items():
        state[f"{prefix}{'' if name == 'lm_head.weight' else 'transformer.'}{name}"] = tensor
    for layer in range(config["n_layer"]):
        state[f"{prefix}transformer.h.{layer}.attn.bias"] = mask
    return {
        "model": state,
        "optimizer": {"state": {}, "param_groups": []},
        "model_args": {
            "n_layer": config["n_layer"],
            "n_head": config["n_head"],
            "n_embd": config["n_embd"],
            "block_size": config["n_positions"],
            "bias": config["bias"],
            "vocab_size": config["vocab_size"],
            "dropout": 0.2,
        },
        "iter_num": 2000,
        "best_val_loss": torch.tensor(1.5),
        "config": {"dataset": "shakespeare_char", "compile": True},
    }


def meta_of(characters):
    return {
        "vocab_size": len(characters),
        "itos": dict(enumerate(characters)),
        "stoi": {character: i for i, character in enumerate(characters)},
    }


def reference_log_probabilities(model, text):
    """Each character's but the first, in windows of the context: window i reads characters i·T to i·T+T-1."""
    tokens = torch.tensor([VOCABULARY.index(character) for character in text])
    found = []
    with torch.no_grad():
        for begin in range(0, len(tokens) - 1, CONTEXT):
            targets = tokens[begin + 1 : begin + CONTEXT + 1]
            logits = model(tokens[None, begin : begin + len(targets)])[0, :, : len(VOCABULARY)]
            found += torch.log_softmax(logits, dim=-1)[range(len(targets)), targets].tolist()
    return found


class ConvertTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.checkpoint, self.out, self.meta = (self.folder / name for name in ("ckpt.pt", "out.safetensors", "meta.pkl"))

    def run_converter(self, *options, as_program=False):
        """(exit status, standard output, standard error)."""
        return self.run_with(self.checkpoint, self.out, "--force", *options, as_program=as_program)

    def run_with(self, *arguments, as_program=False):
        arguments = [str(argument) for argument in arguments]
        if as_program:
            command = [sys.executable, TOOLS / "convert_nanogpt.py", *arguments]
            run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
            return run.returncode, run.stdout, run.stderr
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                convert_nanogpt.convert(convert_nanogpt.parse_arguments(arguments))
            except SystemExit as end:  # with a string Python prints it and exits with 1
                return 1, output.getvalue(), f"{end.code}\n"
        return 0, output.getvalue(), ""

    def write(self, checkpoint, meta=None):
        torch.save(checkpoint, self.checkpoint)
        self.meta.write_bytes(pickle.dumps(meta_of(VOCABULARY) if meta is None else meta))

    def check(self, model, *options, prefix="", dtype=None, start="\n", as_program=False):
        self.write(checkpoint_of(model, prefix))
        status, output, errors = self.run_converter(*options, as_program=as_program)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(output.count("\n"), 1)
        self.assertIn("out.safetensors", output)
        tensors, metadata = read_safetensors(self.out)
        self.assertEqual(metadata["format"], "octavo/1")
        self.assertEqual(json.loads(metadata["config"]), {**model.config, "vocab_size": len(VOCABULARY)})
        self.assertEqual(json.loads(metadata["vocabulary"]), VOCABULARY)
        self.assertEqual(metadata.get("start"), start)
        expected = model.tensors()
        self.assertEqual(set(tensors), set(expected))
        for name, tensor in expected.items():
            if name in ("wte.weight", "lm_head.weight"):
                tensor = tensor[: len(VOCABULARY)]
            stored = tensor.to(dtype or torch.float32).double().numpy()
            self.assertTrue(np.array_equal(tensors[name], stored), name)
        if OCTAVO:
            self.check_scores(model, tensors)

    def check_scores(self, model, tensors):
        """The program against PyTorch in float64, both with the weights as stored."""
        stored = GPT(model.config).double()
        for name, tensor in stored.tensors().items():
            tensor[: len(tensors[name])] = torch.from_numpy(tensors[name])  # padding rows stay whatever they are
        text = self.folder / "text.txt"
        text.write_bytes(TEXT.encode("utf-8"))
        command = [OCTAVO, "score", "--model", self.out, "--document", "--per-char", text]
        run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
        self.assertEqual(run.returncode, 0, run.stderr)
        found = json.loads(run.stdout)["logprobs"]
        expected = reference_log_probabilities(stored, TEXT)
        self.assertEqual(len(found), len(TEXT) - 1)
        self.assertGreater(np.std(expected), 0.5, "a model this flat would hide mistakes")
        for position, (one, other) in enumerate(zip(found, expected), 1):
            self.assertTrue(abs(one - other) <= 1e-4, f"character {position}: {one}, expected {other}")

    def test_plain(self):
        self.check(random_model(), as_program=True)

    def test_compiled_without_biases(self):
        self.check(random_model(bias=False), prefix="_orig_mod.")

    def test_distributed_with_separate_head_and_padding(self):
        self.check(random_model(tied=False, rows=64), prefix="module._orig_mod.")

    def test_tied_when_all_but_padding_is_equal(self):
        model = random_model(rows=64)
        checkpoint = checkpoint_of(model)
        head = checkpoint["model"]["lm_head.weight"].clone()
        head[len(VOCABULARY) :] = 9.0
        checkpoint["model"]["lm_head.weight"] = head
        self.write(checkpoint)
        self.assertEqual(self.run_converter()[0], 0)
        tensors, metadata = read_safetensors(self.out)
        self.assertNotIn("lm_head.weight", tensors)
        self.assertTrue(json.loads(metadata["config"])["tie_word_embeddings"])

    def test_options(self):
        model = random_model(activation="gelu_new")
        self.check(model, "--activation", "gelu_new", "--start", "€", "--dtype", "F16", dtype=torch.float16, start="€")
        self.check(model, "--activation", "gelu_new", "--dtype", "BF16", dtype=torch.bfloat16)

    def test_views_and_other_types(self):
        model = random_model()
        checkpoint = checkpoint_of(model)
        state = checkpoint["model"]
        for name, tensor in state.items():
            if name.endswith("attn.c_proj.weight"):
                state[name] = tensor.t().contiguous().t()
            elif name.endswith("c_fc.bias"):
                state[name] = torch.cat([torch.full((5,), 9.0), tensor])[5:]
            elif name.endswith("ln_2.weight"):
                state[name] = tensor.bfloat16()
            elif name.endswith("ln_2.bias"):
                state[name] = tensor.half()
            elif name.endswith("ln_f.weight"):
                state[name] = torch.nn.Parameter(tensor.double())
        self.write(checkpoint)
        self.assertEqual(self.run_converter()[0], 0)
        tensors, _ = read_safetensors(self.out)
        for name in model.tensors():
            self.assertTrue(np.array_equal(tensors[name], state[f"transformer.{name}"].detach().double().numpy()), name)

    def test_first_versions_have_no_bias_argument(self):
        for bias in (True, False):
            checkpoint = checkpoint_of(random_model(bias=bias))
            del checkpoint["model_args"]["bias"]
            self.write(checkpoint)
            self.assertEqual(self.run_converter()[0], 0)
            self.assertEqual(json.loads(read_safetensors(self.out)[1]["config"])["bias"], bias)

    def test_meta_elsewhere_without_newline(self):
        characters = ["ß" if character == "\n" else character for character in VOCABULARY]
        self.write(checkpoint_of(random_model()))
        self.meta.unlink()
        other = self.folder / "other.pkl"
        other.write_bytes(pickle.dumps(meta_of(characters)))
        self.assertEqual(self.run_converter("--meta", other)[0], 0)
        metadata = read_safetensors(self.out)[1]
        self.assertEqual(json.loads(metadata["vocabulary"]), characters)
        self.assertNotIn("start", metadata)

    def refused(self, *words, options=(), as_program=False):
        """One line that holds `words`, exit status 1, no file written."""
        status, output, errors = self.run_converter(*options, as_program=as_program)
        self.assertEqual((status, output), (1, ""), errors)
        self.assertTrue(errors.startswith("convert_nanogpt.py: ") and errors.count("\n") == 1, errors)
        for word in words:
            self.assertIn(word, errors)
        self.assertFalse(self.out.exists())

    def test_refuses_files(self):
        self.refused("ckpt.pt", "No such file", as_program=True)
        self.write(checkpoint_of(random_model()))
        whole = self.checkpoint.read_bytes()
        self.checkpoint.write_bytes(b"To be, or not to be")
        self.refused("ckpt.pt", "not a checkpoint")
        self.checkpoint.write_bytes(whole[: len(whole) // 2])
        self.refused("ckpt.pt", "not a checkpoint")
        some_weight = whole.index(random_model().h[0].mlp.c_fc.weight.detach().numpy().tobytes())
        self.checkpoint.write_bytes(whole[:some_weight] + bytes([whole[some_weight] ^ 1]) + whole[some_weight + 1 :])
        self.refused("h.0.mlp.c_fc.weight", "cannot be read")
        self.checkpoint.write_bytes(whole)
        self.meta.write_bytes(b"")
        self.refused("meta.pkl", "not a meta.pkl")
        self.meta.unlink()
        self.refused("meta.pkl", "No such file", "--meta")

    def test_output_is_no_input(self):
        self.write(checkpoint_of(random_model()))
        link = self.folder / "link.safetensors"
        link.symlink_to(self.checkpoint)
        for out, read in ((self.checkpoint, self.checkpoint), (link, self.checkpoint), (self.meta, self.meta)):
            before = read.read_bytes()
            status, output, errors = self.run_with(self.checkpoint, out, "--force", as_program=True)
            self.assertEqual((status, output, errors.count("\n")), (2, "", 1), errors)
            self.assertIn(f"OUT: {out} is the file {read} that is read", errors)
            self.assertEqual(read.read_bytes(), before)

    def test_existing_file_is_kept(self):
        self.out.write_bytes(b"precious")
        status, output, errors = self.run_with(self.folder / "missing.pt", self.out, as_program=True)  # said before anything is read
        self.assertEqual((status, output), (1, ""))
        self.assertEqual(errors, f"convert_nanogpt.py: {self.out} exists; use --force to overwrite it, or another name\n")
        self.assertEqual(self.run_with(self.folder / "missing.pt", self.out, "--force", as_program=True)[0], 1)
        self.assertEqual(self.out.read_bytes(), b"precious")
        # --force writes through a link, keeps permissions, and follows no link beside OUT.
        self.write(checkpoint_of(random_model()))
        link, other = self.folder / "link.safetensors", self.folder / "other"
        link.symlink_to(self.out)
        other.write_bytes(b"precious")
        for name in (self.out, link):
            name.with_name(f"{name.name}.partial").symlink_to(other)
        self.out.chmod(0o640)
        self.assertEqual(self.run_with(self.checkpoint, link, "--force", as_program=True)[0], 0)
        self.assertTrue(link.is_symlink())
        read_safetensors(self.out)
        self.assertEqual(self.out.stat().st_mode & 0o777, 0o640)
        self.assertEqual(other.read_bytes(), b"precious")

    def test_runs_no_code_from_pickles(self):
        mark = self.folder / "ran"

        class Hostile:
            def __reduce__(self):
                return pathlib.Path.touch, (mark,)

        self.write(checkpoint_of(random_model()), Hostile())
        self.refused("meta.pkl", "not a meta.pkl")
        self.write({**checkpoint_of(random_model()), "config": Hostile()})
        self.refused("ckpt.pt", "not a checkpoint")
        self.assertFalse(mark.exists())
        self.assertEqual(pickle.loads(pickle.dumps(Hostile())), None)
        self.assertTrue(mark.exists(), "the trap itself does not work")

    def test_refuses_checkpoints(self):
        def damage(change, *words):
            checkpoint = checkpoint_of(random_model())
            change(checkpoint, checkpoint["model"], checkpoint["model_args"])
            self.write(checkpoint)
            self.refused("ckpt.pt", *words)

        name = "transformer.h.1.mlp.c_fc.weight"
        damage(lambda whole, model, sizes: whole.pop("model"), "`model`")
        damage(lambda whole, model, sizes: whole.pop("model_args"), "`model_args`")
        damage(lambda whole, model, sizes: sizes.pop("block_size"), "`block_size`")
        damage(lambda whole, model, sizes: sizes.update(n_head=0), "n_head", "0")
        damage(lambda whole, model, sizes: sizes.update(n_head=5), "n_head 5 does not divide n_embd 24")
        damage(lambda whole, model, sizes: sizes.update(n_layer=10**12), "h.2.ln_1.weight is missing")
        damage(lambda whole, model, sizes: sizes.update(n_layer=1), "h.1.")
        damage(lambda whole, model, sizes: sizes.update(bias=False), "bias")
        damage(lambda whole, model, sizes: model.pop(name), "h.1.mlp.c_fc.weight is missing")
        damage(lambda whole, model, sizes: model.pop("lm_head.weight"), "lm_head.weight is missing")
        damage(lambda whole, model, sizes: model.update({name: model[name].T}), "c_fc.weight", "[24, 96]", "[96, 24]")
        damage(lambda whole, model, sizes: model.update({name: "text"}), "c_fc.weight is not a tensor")
        damage(lambda whole, model, sizes: model.update({name: model[name].int()}), "c_fc.weight", "IntStorage")
        damage(lambda whole, model, sizes: model[name].view(-1)[5].fill_(float("nan")), "c_fc.weight", "not finite")

    def test_refuses_values_beyond_f16(self):
        checkpoint = checkpoint_of(random_model())
        checkpoint["model"]["transformer.ln_f.bias"][3] = 7e4
        self.write(checkpoint)
        self.refused("ln_f.bias", "F16", options=("--dtype", "F16"))

    def test_refuses_vocabularies(self):
        def damage(meta, *words, options=()):
            self.write(checkpoint_of(random_model()), meta)
            self.refused(*words, options=options)

        damage({"vocab_size": 3}, "meta.pkl", "`itos`")
        damage(meta_of(VOCABULARY[:-1] + ["<eos>"]), "meta.pkl", "'<eos>'", f"entry {len(VOCABULARY) - 1}")
        damage(meta_of(VOCABULARY[:-1] + [""]), "meta.pkl", "''")
        damage(meta_of(VOCABULARY[:-1] + ["\ud800"]), "meta.pkl", r"'\ud800'")
        damage(meta_of(VOCABULARY + ["x"]), str(len(VOCABULARY) + 1), "embedding", str(len(VOCABULARY)))
        damage({"itos": {0: "a", 2: "b"}}, "meta.pkl", "ids")
        damage({"itos": {0: "a", 1: "a"}}, "meta.pkl", "twice")
        damage({**meta_of(VOCABULARY), "vocab_size": 3}, "meta.pkl", "contradict")
        damage(meta_of(VOCABULARY), "--start 'x'", options=("--start", "x"))
        damage(meta_of(VOCABULARY), "--start", options=("--start", ""))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octavo", metavar="PATH", help="the program; without it no text is scored")
    given, rest = parser.parse_known_args()
    OCTAVO = given.octavo
    torch.set_num_threads(1)
    unittest.main(argv=sys.argv[:1] + rest)
