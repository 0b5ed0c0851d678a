"""The comparison as sections of tables, which Markdown and HTML render each in their way."""

from dataclasses import dataclass, field

from . import compare, text
from .results import PEERS

FACTS = (("CPU", "cpu"), ("caches", "cpu_caches"), ("targets run", "targets_run"), ("not run by this CPU", "targets_missing"),
         ("threads", "threads"), ("because of", "threads_reason"), ("compiler", "compiler"), ("build", "build_type"), ("octavo", "octavo"),
         ("kernel", "kernel"), ("system", "os"), ("OpenBLAS", "peer_openblas"), ("oneDNN", "peer_onednn"), ("measured", "date"))


@dataclass
class Row:
    """Cells of a table; `group` opens a group of rows, `bar` is the share of the longest bar, `key` what it is about."""

    cells: list
    group: str = ""
    bar: float = None
    key: str = ""


@dataclass
class Table:
    header: list
    rows: list
    title: str = ""


@dataclass
class Section:
    title: str
    note: str = ""
    lines: list = field(default_factory=list)  # of a list
    tables: list = field(default_factory=list)
    plots: bool = False  # rooflines belong here


def machines_section(machines):
    rows = [Row([name, *(m.context.get(key) or text.MISSING for m in machines)]) for name, key in FACTS]
    return Section("Machines", tables=[Table(["", *(m.name for m in machines)], rows)])


def advice_section(machines):
    section = Section("What to use")
    for machine in machines:
        section.lines.append((machine.name, " ".join(compare.advice(machine))))
    return section


def doubts_section(machines):
    lines = [(m.name, line) for m in machines for line in compare.doubts(m)]
    for name, kernels in compare.missing_kernels(machines).items():
        if kernels:
            lines.append((name, f"Not measured here, though elsewhere: {', '.join(map(str, kernels))}."))
    return Section("Doubts", lines=lines) if lines else None


def measured_rows(kernels, machines, threads_of=lambda machine: 1):
    """(kernel, target, group) of what was measured on any machine, so that rows of tables side by side are alike; `group` opens a kernel's rows."""
    for kernel in kernels:
        group = str(kernel) if kernel.family in compare.TEXT else f"{kernel.op} {kernel.shape}"
        for target in compare.all_targets(machines):
            if any(machine.get(kernel, target, threads_of(machine)) for machine in machines):
                yield kernel, target, group
                group = ""


def _bar_table(machine, kernels, all_machines, header, cells):
    """A row for each kernel and target, with bars in proportion to the fastest on any machine."""
    table = Table(header, [], machine.name if len(all_machines) > 1 else "")
    fastest = {}
    for kernel, target, group in measured_rows(kernels, all_machines):
        unit, result = compare.unit_of(kernel), machine.get(kernel, target)
        if kernel not in fastest:
            rates = [r.rate(unit) or 0 for m in all_machines for (k, _, threads), r in m.results.items() if k == kernel and threads == 1]
            fastest[kernel] = max(rates, default=0)
        bar = (result.rate(unit) or 0) / fastest[kernel] if result and fastest[kernel] else 0
        table.rows.append(Row([target, *cells(kernel, target, result)], group, bar, target))
    return table


def text_section(machines):
    kernels = compare.text_cases(machines)
    if not kernels:
        return None

    def tables(machine):
        def cells(kernel, target, result):
            threads = machine.get(kernel, target, machine.threads)
            return [text.characters(result), text.text_share(result), text.characters(threads) if machine.threads > 1 else text.MISSING,
                    text.times(compare.over_one_thread(machine, kernel, target)),
                    text.times(compare.over_narrower(machine, kernel, target))]

        return _bar_table(machine, kernels, machines, ["target", "chars/s", "share", "all threads", "over one", "over narrower"], cells)

    note = ("Characters a second of whole models, on one thread and on all. Share: what one thread reaches of the multiply-add peak, or of "
            "memory's bandwidth where one text streams the weights.")
    return Section("Writing and scoring text", note, tables=[tables(m) for m in machines])


def roofs_section(machines):
    note = "What each target can do at most, probed in the same run: multiply-adds in registers, and reading from each level of memory."
    section = Section("Roofs", note, plots=True)
    for machine in machines:
        levels = list(dict.fromkeys(level for target in machine.targets for level in machine.roof(target)[1]))
        table = Table(["target", "threads", "peak", *levels], [], machine.name if len(machines) > 1 else "")
        for target in machine.targets:
            for threads in sorted({1, machine.threads}):
                peak, bandwidths = machine.roof(target, threads)
                if peak or bandwidths:
                    speeds = [text.rate(bandwidths.get(level), "bytes/s") for level in levels]
                    table.rows.append(Row([target, str(threads), text.rate(peak, "FLOP/s"), *speeds]))
        if table.rows:
            section.tables.append(table)
    return section


def family_sections(machines):
    kernels = compare.timed_kernels(machines)
    for family in dict.fromkeys(kernel.family for kernel in kernels):
        own = [kernel for kernel in kernels if kernel.family == family]

        def table(machine, own=own):
            def cells(kernel, target, result):
                return [text.speed(kernel, result), text.roof(result), text.times(compare.over_reference(machine, kernel, target)),
                        text.times(compare.over_narrower(machine, kernel, target)),
                        text.times(compare.over_one_thread(machine, kernel, target))]

            header = ["target", "speed", "of roof, bound by", "over reference", "over narrower", "all threads"]
            return _bar_table(machine, own, machines, header, cells)

        yield Section(family, tables=[table(m) for m in machines])


def peers_section(machines):
    found = compare.peers(machines)
    if not found:
        return None
    section = Section("Beside other libraries", "Matrix products of the same shapes in the same run, on one thread; octavo on its best target, with "
                      "bias and residual, which the others leave out. Above 1× octavo is faster.")
    for machine in machines:
        header = ["product", "octavo", *(cell for peer in found for cell in (PEERS[peer], "ratio"))]
        table = Table(header, [], machine.name if len(machines) > 1 else "")
        for kernel in machine.kernels("matmul"):
            if not any(machine.get(kernel, peer) for peer in found) or not machine.targets:
                continue
            cells = [f"{kernel.op} {kernel.shape}", text.speed(kernel, machine.get(kernel, machine.targets[0]))]
            for peer in found:
                result = machine.get(kernel, peer)
                cells += [text.speed(kernel, result), text.times(result.counters.get("octavo_over_peer") if result else None)]
            table.rows.append(Row(cells))
        if table.rows:
            section.tables.append(table)
    return section


def sections(machines, texts=text_section, families=family_sections):
    """All of them; `texts` and `families` make those of whole models and of kernels."""
    every = [advice_section(machines), machines_section(machines), texts(machines), roofs_section(machines), *families(machines),
             peers_section(machines), doubts_section(machines)]
    return [section for section in every if section]


def title(machines):
    return "octavo on " + (machines[0].name if len(machines) == 1 else f"{len(machines)} machines")
