#!/usr/bin/env python3
"""Tests tools/train.py on a made-up text with a model of some hundred parameters.

An interrupted and resumed run must give the bytes of an unbroken one, also with dropout; with --octavo, that program's loss over the
held-out text must be the one that train.py reports. Where PyTorch is missing it exits with 77 (ctest: skipped), or with 1 when
OCTAVO_TEST_NO_SKIP is set.

    /usr/bin/python3 tests/train_test.py [--octavo build/dev/octavo] [unittest's own arguments]
"""

import argparse
import contextlib
import io
import json
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"SKIPPED: PyTorch is missing ({error})", flush=True)
    sys.exit(1 if os.environ.get("OCTAVO_TEST_NO_SKIP") else 77)

TOOLS = pathlib.Path(__file__).resolve().parents[1] / "tools"
sys.path.insert(0, str(TOOLS))
import torch_gpt  # noqa: E402
import train  # noqa: E402
from model_file import read_safetensors  # noqa: E402

OCTAVO = None  # --octavo
SMALL = "--context 8 --width 8 --heads 2 --layers 1 --batch 4 --warm-up 5 --eval-every 10 --steps 30 --rate 0.02".split()


def made_up_text(words=500):
    generator = random.Random(5)
    pool = "the bag didn't fit,\n its rain was a cliché €! so".split(" ")
    return " ".join(generator.choice(pool) for _ in range(words))


class TrainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text.txt"
        self.text.write_bytes(made_up_text().encode("utf-8"))

    def run_trainer(self, name, *options, text=None, resume=False, interrupt_at=None):
        """Trains to NAME.safetensors in this process: (exit status, standard output, the line that ended it)."""
        out, checkpoint = (self.folder / f"{name}.{kind}" for kind in ("safetensors", "checkpoint"))
        arguments = [text or self.text, "--out", out, "--checkpoint", checkpoint, *SMALL, *options, *(["--resume"] if resume else [])]

        def rate_and_signal(settings, step, rate=train.learning_rate):
            if step == interrupt_at:
                os.kill(os.getpid(), signal.SIGTERM)
            return rate(settings, step)

        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                with mock.patch.object(train, "learning_rate", rate_and_signal):
                    train.train(train.parse_arguments([str(argument) for argument in arguments]))
                status = 0
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
                errors.write(f"{end.code}\n" if isinstance(end.code, str) else "")
            finally:
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        return status, output.getvalue(), errors.getvalue()

    def read(self, name):
        return (self.folder / f"{name}.safetensors").read_bytes()

    def assert_learned(self, output):
        losses = [float(loss) for loss in re.findall(r"validation ([0-9.]+)  ", output)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0] - 0.05)

    def test_something_is_said_before_the_first_validation(self):
        status, output, _ = self.run_trainer("silent", "--steps", "12", "--eval-every", "1000")
        self.assertEqual(status, 0)
        self.assertRegex(output, r"(?m)^step 10/12  training [0-9.]+  \d+ ms a step  0:00:0\d left; validation every 1000 steps$")

    def test_missing_packages_are_one_line(self):
        with mock.patch("importlib.util.find_spec", lambda name: None if name == "torch" else True):
            with self.assertRaisesRegex(SystemExit, r"^train.py: \S+ lacks torch: .*requirements\.txt, or apt-get install python3-torch [^\n]*$"):
                train.require_packages()
        requirements = (pathlib.Path(train.__file__).parent / "requirements.txt").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(?m)^\w+$", requirements), ["numpy", "torch"])

    def test_resumed_equals_unbroken(self):
        for name, options in (
            ("plain", []),
            ("tied", ["--tied", "--seed", "2"]),
            ("dropout", ["--dropout", "0.1", "--no-bias"]),
        ):
            status, output, _ = self.run_trainer(f"{name}-whole", *options)
            self.assertEqual(status, 0)
            self.assert_learned(output)
            # Between two validations, and during the step of one.
            for interrupt_at in (13, 19):
                part = f"{name}-{interrupt_at}"
                status, _, errors = self.run_trainer(part, *options, interrupt_at=interrupt_at)
                self.assertEqual(status, 128 + signal.SIGTERM)
                self.assertIn(f"interrupted after step {interrupt_at + 1}", errors)
                self.assertEqual(errors.count("\n"), 1)
                self.assertNotEqual(self.read(part), self.read(f"{name}-whole"))
                torch.manual_seed(99)  # what a new process would not have
                status, output, _ = self.run_trainer(part, *options, resume=True)
                self.assertEqual(status, 0)
                self.assertIn(f"resumed at step {interrupt_at + 1}", output)
                self.assertEqual(self.read(part), self.read(f"{name}-whole"))
                states = [torch.load(self.folder / f"{run}.checkpoint") for run in (part, f"{name}-whole")]
                self.assertEqual(states[0]["best"], states[1]["best"])
                for key, tensor in states[0]["model"].items():
                    self.assertTrue(torch.equal(tensor, states[1]["model"][key]), key)

    def test_dropout_keeps_the_mean(self):
        torch.manual_seed(1)
        count, x = 1_000_003, torch.ones(1_000_003, requires_grad=True)
        for p in (0.05, 0.5):
            y = torch_gpt.dropout(x, p, True)
            # Six deviations of a binomial share.
            self.assertLess(abs((y == 0).double().mean().item() - p), 6 * math.sqrt(p * (1 - p) / count) + 2**-16)
            self.assertEqual(set(y.tolist()), {0.0, torch.tensor(1 / (1 - p)).item()})
            (gradient,) = torch.autograd.grad(y.sum(), x)
            self.assertTrue(torch.equal(gradient, y), "gradients come back through what was kept")
        self.assertIs(torch_gpt.dropout(x, 0.5, False), x)

    def test_seed_decides(self):
        for name, seed in (("one", 1), ("again", 1), ("two", 2)):
            self.assertEqual(self.run_trainer(name, "--seed", seed, "--steps", 10)[0], 0)
        self.assertEqual(self.read("one"), self.read("again"))
        self.assertNotEqual(self.read("one"), self.read("two"))

    def test_octavo_finds_the_same_loss(self):
        text = made_up_text()
        held_out = self.folder / "held_out.txt"
        held_out.write_bytes(text[len(text) * 9 // 10 :].encode("utf-8"))
        for name, options in (
            ("defaults", []),
            ("other", ["--activation", "relu", "--no-bias", "--tied", "--context", "13", "--epsilon", "0.001"]),
            ("erf", ["--activation", "gelu", "--layers", "2"]),
        ):
            status, output, _ = self.run_trainer(name, *options)
            self.assertEqual(status, 0)
            (loss,) = re.findall(r"^best validation loss ([0-9.]+) nats a character", output, re.MULTILINE)
            _, metadata = read_safetensors(self.folder / f"{name}.safetensors")
            self.assertEqual(json.loads(metadata["vocabulary"]), sorted(set(text)))
            self.assertEqual(metadata["start"], "\n")
            if OCTAVO:
                command = [OCTAVO, "score", "--document", "--model", self.folder / f"{name}.safetensors", held_out]
                run = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
                self.assertEqual(run.returncode, 0, run.stderr)
                score = json.loads(run.stdout)
                self.assertEqual(score["chars"], len(text) - len(text) * 9 // 10 - 1)
                # Printed with four decimals; the last may round either way.
                self.assertTrue(abs(score["nats_per_char"] - float(loss)) <= 0.00006, f"{score['nats_per_char']}, {loss}")

    def test_stored_types(self):
        tensors = {}
        for dtype in ("F32", "F16", "BF16"):
            self.assertEqual(self.run_trainer(dtype, "--steps", 10, "--dtype", dtype)[0], 0)
            tensors[dtype] = read_safetensors(self.folder / f"{dtype}.safetensors")[0]
        for name, exact in tensors["F32"].items():
            for dtype, bits in (("F16", 11), ("BF16", 8)):
                error = np.abs(tensors[dtype][name] - exact)
                self.assertTrue((error <= np.abs(exact) * 2.0**-bits + 2.0**-25).all(), f"{name} as {dtype}")

    def test_byte_order_mark_and_line_ends(self):
        self.text.write_bytes(b"\xef\xbb\xbf" + made_up_text().replace("\n", "\r\n").encode("utf-8"))
        self.assertEqual(self.run_trainer("marked", "--steps", 1)[0], 0)
        vocabulary = json.loads(read_safetensors(self.folder / "marked.safetensors")[1]["vocabulary"])
        self.assertEqual(vocabulary, sorted(set(made_up_text()) | {"\r"}))

    def test_wrong_flags_are_one_line(self):
        wrong = [
            ["--width", "9", "--heads", "2"],
            ["--resume"],
            ["--resume", "--force", "--checkpoint", str(self.folder / "x")],
            ["--out", str(self.folder / "missing" / "x.safetensors")],
            ["--out", str(self.folder)],
            ["--checkpoint", str(self.folder / "missing" / "x")],
            ["--activation", "swish"],
            ["--unknown-flag"],
        ]
        numbers = {
            "--steps": ["0", "1.5", "many", ""],
            "--context": ["0", "-8"],
            "--seed": ["-1", "2147483648"],
            "--rate": ["nan", "inf", "-0.1", "0,1"],
            "--dropout": ["1.1", "-0.1"],
            "--beta1": ["1"],
            "--warm-up": ["-1"],
            "--epsilon": ["-1e-5"],
        }
        wrong += [[flag, value] for flag, values in numbers.items() for value in values]
        for options in wrong:
            with contextlib.redirect_stderr(io.StringIO()) as errors, self.assertRaises(SystemExit) as end:
                train.parse_arguments([str(self.text), "--out", str(self.folder / "x.safetensors"), *options])
            self.assertEqual(end.exception.code, 2, options)
            self.assertRegex(errors.getvalue(), r"\A[^\n]*" + re.escape(options[0]) + r"[^\n]*\n\Z")
        # As a program, where nothing else may print either.
        command = [sys.executable, TOOLS / "train.py", self.text, "--heads", "5"]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout, run.stderr.count("\n")), (2, "", 1), run.stderr)

    def run_program(self, *arguments):
        run = subprocess.run([sys.executable, TOOLS / "train.py", *arguments], capture_output=True, text=True)
        self.assertEqual((run.stdout, run.stderr.count("\n")), ("", 1), run.stderr)
        return run.returncode, run.stderr

    def test_outputs_are_no_inputs(self):
        before = self.text.read_bytes()
        link, out = self.folder / "link", self.folder / "x"
        link.symlink_to(self.text)
        for model, checkpoint, wrong in ((self.text, out, self.text), (link, out, link), (out, link, link)):
            for more in ("--force", "--resume"):
                status, errors = self.run_program(self.text, "--out", model, "--checkpoint", checkpoint, *SMALL, more)
                self.assertEqual(status, 2)
                self.assertIn(f"{wrong} is the file {self.text} that is read", errors)
        status, errors = self.run_program(self.text, "--out", out, "--checkpoint", out, *SMALL)
        self.assertEqual(status, 2)
        self.assertIn(f"--checkpoint: {out} is the file of --out, too", errors)
        self.assertEqual(self.text.read_bytes(), before)

    def test_existing_files_are_kept(self):
        for kind in ("safetensors", "checkpoint"):
            for resume in (False, True) if kind == "safetensors" else (False,):
                there = self.folder / f"kept.{kind}"
                there.write_bytes(b"precious")
                status, output, errors = self.run_trainer("kept", "--steps", 10, resume=resume)
                self.assertEqual((status, output), (1, ""))
                self.assertEqual(errors, f"train.py: {there} exists; use --force to overwrite it, or another name\n")
                self.assertEqual(there.read_bytes(), b"precious")
            there.unlink()
        # Names that saving may want for a moment lead nowhere else.
        other = self.folder / "other"
        other.write_bytes(b"precious")
        for kind in ("safetensors", "checkpoint"):
            (self.folder / f"kept.{kind}.partial").symlink_to(other)
            (self.folder / f"kept.{kind}").write_bytes(b"old")
        self.assertEqual(self.run_trainer("kept", "--steps", 10, "--force")[0], 0)
        read_safetensors(self.folder / "kept.safetensors")
        self.assertEqual(torch.load(self.folder / "kept.checkpoint")["step"], 10)
        self.assertEqual(other.read_bytes(), b"precious")
        self.assertEqual(len(list(self.folder.iterdir())), 6, "the text, the two files, the two links and what they lead to")
        # What a resumed run would replace is its own model.
        (self.folder / "kept.safetensors").write_bytes(b"precious")
        self.refused("is there, but is no model", "kept", "--steps", 10, resume=True)
        self.assertEqual(self.read("kept"), b"precious")

    def refused(self, words, name, *options, **more):
        status, _, errors = self.run_trainer(name, *options, **more)
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"\Atrain\.py: [^\n]*\n\Z")
        self.assertIn(words, errors)

    def test_refuses(self):
        self.refused("No such file", "x", text=self.folder / "missing.txt")
        other = self.folder / "other.txt"
        other.write_bytes(b"ab\xff")
        self.refused("utf-8", "x", text=other)
        other.write_bytes(b"too short")
        self.refused("9 characters are too few", "x", text=other)
        self.refused("loss is nan", "x", "--rate", "1e30")
        self.assertFalse((self.folder / "x.safetensors").exists())

        self.assertEqual(self.run_trainer("made", "--steps", 10)[0], 0)
        self.refused("width = 8, not 16", "made", "--steps", 10, "--width", 16, resume=True)
        other.write_bytes(made_up_text()[::-1].encode("utf-8"))
        self.refused("another text", "made", "--steps", 10, text=other, resume=True)
        (self.folder / "made.checkpoint").write_bytes(b"nonsense")
        self.refused("not a checkpoint", "made", "--steps", 10, resume=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--octavo", metavar="PATH", help="the program; without it no held-out text is scored")
    given, rest = parser.parse_known_args()
    OCTAVO = given.octavo
    unittest.main(argv=sys.argv[:1] + rest)
