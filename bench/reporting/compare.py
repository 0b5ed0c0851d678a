"""What the numbers say: speed-ups, advice, and how far they can be trusted."""

import math

from .results import PEERS, REFERENCE, Kernel

MOST_SPREAD = 0.05
MOST_LOAD = 0.05
MOST_OF_ROOF = 1.03
WORTH_TELLING = 1.03  # a smaller difference is none
TEXT = ("generate", "score")


def unit_of(kernel):
    return "chars/s" if kernel.family in TEXT else "bytes/s" if (kernel.family, kernel.op) == ("probe", "read") else "FLOP/s"


def over(kernel, result, other):
    """How many times as fast `result` is as `other`, both of the same kernel; None where one is missing."""
    rates = [r.rate(unit_of(kernel)) if r else None for r in (result, other)]
    return rates[0] / rates[1] if all(rates) else None


def over_reference(machine, kernel, target):
    return over(kernel, machine.get(kernel, target), machine.get(kernel, REFERENCE))


def narrower(machine, target):
    """The next narrower target that ran."""
    later = machine.targets[machine.targets.index(target) + 1 :] if target in machine.targets else []
    return later[0] if later else None


def over_narrower(machine, kernel, target):
    return over(kernel, machine.get(kernel, target), machine.get(kernel, narrower(machine, target)))


def over_one_thread(machine, kernel, target):
    """What all threads together do, over one."""
    return over(kernel, machine.get(kernel, target, machine.threads), machine.get(kernel, target)) if machine.threads > 1 else None


def timed_kernels(machines):
    """Kernels, not whole models nor probes, that ran anywhere, in order."""
    return list(dict.fromkeys(k for machine in machines for k in machine.kernels() if k.family not in (*TEXT, "probe")))


def all_targets(machines):
    """Of any machine, widest first, and the scalar reference last."""
    longest_first = sorted(machines, key=lambda machine: -len(machine.targets))
    return [*dict.fromkeys(target for machine in longest_first for target in machine.targets), REFERENCE]


def text_cases(machines):
    return list(dict.fromkeys(k for machine in machines for k in machine.kernels(*TEXT)))


def peers(machines):
    return [peer for peer in PEERS if any(key[1] == peer for machine in machines for key in machine.results)]


def missing_kernels(machines):
    """By machine, what ran on another and not here."""
    everything = timed_kernels(machines) + text_cases(machines)
    return {machine.name: [k for k in everything if k not in set(machine.kernels())] for machine in machines}


def _spread(*results):
    """Of a ratio of rates: the root of the squared spreads."""
    return math.hypot(*(r.counters.get("spread", 0.0) for r in results))


def _is_faster(kernel, result, other):
    """By more than the readings spread and than is worth telling."""
    return over(kernel, result, other) > max(WORTH_TELLING, 1 + _spread(result, other))


def _doubt(*results):
    """What is said behind a ratio whose readings spread."""
    spread = _spread(*results)
    return f" (± {100 * spread:.0f}%)" if spread > MOST_SPREAD else ""


def _best_target(machine, kernel, threads):
    rated = [(machine.get(kernel, t, threads).rate("chars/s"), t) for t in machine.targets if machine.get(kernel, t, threads)]
    return max(rated)[1] if rated else None


def _advice_on_targets(machine):
    targets = machine.targets
    if not targets:
        return ["No target of this CPU was measured."]
    widest, threads = targets[0], machine.threads
    cases = [k for k in machine.kernels("generate") if machine.get(k, widest, threads)]
    if not cases:
        gains = sorted(g for k in machine.kernels() if (g := over_narrower(machine, k, widest)))
        if not gains:
            return [f"Only {widest} was measured."]
        return [f"{widest}, the default, is {gains[len(gains) // 2]:.2f} times as fast as {targets[1]} in the middle of its kernels; "
                "whole models were not measured."]
    slower = [case for case in cases if (best := _best_target(machine, case, threads)) != widest
              and _is_faster(case, machine.get(case, best, threads), machine.get(case, widest, threads))]
    lines = []
    if len(slower) < len(cases):
        text = f"Leave the default, {widest}"
        first = next(case for case in cases if case not in slower)
        second = machine.get(first, targets[1], threads) if len(targets) > 1 else None
        if second:
            chosen = machine.get(first, widest, threads)
            gain = over(first, chosen, second)
            text += f": {first.op} with {first.shape} runs {gain:.2f} times as fast as on {targets[1]}{_doubt(chosen, second)}"
        lines.append(text + ".")
    for case in slower:
        best = _best_target(machine, case, threads)
        results = machine.get(case, best, threads), machine.get(case, widest, threads)
        gain = over(case, *results)
        lines.append(f"For {case.op} with {case.shape} take --target {best}: {gain:.2f} times as fast as {widest}{_doubt(*results)}.")
    return lines


