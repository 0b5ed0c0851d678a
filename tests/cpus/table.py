"""Prints which targets really ran and on which CPU, from what cpu_test.py reported; fails when one is missing.

    tests/cpus/table.py REPORT…

Must have run, with every kernel's check and a text: on this machine, an x86-64 one, each target that its CPU has by what Linux says; under
emulation AVX2, SSE4 and NEON with and without AES, there with every kernel's test too (here ctest runs those anyway). Texts must be the
same on all targets with fused multiply-add, and on all without.
"""

import json
import re
import sys

# By the names of /proc/cpuinfo, what a CPU must have. Nothing is asked of the portable target.
HERE = {
    "AVX3": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
    "AVX2": {"avx2", "fma", "f16c", "bmi1", "bmi2"},
    "SSE4": {"sse4_1", "sse4_2", "pclmulqdq", "aes"},
    "SSSE3": {"ssse3"},
    "scalar": set(),
}
EMULATED = ["AVX2", "SSE4", "NEON", "NEON without AES"]
UNFUSED = {"SSE4", "SSSE3", "scalar"}


def target_rows(report):
    """(target, where, number of tests, number of kernels checked, text or None)."""
    where = f"emulated {report['cpu']}" if report["emulated"] else "this CPU"
    for target, checks in report["checks"].items():
        # AES is all that NEON_WITHOUT_AES of newer versions of Highway lacks.
        masked = target == "NEON" and report["aes"] == "0" or target == "NEON_WITHOUT_AES"
        name = "NEON without AES" if masked else target
        yield name, where, len(report["tests"][target]), len(checks), report["texts"].get(target)


def find_failures(rows, features):
    """What is wrong with the rows of all CPUs, on a machine whose CPU has these features; a line each."""
    most_tests, most_checks = (max((row[column] for row in rows), default=0) for column in (2, 3))
    ran = set()
    for target, where, tests, checks, text in rows:
        here = where == "this CPU"
        if text and 0 < checks == most_checks and (here or 0 < tests == most_tests):
            ran.add((target, here))
    wanted = {(target, True) for target, needs in HERE.items() if needs <= features} | {(target, False) for target in EMULATED}
    failures = [f"{target} did not run in full {'on this CPU' if here else 'under emulation'}" for target, here in sorted(wanted - ran)]
    for unfused in (False, True):
        if len({row[4] for row in rows if row[4] and (row[0] in UNFUSED) == unfused}) > 1:
            failures.append(f"different texts on targets with{'out' if unfused else ''} fused multiply-add")
    return failures


def main(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows += target_rows(json.load(file))
    rows.sort(key=lambda row: ([*HERE, *EMULATED].index(row[0]), row[1] != "this CPU", row[1]))
    print(f"{'target':<18}{'ran on':<30}{'tests':>6}{'checks':>8}  text")
    for target, where, tests, checks, text in rows:
        print(f"{target:<18}{where:<30}{tests:>6}{checks:>8}  {text[:16] if text else '-'}")
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        features = set(re.search(r"^flags\s*:(.*)$", file.read(), re.MULTILINE).group(1).split())
    failures = find_failures(rows, features)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
