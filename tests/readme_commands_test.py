#!/usr/bin/env python3
"""Runs the commands of README.md as they are written, each block by Bash in a folder of its own that has the repository's tools and a build.

A block that cannot be run here has its first line and the reason in NOT_RUN; a new one that fails has to be added there or mended. Of
commands that are not run, the program is checked: that it is there, that it may be executed, and that it knows the flags.

    /usr/bin/python3 tests/readme_commands_test.py --octavo build/dev/octavo [unittest's own arguments]
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]
OCTAVO = None  # --octavo

# First line of a block → why the block is not run as a whole.
NOT_RUN = {
    "tools/quickstart.sh": "installs packages and builds; run by CI",
    "cmake --preset arm64 && cmake --build --preset arm64 && ctest --preset arm64": "cross compiles; run by CI",
    "cmake --install build/release --prefix \"$HOME/octavo\"": "install_test does it",
    "tools/train.py my.txt --out my.safetensors --checkpoint my.checkpoint": "trains for an hour; train_test trains",
}


def without_comment(line):
    return re.sub(r"\s+#.*", "", line).strip()


def blocks():
    """The shell blocks, and the commands of those that show output, one a line."""
    text = (SOURCE / "README.md").read_text(encoding="utf-8")
    for kind, body in re.findall(r"^```(sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if kind == "sh":
            yield body
        else:
            yield "".join(f"{line[2:]}\n" for line in body.splitlines() if line.startswith("$ "))


def first_line(block):
    return without_comment(block.splitlines()[0])


class ReadmeTest(unittest.TestCase):
    def folder(self, files=None):
        """A folder like the repository after a build, with the reader's own files."""
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        (folder / "build" / "release").mkdir(parents=True)
        (folder / "build" / "release" / "octavo").symlink_to(pathlib.Path(OCTAVO).resolve())
        for name in ("tools", "bench"):
            (folder / name).symlink_to(SOURCE / name)
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(sys.executable)  # the Python that has what the tools need
        return folder

    def run_block(self, block, files=None):
        """With the variables that earlier blocks set. Each command has to succeed."""
        assignments = [line for other in blocks() for line in other.splitlines() if re.match(r"\w+=\S+$", line)]
        folder = self.folder(files)
        return subprocess.run(
            ["bash", "-c", "\n".join(["set -euo pipefail", *assignments, block])],
            cwd=folder,
            env=dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )

    def runnable_targets(self):
        info = subprocess.run([OCTAVO, "info", "--format", "json"], check=True, capture_output=True, encoding="utf-8")
        return json.loads(info.stdout)["cpu"]["targets_runnable"]

    def test_blocks_run(self):
        found = list(blocks())
        self.assertGreaterEqual(len(found), 10)
        self.assertEqual(set(NOT_RUN) - {first_line(block) for block in found}, set(), "no longer on the page")
        num_run = 0
        for block in found:
            if first_line(block) in NOT_RUN:
                continue
            if missing := set(re.findall(r"--target (\w+)", block)) - set(self.runnable_targets()):
                print(f"not run, for this CPU lacks {missing}: {first_line(block)}")
                continue
            with self.subTest(block=block):
                done = self.run_block(block)
                self.assertEqual(done.returncode, 0, done.stderr)
                if "sha256sum" in block:  # "prints one hash three times"
                    self.assertEqual(len(done.stdout.splitlines()), 3)
                    self.assertEqual(len(set(done.stdout.splitlines())), 1, done.stdout)
                num_run += 1
        self.assertGreaterEqual(num_run, 7)

    def test_programs_of_all_commands(self):
        """What the page names is in the repository and may be executed: in blocks, and in the running text."""
        text = (SOURCE / "README.md").read_text(encoding="utf-8")
        commands = [line for block in blocks() for line in map(without_comment, block.splitlines())]
        commands += re.findall(r"`((?:tools|bench|\.ci)/[^`]+)`", text)
        modules = {"tools/model_file.py"}  # to be read, not to be run
        checked = set()
        for command in commands:
            program = command.split(" ")[0]
            if not re.fullmatch(r"(tools|bench|\.ci)/(\w+\.(sh|py)|report|run)", program) or program in modules:
                continue
            self.assertTrue(os.access(SOURCE / program, os.X_OK), f"{program} is not there or not executable: {command}")
            checked.add(program)
        scripts = {f"tools/{name}" for name in ("quickstart.sh", "test.sh", "train.py", "convert_nanogpt.py")}
        self.assertLessEqual(scripts | {"bench/report", "bench/run.sh", ".ci/run"}, checked)

    def test_python_tools_know_their_flags(self):
        num_checked = 0
        for block in blocks():
            for line in map(without_comment, block.splitlines()):
                words = shlex.split(line)
                if not words or not words[0].endswith(".py"):
                    continue
                done = self.run_block(f"{words[0]} --help")
                if "No module named 'numpy'" in done.stderr and not os.environ.get("OCTAVO_TEST_NO_SKIP"):
                    print(f"not run, for numpy is missing: {line}")
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                for word in words[1:]:
                    if word.startswith("--"):
                        self.assertRegex(done.stdout, rf"(?m){word}\b", line)
                num_checked += 1
        self.assertGreaterEqual(num_checked, 1)

    def test_a_model_is_brought(self):
        """The last line of the block whose first trains: with any model under that name."""
        model = (SOURCE / "engine" / "models" / "tiny.safetensors").read_bytes()
        block = next(block for block in blocks() if first_line(block).startswith("tools/train.py"))
        done = self.run_block(block.splitlines()[-1], {"my.safetensors": model})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_presets_are_there(self):
        presets = json.loads((SOURCE / "CMakePresets.json").read_text(encoding="utf-8"))
        text = (SOURCE / "README.md").read_text(encoding="utf-8")
        for kind, name in re.findall(r"(cmake|cmake --build|ctest) --preset (\w+)", text):
            group = {"cmake": "configurePresets", "cmake --build": "buildPresets", "ctest": "testPresets"}[kind]
            self.assertIn(name, [preset["name"] for preset in presets[group]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--octavo", required=True)
    known, rest = parser.parse_known_args()
    OCTAVO = known.octavo
    unittest.main(argv=[sys.argv[0], *rest])
