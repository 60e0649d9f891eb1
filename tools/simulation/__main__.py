"""Tries schedules; says which came out wrong, and shows one of them again.

python -m tools.simulation --schedules 10000 --seed 1
python -m tools.simulation --replay 4711
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.simulation.plans import SCENARIOS, WEATHERS
from tools.simulation.schedules import Found, replay, try_side_by_side


def main() -> int:
    """Runs schedules; the number of those that came out wrong decides the exit status."""
    arguments = _arguments()
    if arguments.replay is not None:
        verdict, trace = replay(arguments.replay, arguments.scenario, arguments.weather)
        print("\n".join(trace))
        print(f"seed {arguments.replay}: {dict(verdict.anomalies) or verdict.outcome}")
        print("\n".join(verdict.sentences))
        return int(bool(verdict.anomalies))
    started = time.monotonic()
    totals, found = Counter[str](), list[Found]()
    for each in _tried(arguments):
        totals["schedules"] += 1
        totals["calls"] += each.verdict.calls
        totals["killed"] += each.verdict.killed
        totals["stopped"] += each.verdict.stopped
        totals[each.verdict.outcome] += 1
        if each.verdict.anomalies:
            found.append(each)
            totals["wrong"] += 1
            totals.update({f"with {kind}": 1 for kind in each.verdict.anomalies})
            if totals["wrong"] <= arguments.shown:
                print(
                    f"seed {each.seed} ({each.scenario}, {each.weather}): {'; '.join(each.verdict.sentences)[:400]}",
                    flush=True,
                )
            if arguments.until in each.verdict.anomalies:
                break
    seconds = time.monotonic() - started
    figures: dict[str, Any] = {**totals, "seconds": round(seconds, 1), "a second": round(totals["schedules"] / seconds)}
    print(", ".join(f"{name} {count}" for name, count in figures.items()))
    if arguments.json:
        wrong = [
            {"seed": each.seed, "scenario": each.scenario, "weather": each.weather, **each.verdict.anomalies}
            for each in found
        ]
        Path(arguments.json).write_text(json.dumps({"figures": figures, "wrong": wrong}, indent=1))
    return int(bool(found))


def _tried(arguments: argparse.Namespace) -> Iterator[Found]:
    return try_side_by_side(
        arguments.seed, arguments.schedules, arguments.scenario, arguments.weather, workers=arguments.workers
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow")
    parser.add_argument("--scenario", choices=SCENARIOS, help="of this kind alone")
    parser.add_argument("--weather", choices=WEATHERS, help="of this kind alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes side by side")
    parser.add_argument("--json", help="writes the figures to this file")
    parser.add_argument("--replay", type=int, metavar="SEED", help="shows one schedule")
    parser.add_argument("--shown", type=int, default=10, help="how many of those that came out wrong are described")
    parser.add_argument("--until", metavar="KIND", help="ends with the first schedule with this kind of anomaly")
    return parser.parse_args()


def _with_fixed_hashes() -> None:
    """Starts again where sets of texts would have another order each time: a seed is to give the same schedule."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tools.simulation", *sys.argv[1:]], environment)


if __name__ == "__main__":
    _with_fixed_hashes()
    sys.exit(main())
