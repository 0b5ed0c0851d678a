"""Runs what has to run on every kind of CPU, on this one or an emulated one: tests, `octavo check`, and the passage of README.md.

    tests/cpus/cpu_test.py --cpu NAME [--best TARGET] [--emulator COMMAND] --octavo OCTAVO --report FILE [TEST…]

--best: the target that octavo must choose there. --emulator: runs programs as that CPU would; the tests then run that target alone. --report: what
ran, as JSON, for table.py. Each TEST is a GoogleTest program. The passage must come out on every target with fused multiply-add; under emulation
only the best is asked. Exit status 77: the emulator is missing.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

README = os.path.join(os.path.dirname(__file__), "..", "..", "README.md")
PASSAGE = re.compile(r"<!-- passage -->\n```console\n\$ \S*octavo (.*)\n((?:.*\n)*?)```\n<!-- /passage -->")
NOT_EMULATED = [
    # Takes minutes under emulation, which computes long double in software; it tests the scalar reference, which no target changes.
    "MatMul/*.AllOddSizes",
    # Minutes; how requests are spread depends on no target, and that it changes nothing is seen in Independence.*, too.
    "Lanes.AreBusyWhateverTheLengths",
    "Promise.SameTextWhateverTheRun*",
    # 20 s each. Many rounds look for races, which the emulator on a machine of stronger memory order would not show; and that nothing reads
    # ahead is seen in causal_attention_test.
    "Independence.ThreadsAndOrderChangeNothing",
    "ForwardTest.ALaterCharacterMovesNoEarlierRow/*",
]
# Where octavo is not fast it says what the CPU would need.
NOTE = re.compile(r"this CPU\b.*\binstruction sets\b.*\bSSSE3\b.*\bportable code")
FUSED = {"AVX2", "AVX3", "NEON", "NEON_WITHOUT_AES"}  # the targets that write the passage's bytes


def run(command, **environment):
    result = subprocess.run(command, capture_output=True, text=True, timeout=900, env=os.environ | environment)
    if result.returncode:
        sys.exit(f"{shlex.join(command)}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
    return result


def run_test(emulator, program, target):
    """The properties that the tests of a GoogleTest program recorded. Under emulation it tests one target (tests/testing/targets.h)."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "report.json")
        left_out = ["--gtest_filter=-" + ":".join(NOT_EMULATED)] if emulator else []
        only = {"OCTAVO_TEST_TARGET": target} if emulator else {}
        run(emulator + [program, f"--gtest_output=json:{output}"] + left_out, **only)
        with open(output, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    properties = {}
    for test in (test for suite in suites for test in suite["testsuite"]):
        properties.update({key: test[key] for key in ("targets", "aes") if key in test})
    return properties


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cpu", required=True)
    parser.add_argument("--best")
    parser.add_argument("--emulator", type=shlex.split, default=[])
    parser.add_argument("--octavo", required=True)
    parser.add_argument("--report", required=True)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    with contextlib.suppress(FileNotFoundError):
        os.remove(options.report)
    if options.emulator and not shutil.which(options.emulator[0]):
        print(f"SKIPPED: {options.emulator[0]} is missing (package qemu-user-static)")
        return 1 if os.environ.get("OCTAVO_TEST_NO_SKIP") else 77
    octavo = options.emulator + [options.octavo]
    failures = []

    def expect(what, actual, expected):
        if actual != expected:
            failures.append(f"{options.cpu}: {what}: found {actual!r}, expected {expected!r}")

    info = run(octavo + ["info", "--format", "json"])
    cpu = json.loads(info.stdout)["cpu"]
    runnable = cpu["targets_runnable"]
    expect("target", cpu["target"], options.best or runnable[0])
    # The emulator warns of features that it lacks.
    notes = [line for line in info.stderr.splitlines() if not line.startswith("qemu-")]
    expect("number of notes", len(notes), 1 if cpu["target"] == "scalar" else 0)
    expect("notes that do not say what is needed", [note for note in notes if not NOTE.search(note)], [])

    report = {"cpu": options.cpu, "emulated": bool(options.emulator), "tests": {target: [] for target in runnable}}
    for program in options.tests:
        properties = run_test(options.emulator, program, cpu["target"])
        report["aes"] = properties.get("aes", report.get("aes"))
        for target in properties.get("targets", "").split():
            report["tests"][target].append(os.path.basename(program))

    check = json.loads(run(octavo + ["check", "--cases", "2", "--format", "json"]).stdout)
    expect("check", check["passed"], True)
    report["checks"] = {target: [row["kernel"] for row in check["rows"] if row["target"] == target] for target in runnable}

    with open(README, encoding="utf-8") as file:
        arguments, passage = PASSAGE.search(file.read()).groups()
    report["texts"] = {}
    for target in runnable[:1] if options.emulator else runnable:
        text = run(octavo + shlex.split(arguments) + ["--target", target]).stdout
        report["texts"][target] = hashlib.sha256(text.encode()).hexdigest()
        if target in FUSED:
            expect(f"text on {target}", text, passage)

    print(json.dumps(report, indent=1))
    if failures:
        print(*failures, sep="\n")
        return 1
    with open(options.report, "w", encoding="utf-8") as file:
        json.dump(report, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
