#!/usr/bin/env python3
"""Tests the Python tools, and octavo_bench where there is one, on standard streams that are closed, and on the name - for an output.

Needs neither PyTorch nor a model.

    /usr/bin/python3 tests/tool_streams_test.py [--bench build/dev/octavo_bench] [unittest's own arguments]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]
REPORT = SOURCE / "bench" / "report"
BENCH = None  # --bench

# Opens a file as the tools do and lets the C library write a message, as that of PyTorch's threads does.
WRITER = """
import os, sys
from arguments import Parser
Parser("a tool")
with open(sys.argv[1], "wb", buffering=0) as file:
    try:
        os.write(2, b"a message of a library")
        print("a message of the tool", file=sys.stderr)
    except OSError:
        pass
    file.write(b"data")
    print("ready")
"""


def run(command, closed=(), stdout=subprocess.PIPE):
    """The command with descriptors closed at its start, as `2>&-` does."""

    def close():
        for number in closed:
            os.close(number)

    return subprocess.run(
        [*map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        preexec_fn=close,
        env=dict(os.environ, PYTHONPATH=str(SOURCE / "tools")),
    )


class StreamsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def assert_one_line(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class ToolStreamsTest(StreamsTest):
    def test_messages_do_not_go_into_files(self):
        path = self.folder / "data"
        for closed in ((2,), (0, 2), (1, 2), (0, 1, 2), (1,), (0,)):
            with self.subTest(closed=closed):
                done = run([sys.executable, "-c", WRITER, path], closed)
                self.assertEqual(path.read_bytes(), b"data")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, "" if 1 in closed else "ready\n", "nor into standard output")

    def test_models_cannot_go_to_standard_output(self):
        text = self.folder / "text"
        text.write_text("to be or not to be")
        why = "standard output cannot hold it; expected the name of a file"
        for tool, arguments in (
            ("train.py", [text, "--out", "-"]),
            ("train.py", [text, "--out", self.folder / "model", "--checkpoint", "-"]),
            ("convert_nanogpt.py", [text, "-"]),
        ):
            with self.subTest(tool=tool, arguments=arguments):
                done = run([sys.executable, SOURCE / "tools" / tool, *arguments])
                if "No module named 'numpy'" in done.stderr:  # convert_nanogpt.py reads none of its flags without
                    continue
                self.assert_one_line(done, 2, tool, why)

    def test_messages_are_harmless(self):
        name = self.folder / "a\x1b[2Jb\u009b\u202ec"
        for tool, arguments in (
            ("tools/train.py", [name, "--out", name / "out"]),
            ("tools/convert_nanogpt.py", [name, self.folder / "out"]),
            ("bench/report", [name]),
        ):
            with self.subTest(tool=tool):
                done = run([sys.executable, SOURCE / tool, *arguments])
                if "No module named 'numpy'" in done.stderr:
                    continue
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("\\u202E", done.stderr)
                self.assertNotRegex(done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


class BenchStreamsTest(StreamsTest):
    def setUp(self):
        super().setUp()
        if BENCH is None:
            self.skipTest("no octavo_bench")
        self.results = self.folder / "results.json"
        done = self.measure()
        self.assertEqual(done.returncode, 0, done.stderr)

    def measure(self, closed=()):
        flags = ["--benchmark_filter=^softmax/softmax/65", "--benchmark_min_time=0.001", f"--benchmark_out={self.results}"]
        return run([BENCH, *flags], closed)

    # It warns of debug builds and busy machines.
    def test_messages_of_benchmarks_do_not_go_into_files(self):
        for closed in ((2,), (0, 2), (0, 1, 2)):
            self.results.unlink()
            self.measure(closed)
            self.assertTrue(json.loads(self.results.read_text())["benchmarks"])

    def test_report_without_standard_streams(self):
        whole = run([sys.executable, REPORT, self.results])
        self.assertEqual((whole.returncode, whole.stderr), (0, ""))
        self.assertEqual(run([sys.executable, REPORT, self.results], closed=(2,)).stdout, whole.stdout)
        self.assert_one_line(run([sys.executable, REPORT, self.results], closed=(1,)), 1, "bench/report: ")
        damaged = self.folder / "damaged.json"
        damaged.write_text("{")
        done = run([sys.executable, REPORT, damaged], closed=(2,))
        self.assertEqual((done.returncode, done.stdout), (1, ""), "no message in the place of the report")

    def test_report_on_a_full_disk(self):
        with open("/dev/full", "w") as full:
            self.assert_one_line(run([sys.executable, REPORT, self.results], stdout=full), 1, "No space left on device")

    def test_report_to_dash_is_standard_output(self):
        done = run([sys.executable, REPORT, self.results, "--output", "-"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, run([sys.executable, REPORT, self.results]).stdout)
        self.assertFalse(pathlib.Path("-").exists())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bench")
    known, rest = parser.parse_known_args()
    BENCH = known.bench
    unittest.main(argv=[sys.argv[0], *rest])
