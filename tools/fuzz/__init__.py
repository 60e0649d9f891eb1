"""Hostile input: what parses the words of strangers is fed with damaged and made-up documents, for a bounded time.

`make fuzz` runs it. Each case has a limit of time and of memory; only errors of `contexture.errors` may come out.
"""
