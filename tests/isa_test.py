"""Disassembles the octavo binary: every function that uses 256- or 512-bit registers, or instructions in AVX's encoding on narrower ones, must be
in the namespace of a target that has them.

    tests/isa_test.py OCTAVO

A vector body that leaked out of its target's namespace would end the program on an older CPU. Fails, too, when it sees no such function
inside the namespaces: then it looked at the wrong thing.
"""

import re
import subprocess
import sys

ALLOWED = {"ymm": ("N_AVX2", "N_AVX3"), "zmm": ("N_AVX3",), "AVX": ("N_AVX2", "N_AVX3")}
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
REGISTER = re.compile(r"%([yz]mm)\d")
AVX = re.compile(r"^\s+[0-9a-f]+:\s+v(?!err|erw|mcall|mfunc)[a-z0-9]+\s")  # vmaxss, not maxss; v… of old is none of it


def main(binary):
    listing = subprocess.run(
        ["objdump", "-d", "-C", "--no-show-raw-insn", binary], check=True, capture_output=True, text=True, errors="replace"
    ).stdout
    function, leaks, inside = "", set(), {register: set() for register in ALLOWED}
    for line in listing.splitlines():
        if found := FUNCTION.match(line):
            function = found.group(1)
        for register in set(REGISTER.findall(line)) | ({"AVX"} if AVX.match(line) else set()):
            if any(f"{namespace}::" in function for namespace in ALLOWED[register]):
                inside[register].add(function)
            else:
                leaks.add((function, register))
    for function, register in sorted(leaks):
        print(f"{function} uses {register} outside of {' and '.join(ALLOWED[register])}")
    for register, functions in inside.items():
        print(f"{len(functions)} functions use {register} inside their namespaces")
    return 1 if leaks or not all(inside.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
