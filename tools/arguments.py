"""Command-line flags of the Python tools: a wrong one is one line on stderr and exit status 2, as with the octavo command."""

import argparse
import math
import os
import re
import sys


def open_absent_descriptors():
    """Opens standard streams that are closed, as octavo does (descriptors.h): else the next file gets the number, and messages go into it."""
    for number, path, access in ((0, os.devnull, os.O_RDONLY), (1, "/", os.O_RDONLY), (2, os.devnull, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(path, access)  # the lowest free number, which is this one
    if sys.stderr is None:  # where print() would take standard output in its place
        sys.stderr = open(2, "w", closefd=False)


def one_line(message):
    """`message` without line ends, and with what a terminal would act on escaped: names come from files."""

    def escape(match):
        return f"\\u{ord(match.group()):04X}"

    kinds = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
    return re.sub(kinds, escape, " ".join(str(message).split()))


def file_name(text):
    """A `type` for add_argument: where a model is written, which cannot be a stream."""
    if text == "-":
        raise argparse.ArgumentTypeError("standard output cannot hold it; expected the name of a file (./- for one of that name)")
    return text


class Parser(argparse.ArgumentParser):
    """Without argparse's usage text before the message; --help prints the module's description as it is."""

    def __init__(self, description):
        open_absent_descriptors()  # before the first file
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message):
        self.exit(2, f"{self.prog}: {one_line(message)} (see --help)\n")


def number(kind, least, most=math.inf):
    """A `type` for add_argument: an int or float from `least` to `most`, both included."""

    def read(text):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not (least <= value <= most and math.isfinite(value)):
            name = "a whole number" if kind is int else "a number"
            limits = f"from {least} to {most}" if most < math.inf else f"of at least {least}"
            raise argparse.ArgumentTypeError(f"{text!r} is not {name} {limits}")
        return value

    return read
