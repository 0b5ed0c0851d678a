"""Runs octavo as older CPUs under emulation: the right target, the right text, and on a CPU without any of them one note.

    tests/emulation_test.py OCTAVO

Nehalem has SSSE3 and SSE4 but not the AES that Highway's SSE4 wants; Westmere has it; Haswell has AVX2 and must write the same bytes as
AVX2 here; Opteron_G1 is a CPU of 2003. Exit status 77: qemu-x86_64-static is missing.
"""

import json
import os
import shutil
import subprocess
import sys

QEMU = "qemu-x86_64-static"
PROMPT = ["generate", "--prompt", "ROMEO:", "--max-chars", "90", "--seed", "1", "--format", "jsonl", "--threads", "1"]


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300, **options)


def main(octavo):
    if not shutil.which(QEMU):
        print(f"SKIPPED: {QEMU} is missing (package qemu-user-static)")
        return 1 if os.environ.get("OCTAVO_TEST_NO_SKIP") else 77
    failures = []

    def expect(what, actual, expected):
        print(f"{what}: {actual!r}")
        if actual != expected:
            failures.append(f"{what}: found {actual!r}, expected {expected!r}")

    runnable = json.loads(run([octavo, "info", "--format", "json"]).stdout)["cpu"]["targets_runnable"]
    for cpu, target in (("Nehalem", "SSSE3"), ("Westmere", "SSE4"), ("Haswell", "AVX2"), ("Opteron_G1", "scalar")):
        emulated = [QEMU, "-cpu", cpu, octavo]
        info = run(emulated + ["info", "--format", "json"])
        expect(f"{cpu}: target", json.loads(info.stdout)["cpu"]["target"], target)
        expect(f"{cpu}: lines of notes", info.stderr.count("portable code"), 1 if target == "scalar" else 0)
        text = run(emulated + PROMPT).stdout
        if target in runnable:
            native = run([octavo] + PROMPT + ["--target", target]).stdout
            expect(f"{cpu}: the bytes of {target} here", text == native, True)
        expect(f"{cpu}: characters", json.loads(text)["chars"], 90)
    for cpu in ("Westmere", "Haswell"):
        check = run([QEMU, "-cpu", cpu, octavo, "check", "--cases", "2", "--format", "json"])
        expect(f"{cpu}: check", json.loads(check.stdout)["passed"], True)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
