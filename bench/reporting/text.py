"""Numbers and names as people read them."""

from .compare import unit_of

MISSING = "—"
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))


def digits(value):
    """Three significant digits."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def rate(value, unit):
    """1.93 M characters/s, 142 GFLOP/s, 31.2 GB/s."""
    if value is None:
        return MISSING
    scale, prefix = next(((s, p) for s, p in _PREFIXES if value >= 0.9995 * s), (1, ""))
    unit = {"bytes/s": "B/s", "chars/s": " chars/s"}.get(unit, unit)
    return f"{digits(value / scale)} {prefix}{unit}".rstrip()


def share(value):
    return MISSING if value is None else f"{100 * value:.0f}%"


def times(value):
    return MISSING if value is None else f"{digits(value)}×"


def speed(kernel, result):
    return rate(result.rate(unit_of(kernel)), unit_of(kernel)) if result else MISSING


def characters(result):
    """Characters a second, where a heading says so."""
    return rate(result.rate("chars/s"), "") if result else MISSING


def roof(result):
    """How near the roof, and which: 74% arithmetic."""
    if not result or "of_roof" not in result.counters:
        return MISSING
    return f"{share(result.counters['of_roof'])} {result.bound}"


def text_share(result):
    """Of a whole model, what it reaches: of the peak, and of memory where one text streams the weights."""
    if not result:
        return MISSING
    parts = [f"{share(result.counters[key])} of {what}" for key, what in (("of_memory", "memory"), ("of_peak", "peak")) if key in result.counters]
    return parts[0] if parts else MISSING
