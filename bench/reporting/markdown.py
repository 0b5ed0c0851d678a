"""The comparison as Markdown."""

from . import beside, compare, text
from .document import family_sections, sections, text_section, title

KERNELS_NOTE = ("Kernels on one thread. Of roof: share of the lower of peak and bandwidth × intensity, and which of the two bounds it, "
                "arithmetic or a level of memory. Over reference, over narrower: times as fast as the scalar reference, as the next narrower "
                "target. All threads: times as much as one.")


def _cell(cell):
    return str(cell).replace("|", "\\|").replace("\n", " ")


def table(header, rows):
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines) + "\n"


def _render_table(content):
    # Where rows are grouped, the group is a column of its own, also in the rows that follow.
    grouped = any(row.group for row in content.rows)
    rows, group = [], ""
    for row in content.rows:
        group = row.group or group
        rows.append([f"`{group}`", *row.cells] if grouped else row.cells)
    return table(["case", *content.header] if grouped else content.header, rows)


def render(machines):
    if len(machines) > 1:
        note, makers = beside.NOTE.format(first=machines[0].name), (beside.text_section, beside.family_sections)
    else:
        note, makers = KERNELS_NOTE, (text_section, family_sections)
    blocks = [f"# {title(machines)}\n", note + "\n"]
    for section in sections(machines, *makers):
        blocks.append(f"## {section.title}\n")
        if section.note:
            blocks.append(section.note + "\n")
        if section.lines:
            blocks.append("\n".join(f"- **{name}**: {line}" for name, line in section.lines) + "\n")
        for content in section.tables:
            if content.title:
                blocks.append(f"### {content.title}\n")
            blocks.append(_render_table(content))
    return "\n".join(blocks)


def speed_table(machine):
    """README's speed table."""
    rows, gain = compare.speed_rows(machine)
    cells = []
    for name, rate, share in rows:
        cells.append([name, text.rate(rate, ""), f"{text.share(share[0])} of {share[1]}" if share and share[0] is not None else text.MISSING])
    cells.append([f"{machine.threads} threads over one", text.times(gain), ""])
    widest = machine.targets[0] if machine.targets else "no target"
    note = f"{machine.context['cpu']}, {widest}, {machine.threads} threads, {machine.context['compiler']}."
    return table(["case", "characters/s", "share"], cells) + f"\n{note}\n"
