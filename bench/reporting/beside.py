"""Machines side by side: a column a machine, and how many times as fast each is as the first, with the spread of that ratio."""

import math

from . import compare, text
from .document import Row, Section, Table, measured_rows

NOTE = ("A column a machine. Over {first}: how many times as fast, ± the spread of that ratio, the root of the squared spreads of both (distance between "
        "the quartiles as a share of the median). In brackets the share of the roof, or of the peak or memory for whole models.")


def ratio_cell(kernel, result, first):
    """1.32× ±4%: how many times as fast as on the first machine."""
    ratio = compare.over(kernel, result, first)
    if ratio is None:
        return text.MISSING
    spread = math.hypot(*(r.counters.get("spread", 0.0) for r in (result, first)))
    return text.times(ratio) + (f" ±{100 * spread:.0f}%" if spread else "")  # a single reading has none


def _speed_cell(kernel, result):
    if not result:
        return text.MISSING
    share = text.text_share(result) if kernel.family in compare.TEXT else text.roof(result)
    return text.speed(kernel, result) + (f" ({share})" if share != text.MISSING else "")


def _table(machines, kernels, title="", threads_of=lambda machine: 1):
    first, *others = machines
    header = ["target", first.name, *(cell for machine in others for cell in (machine.name, f"over {first.name}"))]
    table = Table(header, [], title)
    for kernel, target, group in measured_rows(kernels, machines, threads_of):
        results = [machine.get(kernel, target, threads_of(machine)) for machine in machines]
        cells = [_speed_cell(kernel, results[0])]
        for result in results[1:]:
            cells += [_speed_cell(kernel, result), ratio_cell(kernel, result, results[0])]
        table.rows.append(Row([target, *cells], group, key=target))
    return table


def text_section(machines):
    """Whole models: on one thread, and on all that each machine has."""
    kernels = compare.text_cases(machines)
    if not kernels:
        return None
    section = Section("Writing and scoring text", tables=[_table(machines, kernels, "One thread")])
    if any(machine.threads > 1 for machine in machines):
        title = "All threads: " + ", ".join(f"{machine.name} {machine.threads}" for machine in machines)
        section.tables.append(_table(machines, kernels, title, lambda machine: machine.threads))
    return section


def family_sections(machines):
    """Kernels on one thread, a table a family."""
    kernels = compare.timed_kernels(machines)
    for family in dict.fromkeys(kernel.family for kernel in kernels):
        yield Section(family, tables=[_table(machines, [kernel for kernel in kernels if kernel.family == family])])
