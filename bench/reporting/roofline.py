"""Roofline plots as SVG: a target's roofs on logarithmic axes, and its kernels as points with labels that never overlap."""

import itertools
import math
from dataclasses import dataclass
from html import escape

from . import text

WIDTH, HEIGHT = 460, 400
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 14, 42  # margins
FONT = 10.5
CHARACTER = 0.56 * FONT  # width of an average letter, rather too wide than too narrow
RADIUS = 3.6
# Families whose name alone says too little, or too much for a plot.
NAMES = {"causal_attention": "causal", "decode_attention": "decode"}
BY_OPERATION = ("activation", "softmax", "sample")
LABELLED_FIRST = ("tiny", "baby", "small")


@dataclass
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other):
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def within(self, other):
        return other.left <= self.left and self.right <= other.right and other.top <= self.top and self.bottom <= other.bottom


PLOT = Box(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)


@dataclass
class Point:
    label: str
    title: str
    intensity: float
    flops: float
    bound: str
    rank: int = 0


@dataclass
class Label:
    text: str
    box: Box
    point: tuple  # in the plot

    @property
    def far(self):
        x, y = self.point
        gap_x = max(self.box.left - x, x - self.box.right, 0)
        gap_y = max(self.box.top - y, y - self.box.bottom, 0)
        return math.hypot(gap_x, gap_y) > 2.5 * RADIUS


class Scale:
    """A logarithmic axis."""

    def __init__(self, low, high, start, end):
        self.low, self.high, self.start = low, high, start
        self.per_decade = (end - start) / math.log10(high / low)

    def __call__(self, value):
        return self.start + math.log10(value / self.low) * self.per_decade

    def ticks(self):
        powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
        return [10.0**power for power in powers]


def text_box(x, y, length, anchor="start"):
    """The box of a text whose left (or right) end stands at x and whose middle at y."""
    width = length * CHARACTER
    left = x if anchor == "start" else x - width
    return Box(left, y - 0.58 * FONT, left + width, y + 0.58 * FONT)


def points_of(machine, target):
    """One-thread kernels with their intensity, those first whose labels matter most."""
    points = []
    for kernel in machine.kernels():
        result = machine.get(kernel, target)
        if kernel.family == "probe" or not result or "of_roof" not in result.counters or not result.rate("bytes/s"):
            continue
        flops = result.rate("FLOP/s")
        shape = kernel.shape.split("-T")[0]
        label = kernel.op if kernel.family in BY_OPERATION else f"{NAMES.get(kernel.family, kernel.family)} {shape}"
        title = f"{kernel}: {text.speed(kernel, result)}, {text.roof(result)}"
        rank = next((i for i, name in enumerate(LABELLED_FIRST) if shape.startswith(name)), 0 if kernel.family in BY_OPERATION else 9)
        # Of a model's products the sum stands for all; a variant of what is labelled already shows on pointing.
        if (kernel.family == "matmul" and kernel.op != "all") or any(p.label == label for p in points):
            label = ""
        points.append(Point(label, title, flops / result.rate("bytes/s"), flops, result.bound, rank))
    return points


def place_labels(points, obstacles):
    """Labels beside their points, or further off with a line to them, none over another, a point or an obstacle. `points` are (label, x, y, rank);
    what finds no place is left out."""
    taken = obstacles + [Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for _, x, y, _ in points]
    placed = []
    for label, x, y, _ in sorted((p for p in points if p[0]), key=lambda p: p[3]):
        for distance in (RADIUS + 3, 14, 22, 32, 44, 58, 74, 92):
            # To the right first, then around.
            for turn in (0, 1, -1, 2, -2, 3, -3, 8, 7, -7, 6, -6, 5, -5, 4, -4):
                angle = turn * math.pi / 8
                at_x, at_y = x + distance * math.cos(angle), y - distance * math.sin(angle)
                box = text_box(at_x, at_y, len(label), "start" if math.cos(angle) > -0.01 else "end")
                if box.within(PLOT) and not any(box.overlaps(other) for other in taken):
                    break
            else:
                continue
            taken.append(box)
            placed.append(Label(label, box, (x, y)))
            break
    return placed


def _along(words, x, y, angle):
    """Boxes that cover a text that begins at (x, y) and rises at an angle."""
    length = len(words) * CHARACTER
    steps = max(2, math.ceil(length / 8))
    middle = [(x + i / steps * length * math.cos(angle), y - i / steps * length * math.sin(angle)) for i in range(steps + 1)]
    return [Box(a - 5, b - 5, a + 5, b + 5) for a, b in middle]


def _line(kind, x1, y1, x2, y2):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


