"""The comparison as one HTML page that needs no other file: tables with bars, rooflines, light and dark."""

import pathlib
from html import escape

from .document import sections, title
from .markdown import KERNELS_NOTE
from .results import REFERENCE
from .roofline import Plot

# Colours of equal weight, apart also to readers who do not tell red from green; the text beside each bar names it as well.
_COLOURS = {"AVX3": "a", "AVX2": "b", "SSE4": "c", "SSSE3": "d", "NEON": "a", "NEON_WITHOUT_AES": "a", "scalar": "f", REFERENCE: "e"}


def _bar(row):
    if row.bar is None:
        return "<td></td>"
    return f'<td class="track"><span class="bar {_COLOURS.get(row.key, "d")}" style="width:{100 * row.bar:.1f}%"></span></td>'


def _table(content):
    bars = any(row.bar is not None for row in content.rows)
    head = [f"<th>{escape(cell)}</th>" for cell in content.header]
    if bars:
        head.insert(1, '<th class="track"><span class="hidden">bar</span></th>')
    lines = [f"<thead><tr>{''.join(head)}</tr></thead>"]
    body = []
    for row in content.rows:
        if row.group:
            body.append(f'</tbody><tbody><tr class="group"><th colspan="{len(head)}" scope="rowgroup">{escape(row.group)}</th></tr>')
        cells = [f"<td>{escape(cell)}</td>" for cell in row.cells]
        cells[0] = cells[0].replace("td>", "th>").replace("<th>", '<th scope="row">')
        if bars:
            cells.insert(1, _bar(row))
        body.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("<tbody>" + "".join(body) + "</tbody>")
    caption = f"<h3>{escape(content.title)}</h3>" if content.title else ""
    kind = "bars" if bars else "plain"
    return f'<div class="table">{caption}<div class="scroll"><table class="{kind}">{"".join(lines)}</table></div></div>'


def _plots(machines):
    parts = []
    for machine in machines:
        plots = [plot for target in machine.targets if (plot := Plot(machine, target)).usable]
        if not plots:
            parts.append(f"<p>No roofline of {escape(machine.name)}: its file has no results of <code>probe</code>.</p>")
            continue
        figures = "".join(f"<figure><figcaption>{escape(plot.target)}</figcaption>{plot.svg()}</figure>" for plot in plots)
        heading = f"<h3>{escape(machine.name)}</h3>" if len(machines) > 1 else ""
        parts.append(f'{heading}<div class="plots">{figures}</div>')
    key = ('<p class="key"><svg viewBox="0 0 10 10"><circle class="arithmetic" cx="5" cy="5" r="4"/></svg> bound by arithmetic '
           '<svg viewBox="0 0 10 10"><rect class="memory" x="1" y="1" width="8" height="8"/></svg> bound by a level of memory. '
           "Kernels on one thread; pointing at one names it.</p>")
    return key + "".join(parts)


def _section(section, machines):
    parts = [f"<section><h2>{escape(section.title)}</h2>"]
    if section.note:
        parts.append(f"<p>{escape(section.note)}</p>")
    if section.lines:
        items = "".join(f"<li><strong>{escape(name)}</strong> {escape(line)}</li>" for name, line in section.lines)
        parts.append(f"<ul>{items}</ul>")
    if section.plots:
        parts.append(_plots(machines))
    if section.tables:
        parts.append(f'<div class="tables">{"".join(_table(content) for content in section.tables)}</div>')
    return "".join(parts) + "</section>"


def render(machines):
    style = (pathlib.Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    name = escape(title(machines))
    body = "".join(_section(section, machines) for section in sections(machines))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>{name}</h1>
<p>{escape(KERNELS_NOTE)}</p>
{body}
</main>
</body>
</html>
"""
