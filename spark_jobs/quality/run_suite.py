"""Expectations about what one run found as a whole, whatever its source holds."""

from __future__ import annotations

from collections.abc import Iterator

from contexture.publications import Publication
from spark_jobs.quality.expected import BETWEEN, Columns, Expected, in_words, limits
from spark_jobs.quality.subjects import STRUCTURES, subject_of

DANGLING_SHARE = 0.01
"""Registries resolve references when they take a structure, but for those to what another registry keeps."""

_SUMMARY = Columns("summary")


def about_the_run(publication: Publication) -> Iterator[Expected]:
    """Volume, shares, rules about all that is held, and age."""
    quality, many = publication.quality, subject_of(publication).frame
    volume = limits(quality.minimum_entities, quality.maximum_entities)
    share, age = quality.max_quarantined_share, quality.fresh_within_seconds
    sentence = f"the number of {many} in the source is {in_words(volume)}"
    yield _SUMMARY.critical("volume", BETWEEN, "in_source", sentence, **volume)
    sentence = f"row rules refuse at most {share:.4g} of the {many}"
    yield _SUMMARY.critical("quarantined-share", BETWEEN, "quarantined_share", sentence, max_value=share)
    if subject_of(publication) is STRUCTURES:
        sentence = f"at least {1 - share:.4g} of the structures that were asked for are accepted"
        yield _SUMMARY.warning("accepted-share", BETWEEN, "accepted_share", sentence, min_value=1 - share)
    yield from _of_rules(publication)
    if age is not None:
        sentence = f"the newest change of the source is at most {age} s old"
        yield _SUMMARY.warning("freshness", BETWEEN, "newest_age_seconds", sentence, max_value=age)


def _of_rules(publication: Publication) -> Iterator[Expected]:
    subject = subject_of(publication)
    severities = subject.severities(publication.quality.rules)
    for rule in subject.rules:
        severity = severities.get(rule.name) if rule.name in subject.rejecting else None
        if severity == "error":
            yield _SUMMARY.critical(rule.name, BETWEEN, rule.name, rule.description, max_value=0)
        elif severity == "warning" and rule.name == "dangling-reference":
            sentence = f"at most {DANGLING_SHARE:.4g} of the structures refer to something that isn't held"
            yield _SUMMARY.warning(rule.name, BETWEEN, "dangling_share", sentence, max_value=DANGLING_SHARE)
        elif severity == "warning" and subject is STRUCTURES:
            yield _SUMMARY.warning(rule.name, BETWEEN, rule.name, rule.description, max_value=0)