class Plot:
    """The plot of one target: `svg()` draws it; `labels` and `obstacles` say where its texts stand."""

    def __init__(self, machine, target):
        self.target = target
        self.peak, bandwidths = machine.roof(target)
        self.levels = {level: b for level, b in bandwidths.items() if b}
        self.points = points_of(machine, target)
        self.usable = bool(self.peak and self.levels)
        if not self.usable:
            return
        intensities = [p.intensity for p in self.points] + [self.peak / b for b in self.levels.values()]
        speeds = [p.flops for p in self.points]
        low_x, high_x = 0.3 * min(intensities), 3 * max(intensities)
        low_y = min([*speeds, self.peak / 30]) / 2
        self.x = Scale(low_x, high_x, PLOT.left, PLOT.right)
        self.y = Scale(low_y, 2.2 * max([*speeds, self.peak]), PLOT.bottom, PLOT.top)
        self._place()

    def _roof_labels(self):
        """(text, x, y, angle) of what stands along each roof, just above it."""
        words = f"peak {text.rate(self.peak, 'FLOP/s')}"
        labels = [(words, PLOT.right - 4 - len(words) * CHARACTER, self.y(self.peak) - 8, 0.0)]
        texts, marks = _along(*labels[0]), [self._mark(point) for point in self.points]
        below_peak = Box(PLOT.left, self.y(self.peak), PLOT.right, PLOT.bottom)
        angle = math.atan2(-self.y.per_decade, self.x.per_decade)
        for level, bandwidth in self.levels.items():
            words = f"{level} {text.rate(bandwidth, 'bytes/s')}"
            # From where the roof enters the plot, on the left or from below, on to the first place free of texts and, if there is one, of points.
            start = max(self.x.low, self.y.low / bandwidth)
            for taken, distance in itertools.product((texts + marks, texts), range(6, WIDTH, 4)):
                x = self.x(start) + distance * math.cos(angle) - 6 * math.sin(angle)
                y = self.y(start * bandwidth) - distance * math.sin(angle) - 6 * math.cos(angle)
                boxes = _along(words, x, y, angle)
                if all(box.within(below_peak) for box in boxes) and not any(box.overlaps(other) for box in boxes for other in taken):
                    labels.append((words, x, y, angle))
                    texts += boxes
                    break
        return labels

    def _mark(self, point):
        x, y = self.x(point.intensity), self.y(point.flops)
        return Box(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS)

    def _place(self):
        self.roof_labels = self._roof_labels()
        self.obstacles = [box for label in self.roof_labels for box in _along(*label)]
        self.labels = place_labels([(p.label, self.x(p.intensity), self.y(p.flops), p.rank) for p in self.points], self.obstacles)

    def _axes(self):
        parts = []
        for value in self.x.ticks():
            x = self.x(value)
            parts.append(_line("grid", x, PLOT.top, x, PLOT.bottom)
                         + f'<text class="tick" x="{x:.1f}" y="{PLOT.bottom + 15}" text-anchor="middle">{value:g}</text>')
        for value in self.y.ticks():
            y = self.y(value)
            parts.append(_line("grid", PLOT.left, y, PLOT.right, y)
                         + f'<text class="tick" x="{PLOT.left - 6}" y="{y + 3.5:.1f}" text-anchor="end">{value / 1e9:g}</text>')
        middle = (PLOT.left + PLOT.right) / 2
        parts.append(f'<text class="axis" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">intensity, FLOP a byte read</text>')
        turn = f"translate(11 {(PLOT.top + PLOT.bottom) / 2}) rotate(-90)"
        parts.append(f'<text class="axis" transform="{turn}" text-anchor="middle">GFLOP/s</text>')
        return parts

    def _roofs(self):
        parts = []
        for bandwidth in self.levels.values():
            low, ridge = max(self.x.low, self.y.low / bandwidth), self.peak / bandwidth
            parts.append(_line("roof", self.x(low), self.y(low * bandwidth), self.x(ridge), self.y(self.peak)))
        parts.append(_line("roof", self.x(self.peak / max(self.levels.values())), self.y(self.peak), PLOT.right, self.y(self.peak)))
        for words, x, y, angle in self.roof_labels:
            turn = f"translate({x:.1f} {y:.1f}) rotate({-math.degrees(angle):.1f})"
            parts.append(f'<text class="roofname" transform="{turn}" dy="0.32em">{escape(words)}</text>')
        return parts

    def _kernels(self):
        parts = []
        for label in self.labels:
            if label.far:
                x, y = label.point
                end_x, end_y = min(max(x, label.box.left), label.box.right), min(max(y, label.box.top), label.box.bottom)
                parts.append(_line("leader", x, y, end_x, end_y))
        for point in self.points:
            x, y = self.x(point.intensity), self.y(point.flops)
            title = f"<title>{escape(point.title)}</title>"
            if point.bound == "arithmetic":
                parts.append(f'<circle class="arithmetic" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}">{title}</circle>')
            else:
                side = 2 * RADIUS
                parts.append(f'<rect class="memory" x="{x - RADIUS:.1f}" y="{y - RADIUS:.1f}" width="{side}" height="{side}">{title}</rect>')
        for label in self.labels:
            middle = (label.box.top + label.box.bottom) / 2
            parts.append(f'<text class="name" x="{label.box.left:.1f}" y="{middle:.1f}" dy="0.34em">{escape(label.text)}</text>')
        return parts

    def svg(self):
        description = f"Roofline of {self.target}: {len(self.points)} kernels"
        return (f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(description)}">'
                + "".join(self._axes() + self._roofs() + self._kernels()) + "</svg>")
