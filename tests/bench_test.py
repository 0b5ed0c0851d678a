#!/usr/bin/env python3
"""Tests octavo_bench: every result carries its counters, and the JSON says what was measured on what; on demand also that nothing comes out above
its roof.

    /usr/bin/python3 tests/bench_test.py --bench build/dev/octavo_bench BenchTest|RoofTest [unittest's own arguments]
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

BENCH = None  # --bench
MOST = 1.03  # of the roof
# One disturbed run on a busy machine is not an error in a probe or a count; such an error shows in each.
RUNS = 4


def run_whole(*arguments):
    """What octavo_bench writes: (context, benchmarks by name, standard error)."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out.json"
        done = subprocess.run([BENCH, f"--benchmark_out={out}", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        document = json.loads(out.read_text(encoding="utf-8"))
    return document["context"], {benchmark["name"]: benchmark for benchmark in document["benchmarks"]}, done.stderr


def run(*arguments):
    return run_whole(*arguments)[:2]


# Kernels and probes on every target and on all threads.
KERNELS = ("--benchmark_filter=-^(generate|score)/|/reference/", "--benchmark_min_time=0.002")


class RoofTest(unittest.TestCase):
    """Judges speed, which a busy machine disturbs: on demand, not in the test command."""

    def test_nothing_is_above_its_roof(self):
        _, benchmarks = run(*KERNELS)
        above = {name: b["of_roof"] for name, b in benchmarks.items() if "of_roof" in b and not b["of_roof"] <= MOST}
        for _ in range(RUNS - 1):
            if not above:
                break
            pattern = "^(" + "|".join(above) + ")$"  # names hold nothing that a pattern reads otherwise
            _, again = run(f"--benchmark_filter={pattern}", "--benchmark_min_time=0.02")
            self.assertEqual(set(again), set(above))
            above = {name: b["of_roof"] for name, b in again.items() if not b["of_roof"] <= MOST}
        self.assertEqual(above, {})


class BenchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context, cls.benchmarks, cls.errors = run_whole(*KERNELS)

    def test_every_result_has_its_counters(self):
        families = set()
        levels = {name.split("/")[2] for name in self.benchmarks if name.startswith("probe/read/")}
        for name, benchmark in self.benchmarks.items():
            with self.subTest(name):
                self.assertNotIn("error_occurred", benchmark)
                self.assertGreaterEqual(benchmark.get("spread", 0), 0)  # left out where it is 0, as with a single reading
                self.assertTrue(0 <= benchmark.get("load_by_others", 0) <= 1)
                family = name.split("/")[0]
                families.add(family)
                if family == "probe":
                    self.assertGreater(benchmark.get("FLOP/s", benchmark.get("bytes/s")), 0)
                    continue
                for counter in ("FLOP/s", "bytes/s", "of_peak", "of_bandwidth"):
                    self.assertGreater(benchmark[counter], 0, counter)
                self.assertEqual(benchmark["of_roof"], max(benchmark["of_peak"], benchmark["of_bandwidth"]))
                bound = benchmark["label"].removeprefix("bound by ")
                if benchmark["of_peak"] > benchmark["of_bandwidth"]:
                    self.assertEqual(bound, "arithmetic")
                else:
                    self.assertIn(bound, levels)
        kernels = {"activation", "causal_attention", "decode_attention", "embed", "layer_norm", "matmul", "qkv", "sample", "softmax"}
        self.assertEqual(families, kernels | {"probe"})
        spread = sum("spread" in b for b in self.benchmarks.values())
        self.assertGreater(spread, 0.9 * sum(not name.startswith("probe/") for name in self.benchmarks))

    def test_readings_that_spread_are_told(self):
        wide = [name for name, benchmark in self.benchmarks.items() if benchmark.get("spread", 0) > 0.05]
        self.assertEqual("spread by more than 5%" in self.errors, bool(wide), self.errors)

    def test_time_is_real_not_that_of_all_threads(self):
        target, threads = self.context["targets_run"].split(", ")[0], int(self.context["threads"])
        began = time.monotonic()
        _, benchmarks = run(f"--benchmark_filter=^generate/text/tiny/{target}/" + (f"{threads}/" if threads > 1 else "m"), "--benchmark_min_time=2")
        elapsed = time.monotonic() - began
        self.assertEqual(len(benchmarks), 1)
        for benchmark in benchmarks.values():
            seconds = benchmark["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[benchmark["time_unit"]] * benchmark["iterations"]
            self.assertTrue(0 < seconds <= elapsed, f"{seconds} s of {elapsed} s")

    def test_a_filter_that_matches_nothing_and_a_full_disk_are_failures(self):
        nothing = subprocess.run([BENCH, "--benchmark_filter=nosuch"], capture_output=True, text=True, check=False)
        self.assertEqual((nothing.returncode, "matches no benchmark" in nothing.stderr), (1, True), nothing.stderr)
        probe = ["--benchmark_filter=^probe/multiply_add/", "--benchmark_min_time=0.001"]
        with open("/dev/full", "w", encoding="utf-8") as full:
            lost = subprocess.run([BENCH, *probe], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((lost.returncode, "cannot write to standard output" in lost.stderr), (1, True), lost.stderr)
        lost = subprocess.run([BENCH, *probe, "--benchmark_out=/dev/full"], capture_output=True, text=True, check=False)
        self.assertEqual((lost.returncode, "cannot write to /dev/full" in lost.stderr), (1, True), lost.stderr)
        unopened = subprocess.run([BENCH, *probe, "--benchmark_out=/nowhere/out.json"], capture_output=True, text=True, check=False)
        self.assertEqual(unopened.returncode, 1, unopened.stderr)

    def test_what_is_above_its_roof_is_told(self):
        above = [name for name, benchmark in self.benchmarks.items() if benchmark.get("of_roof", 0) > MOST]
        self.assertEqual("above their roof" in self.errors, bool(above), self.errors)

    def test_a_build_not_to_measure_is_told(self):
        context, _, errors = run_whole("--benchmark_filter=^probe/multiply_add/", "--benchmark_min_time=0.002")
        doubted = context["build_type"] not in ("Release", "RelWithDebInfo", "MinSizeRel")  # others have assertions
        self.assertEqual("these numbers are not octavo's speed" in errors, doubted, errors)
        self.assertEqual("assertions on" in context.get("doubts", ""), doubted)

    def test_every_family_runs_on_every_target_and_on_all_threads(self):
        threads = int(self.context["threads"])
        for family in {name.split("/")[0] for name in self.benchmarks}:
            for target in self.context["targets_run"].split(", "):
                names = [name for name in self.benchmarks if name.startswith(f"{family}/") and name.split("/")[3] == target]
                self.assertTrue(any(name.split("/")[4] == "manual_time" for name in names), (family, target))
                if threads > 1:
                    self.assertTrue(any(name.split("/")[4] == str(threads) for name in names), (family, target))

    def test_context_says_what_was_measured_on_what(self):
        for key in ("cpu", "cpu_caches", "targets_compiled", "targets_run", "targets_missing", "threads", "threads_reason", "compiler", "build_type",
                    "build_flags", "octavo", "kernel", "os", "peer_openblas", "peer_onednn", "date"):
            self.assertTrue(self.context.get(key), key)
        compiled, ran, missing = (set(self.context[f"targets_{kind}"].split(", ")) - {"none"} for kind in ("compiled", "run", "missing"))
        self.assertEqual(ran | missing, compiled)
        self.assertEqual(ran & missing, set())

    def test_peers_are_compared_where_they_were_found(self):
        for peer in ("openblas", "onednn"):
            found = [b for name, b in self.benchmarks.items() if name.split("/")[3] == peer]
            self.assertEqual(bool(found), not self.context[f"peer_{peer}"].startswith("not built"), peer)
            for benchmark in found:
                self.assertGreater(benchmark["octavo_over_peer"], 0, benchmark["name"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bench", required=True)
    known, rest = parser.parse_known_args()
    BENCH = known.bench
    unittest.main(argv=[sys.argv[0], *rest])
