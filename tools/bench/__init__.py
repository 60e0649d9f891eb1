"""Measurements against peers: each figure is a ratio of two things done side by side, in one run, on one machine.

`python -m tools.bench` takes them all. What is measured and how, and what limits each, stands in `docs/benchmarks.md`.
"""
