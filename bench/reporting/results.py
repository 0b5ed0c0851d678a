"""Reads the JSON that octavo_bench writes and checks it: machines, and on each the kernels by target and number of threads."""

import json
import math
import pathlib
import statistics
from dataclasses import dataclass, field

REFERENCE = "reference"
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
PEERS = {"openblas": "OpenBLAS", "onednn": "oneDNN"}
KEYS = ("octavo", "cpu", "cpu_caches", "targets_compiled", "targets_run", "targets_missing", "threads", "threads_reason", "compiler",
        "build_type", "build_flags", "kernel", "os")
MEDIAN = "median"
# Google Benchmark's own numbers, which stand beside the counters.
NOT_COUNTERS = ("real_time", "cpu_time", "iterations", "repetitions", "repetition_index", "family_index", "per_family_instance_index", "threads")


class ResultsError(Exception):
    """A file that cannot be used; the message says which, why, and what to do."""


@dataclass(frozen=True)
class Kernel:
    """What was timed: a kernel, or a whole model (families generate and score), at a shape."""

    family: str
    op: str
    shape: str

    def __str__(self):
        return f"{self.family}/{self.op}/{self.shape}"


@dataclass
class Result:
    """Medians over the repetitions of one benchmark."""

    seconds: float
    counters: dict
    bound: str = ""  # arithmetic, or the level of memory

    def rate(self, unit):
        return self.counters.get(unit)


@dataclass
class Machine:
    """One file: where it comes from, and its results by (kernel, target, threads)."""

    path: pathlib.Path
    context: dict
    results: dict
    failures: list = field(default_factory=list)
    name: str = ""

    @property
    def targets(self):
        """Those that ran, widest first."""
        named = self.context["targets_run"].split(", ")
        return [target for target in named if any(key[1] == target for key in self.results)]

    @property
    def threads(self):
        """All threads of this run."""
        return max((key[2] for key in self.results), default=1)

    def get(self, kernel, target, threads=1):
        return self.results.get((kernel, target, threads))

    def kernels(self, *families):
        """In the order of the file; of all families when none is named."""
        return list(dict.fromkeys(key[0] for key in self.results if not families or key[0].family in families))

    def roof(self, target, threads=1):
        """Peak in FLOP/s, and bytes/s by level of memory from small to large, as far as they were probed."""
        peak = self.get(Kernel("probe", "multiply_add", "registers"), target, threads)
        levels = {}
        for kernel in self.kernels("probe"):
            result = self.get(kernel, target, threads)
            if kernel.op == "read" and result:
                levels[kernel.shape] = result.rate("bytes/s")
        return peak.rate("FLOP/s") if peak else None, levels


def _fail(path, what):
    raise ResultsError(f"{path}: {what}")


def _parse_name(path, name):
    parts = [part for part in name.split("/") if part not in ("manual_time", "real_time")]
    if len(parts) not in (4, 5) or (len(parts) == 5 and not parts[4].isdigit()):
        _fail(path, f"a benchmark is named {name!r}; expected family/op/shape/target[/threads], as octavo_bench names them")
    return Kernel(*parts[:3]), parts[3], int(parts[4]) if len(parts) == 5 else 1


def _numbers(run):
    return {
        key: float(value)
        for key, value in run.items()
        if key not in NOT_COUNTERS
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
    }


def _summarize(path, name, runs):
    """One result of all lines about a benchmark: the median that Google Benchmark wrote, or the median of the repetitions."""
    medians = [run for run in runs if run.get("aggregate_name") == MEDIAN]
    chosen = medians or [run for run in runs if run.get("run_type", "iteration") == "iteration"]
    if not chosen:
        _fail(path, f"{name} has no median; run octavo_bench again, or bench/run.sh")
    times = []
    for run in chosen:
        time, unit = run.get("real_time"), run.get("time_unit")
        if not isinstance(time, (int, float)) or not math.isfinite(time) or time <= 0 or unit not in SECONDS:
            _fail(path, f"{name} took {time!r} {unit!r}; expected a positive time in ns, us, ms or s: the file is damaged, run it again")
        times.append(time * SECONDS[unit])
    counters = {}
    for run in chosen:
        for key, value in _numbers(run).items():
            counters.setdefault(key, []).append(value)
    variation = [run.get("real_time") for run in runs if run.get("aggregate_name") == "cv"]
    result = Result(statistics.median(times), {key: statistics.median(values) for key, values in counters.items()})
    result.counters["spread"] = max([result.counters.get("spread", 0.0), *(v for v in variation if isinstance(v, (int, float)))])
    # A kernel near the ridge of its roof may be bound by either in turn; Google Benchmark's medians then have no label.
    labels = [run["label"] for run in runs if run.get("label") and run.get("run_type") != "aggregate"] or [chosen[0].get("label", "")]
    result.bound = statistics.mode(labels).removeprefix("bound by ")
    return result


def read_machine(path):
    """The results of one file; raises ResultsError where it is not one that octavo_bench wrote whole."""
    path = pathlib.Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        _fail(path, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        _fail(path, "is not text; expected the JSON that octavo_bench --benchmark_out writes")
    except json.JSONDecodeError as error:
        _fail(path, f"is not whole JSON (line {error.lineno}: {error.msg}); the run may have been interrupted, run it again")
    if not isinstance(document, dict) or not isinstance(document.get("context"), dict) or not isinstance(document.get("benchmarks"), list):
        _fail(path, "has no context and benchmarks; expected the JSON that octavo_bench --benchmark_out writes")
    context = document["context"]
    missing = [key for key in KEYS if not isinstance(context.get(key), str)]
    if missing:
        _fail(path, f"its context lacks {', '.join(missing)}; expected the JSON of this version's octavo_bench")
    runs, failures = {}, []
    for run in document["benchmarks"]:
        name = run.get("run_name") if isinstance(run, dict) else None
        if not isinstance(name, str):
            _fail(path, "a benchmark has no name: the file is damaged, run it again")
        if run.get("error_occurred"):
            failures.append(f"{name}: {run.get('error_message', 'failed')}")
        else:
            runs.setdefault(name, []).append(run)
    results = {_parse_name(path, name): _summarize(path, name, lines) for name, lines in runs.items()}
    if not results:
        _fail(path, "holds no results; a --benchmark_filter may have matched nothing")
    return Machine(path, context, results, failures)


def read_machines(paths):
    """All files, with names that tell them apart: the CPU's, and the file's where two have the same."""
    machines = [read_machine(path) for path in paths]
    names = [machine.context["cpu"] for machine in machines]
    for machine in machines:
        machine.name = machine.context["cpu"]
        if names.count(machine.name) > 1:
            machine.name += f" ({machine.path.stem})"
    return machines
