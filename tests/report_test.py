#!/usr/bin/env python3
"""Tests bench/report on results of octavo_bench itself, on those of a made-up second machine, and on damaged files.

The second machine is the first one's results without its widest target, as a CPU that lacks it would give them.

    /usr/bin/python3 tests/report_test.py --bench build/dev/octavo_bench [unittest's own arguments]
"""

import argparse
import copy
import html.parser
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BENCH_FOLDER = pathlib.Path(__file__).resolve().parents[1] / "bench"
sys.path.insert(0, str(BENCH_FOLDER))
from reporting import compare, document, page, roofline  # noqa: E402
from reporting.results import Kernel, ResultsError, read_machine, read_machines  # noqa: E402

BENCH = None  # --bench
SELECTION = "^(probe/|softmax/softmax/65|matmul/(all|c_fc)/tiny-32|embed/rows/tiny|layer_norm/rows/(tiny|odd)|generate/text/tiny)"
MATMUL = Kernel("matmul", "all", "tiny-32")
TEXT = Kernel("generate", "text", "tiny")


class Page(html.parser.HTMLParser):
    """Collects what a page refers to and checks that its elements close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.references, self.plots = [], [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.plots += tag == "svg" and ("role", "img") in attributes
        self.references += [value for name, value in attributes if name in ("src", "href")]
        if tag != "meta":  # which has no end
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes what is not open")


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.first = cls.folder / "first.json"
        flags = [f"--benchmark_filter={SELECTION}", "--benchmark_min_time=0.001", "--benchmark_repetitions=2", f"--benchmark_out={cls.first}"]
        subprocess.run([BENCH, *flags], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        cls.document = json.loads(cls.first.read_text(encoding="utf-8"))
        cls.machine = read_machine(cls.first)

    def test_nothing_is_above_the_peak(self):
        # Whole models alone, whose half of the peak leaves room for a disturbed reading; kernels: bench_test.py's RoofTest.
        benchmarks = self.document["benchmarks"]
        shares = {run["name"]: run["of_peak"] for run in benchmarks if "of_peak" in run and run["name"].startswith("generate/")}
        self.assertTrue(shares)
        for name, share in shares.items():
            self.assertTrue(0 < share <= 1.03, f"{name}: {share}")

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    def second(self, name="second.json"):
        """A machine without the widest target, and without one kernel."""
        results = copy.deepcopy(self.document)
        targets = results["context"]["targets_run"].split(", ")
        results["context"] |= {"cpu": "A CPU of another make", "targets_run": ", ".join(targets[1:] or ["NEON"]), "targets_missing": targets[0]}
        results["benchmarks"] = [
            run for run in results["benchmarks"] if f"/{targets[0]}/" not in run["name"] and not run["name"].startswith("layer_norm/rows/odd/")
        ]
        return self.write(name, results)

    def report(self, *arguments):
        command = [sys.executable, BENCH_FOLDER / "report", *arguments]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        return done.returncode, done.stdout, done.stderr

    def test_one_machine(self):
        status, output, errors = self.report(self.first)
        self.assertEqual((status, errors), (0, ""))
        result = self.machine.get(MATMUL, self.machine.targets[0])
        for expected in ("## What to use", self.machine.context["cpu"], "`all tiny-32`", f"{100 * result.counters['of_roof']:.0f}% {result.bound}"):
            self.assertIn(expected, output)
        for line in output.splitlines():  # every row of a table has the columns of its head
            if line.startswith("| ---"):
                columns = line.count("|")
            elif line.startswith("| `"):
                self.assertEqual(line.count("|"), columns, line)

    def test_speed_ups_are_ratios_of_rates(self):
        machine = self.machine
        for target, next_target in zip(machine.targets, machine.targets[1:]):
            wide, narrow, scalar = (machine.get(MATMUL, t).rate("FLOP/s") for t in (target, next_target, "reference"))
            self.assertAlmostEqual(compare.over_narrower(machine, MATMUL, target), wide / narrow)
            self.assertAlmostEqual(compare.over_reference(machine, MATMUL, target), wide / scalar)
        self.assertIsNone(compare.over_narrower(machine, MATMUL, machine.targets[-1]))

    def test_median_of_repetitions(self):
        results = copy.deepcopy(self.document)
        template = next(run for run in results["benchmarks"] if run["run_type"] == "iteration" and "chars/s" in run)
        results["benchmarks"] = [template | {"real_time": time, "chars/s": 1 / time, "time_unit": "ms"} for time in (30, 10, 20)]
        result = next(iter(read_machine(self.write("repetitions.json", results)).results.values()))
        self.assertAlmostEqual(result.seconds, 0.020)
        self.assertAlmostEqual(result.rate("chars/s"), 1 / 20)

    def test_two_machines_of_different_targets(self):
        status, output, errors = self.report(self.first, self.second())
        self.assertEqual((status, errors), (0, ""))
        self.assertIn("A CPU of another make", output)
        self.assertIn("Not measured here, though elsewhere: layer_norm/rows/odd.", output)
        first, second = read_machines([self.first, self.second()])
        self.assertNotIn(self.machine.targets[0], second.targets)
        self.assertEqual(compare.missing_kernels([first, second])[first.name], [])
        # Rows stand beside each other.
        matmul = next(section for section in document.sections([first, second]) if section.title == "matmul")
        rows = [[row.cells[0] for row in table.rows] for table in matmul.tables]
        self.assertEqual(rows[0], rows[1])

    def test_machines_stand_side_by_side(self):
        own, faster = copy.deepcopy(self.document), copy.deepcopy(self.document)
        faster["context"]["cpu"] = "Faster"
        for results, times, spread in ((own, 1, 0.04), (faster, 1.5, 0.03)):
            results["benchmarks"] = [run for run in results["benchmarks"] if run.get("aggregate_name") != "cv"]
            for run in results["benchmarks"]:
                run |= {rate: times * run[rate] for rate in ("FLOP/s", "chars/s") if rate in run} | {"spread": spread}
        first, second = self.write("own.json", own), self.write("faster.json", faster)
        name, widest = self.machine.context["cpu"], self.machine.targets[0]
        status, output, _ = self.report(first, second)
        self.assertEqual(status, 0)
        self.assertIn(f"| case | target | {name} | Faster | over {name} |", output)
        rows = [line for line in output.splitlines() if line.startswith(f"| `{TEXT}` | {widest} |")]
        self.assertEqual(len(rows), 2 if self.machine.threads > 1 else 1, output)  # one thread, all
        for row in rows:
            self.assertTrue(row.endswith("| 1.50× ±5% |"), row)
        status, output, _ = self.report("--baseline", second, first, second)
        self.assertIn(f"| case | target | Faster | {name} | over Faster |", output)
        self.assertIn("| 0.67× ±5% |", output)

    def test_advice_minds_its_doubts(self):
        machine = copy.deepcopy(self.machine)
        if len(machine.targets) < 2:
            self.skipTest("this CPU runs one target only")
        machine.context.pop("doubts", None)
        for result in machine.results.values():
            result.counters |= {"spread": 0.01, "load_by_others": 0.0}
        for threads in {1, machine.threads}:
            wide, narrow = (machine.get(TEXT, target, threads).counters for target in machine.targets[:2])
            narrow["chars/s"] = 1.25 * wide["chars/s"]
        self.assertNotIn("Do not rely", " ".join(compare.advice(machine)))
        self.assertIn("take --target", " ".join(compare.advice(machine)))
        for result in machine.results.values():
            result.counters["spread"] = 0.3
        told = " ".join(compare.advice(machine))
        self.assertIn("Do not rely on this: most readings spread by more than 5%.", told)
        self.assertNotIn("take --target", told)  # 25% within a spread of 42%
        machine.context["doubts"] = "assertions on; "
        self.assertIn("Do not rely on this: the build is not one to measure.", compare.advice(machine)[0])

    def test_same_cpu_twice_is_told_apart(self):
        again = self.write("again.json", self.document)
        names = [machine.name for machine in read_machines([self.first, again])]
        self.assertEqual(names, [f"{self.machine.context['cpu']} ({stem})" for stem in ("first", "again")])

    def test_advice_names_a_faster_narrower_target(self):
        machine = copy.deepcopy(self.machine)
        if len(machine.targets) < 2:
            self.skipTest("this CPU runs one target only")
        for result in machine.results.values():
            result.counters["spread"] = 0.01
        for threads in {1, machine.threads}:  # whatever a busy machine measured
            wide, narrow = (machine.get(TEXT, target, threads).counters for target in machine.targets[:2])
            wide["chars/s"] = 1.25 * narrow["chars/s"]
        self.assertIn(f"Leave the default, {machine.targets[0]}", " ".join(compare.advice(machine)))
        for threads in {1, machine.threads}:
            wide, narrow = (machine.get(TEXT, target, threads).counters for target in machine.targets[:2])
            narrow["chars/s"] = 1.25 * wide["chars/s"]
        self.assertIn(f"take --target {machine.targets[1]}: 1.25 times as fast", " ".join(compare.advice(machine)))

    def test_doubts(self):
        machine = copy.deepcopy(self.machine)
        machine.context.pop("doubts", None)
        for result in machine.results.values():
            result.counters |= {"spread": 0.01, "load_by_others": 0.01, "of_roof": 0.5}
        self.assertEqual(compare.doubts(machine), [])
        machine.get(MATMUL, machine.targets[0]).counters |= {"spread": 0.2, "load_by_others": 0.3, "of_roof": 1.2}
        machine.context["doubts"] = "assertions on; "
        told = " ".join(compare.doubts(machine))
        for expected in ("assertions on", "30% of the CPU time", f"The readings of 1 of {len(machine.results)}",
                         f"above the roof, so a probe or a count was disturbed: {MATMUL}/"):
            self.assertIn(expected, told)

    def test_page_is_whole_and_needs_nothing_else(self):
        out = self.folder / "page.html"
        self.assertEqual(self.report("--format", "html", "--output", out, self.first, self.second()), (0, "", ""))
        text = out.read_text(encoding="utf-8")
        content = Page(text)
        self.assertEqual(content.open, [])
        self.assertEqual(content.references, [])
        self.assertNotRegex(text, "https?://|@import|url\\(")
        self.assertIn("prefers-color-scheme: dark", text)
        first, second = read_machines([self.first, self.second()])
        self.assertEqual(content.plots, len(first.targets) + len(second.targets))

    def test_page_escapes_names(self):
        results = copy.deepcopy(self.document)
        results["context"]["cpu"] = "<script>alert(1)</script> & co"
        for run in results["benchmarks"]:
            run["run_name"] = run["run_name"].replace("tiny", "<script>")
        text = page.render(read_machines([self.write("names.json", results)]))
        self.assertNotIn("<script", text)
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt; &amp; co", text)

    def test_plot_shows_roofs_and_kernels_in_their_place(self):
        plot = roofline.Plot(self.machine, self.machine.targets[0])
        peak, levels = self.machine.roof(self.machine.targets[0])
        self.assertEqual(plot.peak, peak)
        self.assertEqual(plot.levels, levels)
        self.assertLess(plot.y(peak), plot.y(peak / 10))  # upwards
        self.assertAlmostEqual(plot.y(peak / 10) - plot.y(peak), plot.y(peak / 100) - plot.y(peak / 10))  # in decades
        for point in plot.points:
            self.assertTrue(roofline.PLOT.left <= plot.x(point.intensity) <= roofline.PLOT.right)
            self.assertTrue(roofline.PLOT.top <= plot.y(point.flops) <= roofline.PLOT.bottom)

    def test_labels_never_overlap(self):
        for target in self.machine.targets:
            plot = roofline.Plot(self.machine, target)
            self.assertTrue(plot.labels)
            self.assert_apart([label.box for label in plot.labels], plot.obstacles)
        # Fifty points on one spot: what finds no place is left out.
        crowd = [(f"a kernel of name {i}", 200 + i % 3, 200, 0) for i in range(50)]
        placed = roofline.place_labels(crowd, [])
        self.assertTrue(5 < len(placed) < 50)
        self.assert_apart([label.box for label in placed], [])

    def assert_apart(self, boxes, obstacles):
        for i, box in enumerate(boxes):
            self.assertTrue(box.within(roofline.PLOT))
            for other in boxes[i + 1 :] + obstacles:
                self.assertFalse(box.overlaps(other), (box, other))

    def test_run_without_probes_or_models(self):
        results = copy.deepcopy(self.document)
        results["benchmarks"] = [run for run in results["benchmarks"] if run["name"].startswith("softmax/")]
        path = self.write("softmax.json", results)
        self.assertEqual(self.report(path)[0], 0)
        status, output, _ = self.report("--format", "html", path)
        self.assertEqual(status, 0)
        self.assertIn("its file has no results of <code>probe</code>", output)
        status, output, _ = self.report("--speed-table", path)
        self.assertEqual(status, 0)
        self.assertIn("| `baby`, one text | — | — |", output)

    def test_failed_benchmark_is_told(self):
        results = copy.deepcopy(self.document)
        name = "embed/rows/baby/AVX2/manual_time"
        results["benchmarks"].append({"name": name, "run_name": name, "error_occurred": True, "error_message": "wrong"})
        self.assertIn(f"Failed: {name}: wrong.", self.report(self.write("failed.json", results))[1])

    def test_speed_table(self):
        status, output, _ = self.report("--speed-table", self.first)
        self.assertEqual(status, 0)
        result = self.machine.get(TEXT, self.machine.targets[0], self.machine.threads)
        self.assertIn(f"| {100 * result.counters['of_peak']:.0f}% of peak |", output)
        self.assertEqual(len([line for line in output.splitlines() if line.startswith("| ")]), 10)

    def test_damaged_files(self):
        whole = self.first.read_text(encoding="utf-8")
        no_context = {"benchmarks": self.document["benchmarks"]}
        other_context = self.document | {"context": {"date": "today"}}
        none = self.document | {"benchmarks": []}

        def changed(**fields):
            results = copy.deepcopy(self.document)
            results["benchmarks"][0] |= fields
            results["benchmarks"] = results["benchmarks"][:1]
            return results

        for content, expected in (
            (whole[: len(whole) // 2], "is not whole JSON (line"),
            ("", "is not whole JSON (line 1"),
            ("[1, 2]", "has no context and benchmarks"),
            (no_context, "has no context and benchmarks"),
            (other_context, "its context lacks octavo, cpu"),
            (none, "holds no results"),
            (changed(run_name="BM_something"), "a benchmark is named 'BM_something'; expected family/op/shape/target"),
            (changed(run_name=7), "a benchmark has no name"),
            (changed(real_time=-1, run_type="iteration", aggregate_name=""), "took -1 "),
            (changed(time_unit="weeks", run_type="iteration", aggregate_name=""), "'weeks'; expected a positive time"),
        ):
            path = self.write("damaged.json", content)
            with self.subTest(expected):
                status, output, errors = self.report(self.first, path)
                self.assertEqual((status, output), (1, ""))
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn(f"bench/report: {path}: ", errors)
                self.assertIn(expected, errors)
        path.write_bytes(b"\xff\xfe")
        self.assertIn("is not text", self.report(path)[2])
        self.assertIn("cannot be read: No such file", self.report(self.folder / "nowhere.json")[2])
        with self.assertRaises(ResultsError):
            read_machine(path)

    def test_output_is_no_input(self):
        path = self.second("input.json")
        before = path.read_bytes()
        links = self.folder / "link.json", self.folder / "hard.json"
        links[0].symlink_to(path)
        links[1].hardlink_to(path)
        for name in (path, *links):
            status, output, errors = self.report("--force", "--output", name, self.first, path)
            self.assertEqual((status, output), (2, ""))
            self.assertIn(f"--output: {name} is the file {path} that is read", errors)
        with open(path, "ab") as file:
            done = subprocess.run([sys.executable, BENCH_FOLDER / "report", path], stdout=file, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"standard output goes to the file", done.stderr)
        self.assertEqual(path.read_bytes(), before)

    def test_existing_file_is_kept(self):
        out = self.write("there.md", "precious")
        status, output, errors = self.report("--output", out, self.folder / "nowhere.json")  # said before anything is read
        self.assertEqual((status, output, errors), (1, "", f"bench/report: {out} exists; use --force to overwrite it, or another name\n"))
        self.assertNotEqual(self.report("--force", "--output", out, self.folder / "nowhere.json")[0], 0)
        self.assertEqual(out.read_text(), "precious")
        self.assertEqual(self.report("--force", "--output", out, self.first), (0, "", ""))
        self.assertEqual(out.read_text(encoding="utf-8"), self.report(self.first)[1])
        self.assertEqual(self.report("--output", "/dev/null", self.first), (0, "", ""))

    def test_run_keeps_what_is_there(self):
        out = self.write("run.json", "precious")
        done = subprocess.run([BENCH_FOLDER / "run.sh", "--quick", out], capture_output=True, encoding="utf-8", check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"run.sh: {out} exists; use --force to overwrite it, or another name\n")
        self.assertEqual(out.read_text(), "precious")

    def test_usage_errors(self):
        for arguments in ((), ("--format", "pdf", self.first), ("--speed-table", self.first, self.first), ("--force", self.first)):
            self.assertEqual(self.report(*arguments)[0], 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bench", required=True)
    known, rest = parser.parse_known_args()
    BENCH = known.bench
    unittest.main(argv=[sys.argv[0], *rest])
