"""Measurements against peers: each figure is a ratio of two things done side by side, in one run, on one machine.

`python -m tools.bench` takes them all. `docs/benchmarks.md` describes what is measured, how, and what limits each.
"""
