"""Command-line flags of the Python tools: a wrong one is one line on stderr and exit status 2, as with the octavo command."""

import argparse
import math


class Parser(argparse.ArgumentParser):
    """Without argparse's usage text before the message; --help prints the module's description as it is."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message):
        self.exit(2, f"{self.prog}: {' '.join(message.split())} (see --help)\n")


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