def advice(machine):
    """Sentences: which target, how much threads give, which kernel is worth work."""
    lines = _advice_on_targets(machine)
    if doubted := _why_not_to_trust(machine):
        lines.insert(0, f"Do not rely on this: {doubted}.")
    widest = machine.targets[0] if machine.targets else None
    gains = [(g, k) for k in machine.kernels("generate") if widest and (g := over_one_thread(machine, k, widest))]
    if gains:
        (least, slow), (most, fast) = min(gains, key=lambda g: g[0]), max(gains, key=lambda g: g[0])
        lines.append(f"{machine.threads} threads write {most:.2f} times as fast as one ({fast.op} with {fast.shape})"
                     + (f", {least:.2f} times at least ({slow.op} with {slow.shape})." if least < most / WORTH_TELLING else "."))
    shares = [(r.counters["of_roof"], k, r.bound) for k in machine.kernels() if widest and (r := machine.get(k, widest)) and "of_roof" in r.counters]
    if shares:
        share, kernel, bound = min(shares, key=lambda s: s[0])
        lines.append(f"Furthest below its roof on {widest}: {kernel} at {100 * share:.0f}%.")
    return lines


def _why_not_to_trust(machine):
    """What makes advice worthless: a build that is not octavo's speed, a machine with other work, or most readings spread."""
    if machine.context.get("doubts"):
        return "the build is not one to measure"
    if _load(machine) > MOST_LOAD:
        return "other processes took part of the CPU time"
    if 2 * len(_spreading(machine)) > len(machine.results):
        return f"most readings spread by more than {100 * MOST_SPREAD:.0f}%"
    return ""


def _load(machine):
    return max((r.counters.get("load_by_others", 0.0) for r in machine.results.values()), default=0.0)


def _spreading(machine):
    return [key for key, r in machine.results.items() if r.counters.get("spread", 0.0) > MOST_SPREAD]


def doubts(machine):
    """What makes the numbers of a machine doubtful."""
    lines = []
    if machine.context.get("doubts"):
        lines.append(f"The build is not one to measure: {machine.context['doubts'].strip('; ')}. Use the preset release.")
    load = _load(machine)
    if load > MOST_LOAD:
        lines.append(f"Other processes took up to {100 * load:.0f}% of the CPU time.")
    spread = _spreading(machine)
    if spread:
        lines.append(f"The readings of {len(spread)} of {len(machine.results)} benchmarks spread by more than {100 * MOST_SPREAD:.0f}%.")
    above = [key for key, r in machine.results.items() if r.counters.get("of_roof", 0.0) > MOST_OF_ROOF]
    if above:
        names = ", ".join(f"{kernel}/{target}" + (f"/{threads}" if threads > 1 else "") for kernel, target, threads in above)
        lines.append(f"More than 3% above the roof, so a probe or a count was disturbed: {names}.")
    lines += [f"Failed: {failure}." for failure in machine.failures]
    return lines


SPEED_CASES = (
    ("`tiny`, texts of 64 characters", Kernel("generate", "text", "tiny"), None),
    ("the same on AVX2", Kernel("generate", "text", "tiny"), "AVX2"),
    ("`small`, texts of 128 characters", Kernel("generate", "text", "small"), None),
    ("the same on AVX2", Kernel("generate", "text", "small"), "AVX2"),
    ("`tiny`, texts of 500 characters, `slide`", Kernel("generate", "slide", "tiny"), None),
    ("`baby`, 64 texts at once", Kernel("generate", "batch64", "baby"), None),
    ("`baby`, one text", Kernel("generate", "batch1", "baby"), None),
)


def speed_rows(machine):
    """README's speed table, on all threads: rows of case, characters a second, (share, of what), None where it was not measured; and what all threads
    do over one."""
    rows = []
    for title, kernel, target in SPEED_CASES:
        result = machine.get(kernel, target or (machine.targets or [""])[0], machine.threads)
        if not result:
            rows.append((title, None, None))
            continue
        memory = result.counters.get("of_memory")
        share = (memory, "memory bandwidth") if memory is not None else (result.counters.get("of_peak"), "peak")
        rows.append((title, result.rate("chars/s"), share))
    gain = over_one_thread(machine, Kernel("generate", "text", "tiny"), machine.targets[0]) if machine.targets else None
    return rows, gain
