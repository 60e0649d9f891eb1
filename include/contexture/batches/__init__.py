"""Batches and sub-batches: which events are sent together."""

from __future__ import annotations

from contexture.batches.boundaries import batch_numbers, batch_starts
from contexture.batches.sub_batches import Plan, plan, sub_batch_numbers

__all__ = ["Plan", "batch_numbers", "batch_starts", "plan", "sub_batch_numbers"]
