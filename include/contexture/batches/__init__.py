"""Batches, sub-batches and retries: when events are sent together, and when again."""

from __future__ import annotations

from contexture.batches.boundaries import batch_numbers, batch_starts
from contexture.batches.retries import RetrySchedule, retry_delays
from contexture.batches.sub_batches import Plan, plan, sub_batch_numbers

__all__ = ["Plan", "RetrySchedule", "batch_numbers", "batch_starts", "plan", "retry_delays", "sub_batch_numbers"]
