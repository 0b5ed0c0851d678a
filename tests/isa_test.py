"""Disassembles the octavo binary: no instruction stands where CPUs that lack it would meet it.

    tests/isa_test.py OBJDUMP OCTAVO

On x86-64 every function that uses 256- or 512-bit registers, instructions in AVX's or AVX-512's encoding on narrower ones, or those of SSE4.1, must
be in the namespace of a target that has them: a vector body that leaked out of its target's namespace would end the program on an older CPU. On AArch64 nothing may be
above Armv8.0, nor be cryptographic, which the Raspberry Pi 4 lacks. Fails, too, when it sees no vector code inside the namespaces: then it
looked at the wrong thing.
"""

import re
import subprocess
import sys

# By the format that objdump names: what instructions are looked for, and in which functions they may stand.
RULES = {
    "elf64-x86-64": {
        "ymm": (r"%ymm\d", r"\bN_AVX[23]::"),
        "zmm": (r"%zmm\d", r"\bN_AVX3::"),
        "SSE4.1": (
            r"^(pmulld|pm(in|ax)(s[bd]|u[dw])|round[ps][sd]|p?blendv?\w+|ptest|pinsr[bdq]|pextr[bdq]|insertps|pcmp(eq|gt)q|pmov[sz]x\w+)\s",
            r"\bN_SSE4::",
        ),
        "AVX-512": (r"%k[0-7]\b|%[xy]mm(1[6-9]|2\d|3[01])\b", r"\bN_AVX3::"),
        "AVX": (r"^v(?!err|erw|mcall|mfunc)[a-z0-9]+\s", r"\bN_AVX[23]::"),  # vmaxss, not maxss; v… of old is none of it
    },
    "elf64-littleaarch64": {
        "cryptography": (r"^(aes|sha\d|sm[34]|rax1|xar|bcax|eor3)|^pmull2?\s.*1q", None),
        # GCC's helpers ask the CPU first.
        "Armv8.1 atomics": (r"^(casp?|swp|(ld|st)(add|clr|eor|set|[su]max|[su]min))(a|l|al)?[bh]?\s", r"^__aarch64_(cas|swp|ld)\w+$"),
        "Armv8.1 to 8.3": (r"^(sqrdml[as]h|fcadd|fcmla|fjcvtzs|ldapu?r\w*|retaa|retab)\b", None),
        "dot products": (r"^(s|u|us|su|bf)(dot|mmla)\s|^bf(cvt|mlal)|^fml[as]l", None),
        "half precision": (r"^(?!fcvt[ln]?2?\s)(f\w+|[su]cvtf)\s.*\b(h\d|v\d+\.[48]?h\b)", None),  # these convert in Armv8.0
        "SVE": (r"\bz\d+\b|\bp\d+[/.]|^cnt[bhwd]\s|^(rd|add)vl\s", None),
        "an instruction that objdump does not know": (r"^$|^\.inst\s", r"^__aarch64_(cas|swp|ld)\w+$"),  # LLVM's knows no more than Armv8.0
        "NEON": (r"^fmla\s+v\d+\.4s", ""),
    },
}
# What must be seen inside its namespaces.
SEEN = {
    "elf64-x86-64": {name: functions for name, (_, functions) in RULES["elf64-x86-64"].items()},
    "elf64-littleaarch64": {"NEON": r"\bN_NEON(_WITHOUT_AES)?::"},
}
FORMAT = re.compile(r"file format (\S+)$", re.MULTILINE)
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\s+([^<]*?)\s*(?:<.*|//.*)?$")  # without symbols and comments


def main(objdump, binary):
    listing = subprocess.run(
        [objdump, "-d", "-C", "--no-show-raw-insn", binary], check=True, capture_output=True, text=True, errors="replace"
    ).stdout
    name = FORMAT.search(listing).group(1)
    rules = {what: (re.compile(pattern), functions) for what, (pattern, functions) in RULES[name].items()}
    function, users = "", {what: set() for what in rules}
    for line in listing.splitlines():
        if found := FUNCTION.match(line):
            function = found.group(1)
        elif found := INSTRUCTION.match(line):
            for what, (pattern, _) in rules.items():
                if pattern.search(found.group(1)):
                    users[what].add(function)
    failed = False
    for what, (_, allowed) in rules.items():
        for user in sorted(users[what]):
            if allowed is None or not re.search(allowed, user):
                print(f"{user} uses {what}" + (f" outside of {allowed}" if allowed else ""))
                failed = True
    for what, functions in SEEN[name].items():
        inside = [user for user in users[what] if re.search(functions, user)]
        print(f"{len(inside)} functions use {what} inside their namespaces")
        failed |= not inside
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
