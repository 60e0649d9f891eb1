"""What must be true before state is made from topics; what is not is refused by name, with the next step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product, takewhile

from contexture.errors import ConfigurationError, ContextureError
from contexture.events import ContextIdentity
from contexture.kafka.consumer_group import LEDGER_PREFIX
from contexture.operations.verification.contents import content_reader
from contexture.publications import NgsiPublication, Publication
from contexture.publications.checks.records import IDENTITY_FIELDS
from contexture.publications.delivery import KEY_IDENTITY, KEY_NONE, KEY_TOPIC
from contexture.publications.fields import is_wildcard
from contexture.records.topics import TopicNamer
from contexture.storage.publication_store import PublicationStore

_ANY = r"(?!__).*"
_MADE = re.compile(r"\{[^{}]*\}")
# Any two of each differ in their first characters, so that names have in common only what the service gives them.
_PATHS, _NAMES = ("/", "/a", "/Zb"), ("a", "Zb")


def candidates(publication: Publication, names: Iterable[str]) -> list[str]:
    """Those of a cluster's topics that are named for certain, or that begin as names of the publication's service do.

    Where grouping rules or name mappings may name anything, that is every topic but Kafka's own.
    """
    pattern = re.compile(_pattern(publication))
    return sorted(name for name in names if pattern.fullmatch(name) and not name.startswith(LEDGER_PREFIX))


def _pattern(publication: Publication) -> str:
    if not isinstance(publication, NgsiPublication):
        return "|".join(map(_template, publication.topics.written_names))
    topics = publication.topics
    namer = TopicNamer(topics)
    if topics.naming == "fixed":
        return "|".join(map(re.escape, namer(ContextIdentity("", "/", "any", ""))))
    if namer.rewrites:
        return _ANY
    found = set(_samples(namer, publication.source.tenant))
    return re.escape(found.pop()) if len(found) == 1 else f"{re.escape(_common_beginning(found))}.*"


def _samples(namer: TopicNamer, service: str) -> Iterator[str]:
    for path, name, kind, attribute in product(_PATHS, _NAMES, _NAMES, _NAMES):
        try:
            yield namer.name(ContextIdentity(service, path, name, kind), attribute)
        except ContextureError:
            # Old releases name few paths; the others say enough.
            continue


def _template(name: str) -> str:
    return ".+".join(map(re.escape, _MADE.split(name)))


def _common_beginning(names: set[str]) -> str:
    # What the least and the greatest have in common, all between them have too.
    least, greatest = min(names, default=""), max(names, default="")
    same = takewhile(lambda pair: pair[0] == pair[1], zip(least, greatest, strict=False))
    return "".join(character for character, _ in same)


_BY_HAND = (
    "start a full run and look what `contexture verify {name}` finds: what is extra goes only with its topic, by hand"
)


def check_rebuildable(publication: Publication) -> None:
    """Returns where a record shows its identity.

    Raises:
        ConfigurationError: it does not; says why, and what to do in place of it.
    """
    reason = _reason(publication)
    if reason is not None:
        raise ConfigurationError(
            f"state of publication {publication.name} can't be made from its topics: {reason}",
            next_step=_BY_HAND.format(name=publication.name),
        )


def check_differences(publication: Publication) -> None:
    """Returns where the run that follows may send only what differs from the topics.

    Raises:
        ConfigurationError: it may not.
    """
    if publication.source.has_log:
        reason = "one transaction of a registry is never sent in parts: the next run is a full one"
    elif publication.source.mode == "notifications":
        reason = "it reads notifications alone, and has to read the source whole once"
    elif content_reader(publication) is None:
        reason = f"values in format {publication.message.format} do not hold what was read"
    else:
        return
    raise ConfigurationError(
        f"the next run of {publication.name} can't send only what differs from the topics: {reason}",
        next_step="leave --only-differences out",
    )


def check_settled(store: PublicationStore) -> None:
    """Returns where nothing is on its way into the topics.

    Raises:
        ConfigurationError: an outbox waits.
    """
    waiting = store.outboxes.pending()
    if waiting:
        raise ConfigurationError(
            f"outbox {waiting[0].outbox} of publication {store.name} is {waiting[0].status}: what it sends need not "
            "be in the topics yet",
            next_step=f"let a run finish it, or abandon it: contexture outbox abandon {waiting[0].outbox} --reason …",
        )


def nothing_sent(publication: str) -> ConfigurationError:
    """The error where the ledger holds nothing, so that no one knows which number comes next."""
    return ConfigurationError(
        f"the ledger of publication {publication} says that nothing was ever sent",
        next_step="see that the connection leads to the cluster it was sent to; if the ledger is lost too, start a "
        f"full run, and look what `contexture verify {publication}` finds extra",
    )


def _reason(publication: Publication) -> str | None:
    message, topics = publication.message, publication.topics
    if not publication.source.has_content:
        return "its topics are a history of what Contexture did, and nothing in them is ever deleted"
    if message.key == KEY_NONE:
        return "its records have no keys (message.key: none), so that none of them could be deleted"
    if publication.joins_lines:
        return "a record holds the lines of several entities (cygnus-lines with a batch_size above 1)"
    if message.key == KEY_IDENTITY:
        return _unnamed(publication)
    if message.key != KEY_TOPIC and message.key not in IDENTITY_FIELDS:
        return f"its keys are values of the attribute {message.key}, which change while the entity stays"
    if topics.keep != "latest":
        return f"several entities may share a key (message.key: {message.key} with keep: history)"
    return _unread(publication)


def _unnamed(publication: Publication) -> str | None:
    """Returns why values do not show the type of an attribute, where name mappings name topics by it."""
    by_type = isinstance(publication, NgsiPublication) and publication.topics.enable_name_mappings
    if by_type and publication.splits_by_attribute and publication.message.format != "ngsiv2":
        return f"name mappings may name topics by an attribute's type, which {publication.message.format} does not hold"
    return None


def _unread(publication: Publication) -> str | None:
    """Where the key is a part of the identity, the value has to show the rest."""
    source = NgsiPublication.of(publication).source
    needs = f"its keys are only a part of the identity (message.key: {publication.message.key}), and"
    if publication.message.format != "ngsiv2" or publication.splits_by_attribute:
        return f"{needs} only whole entities in format ngsiv2 hold id and type"
    if source.api == "ngsiv2" and (len(source.service_path) != 1 or is_wildcard(source.service_path[0])):
        return f"{needs} there are several service paths, which no value holds"
    return None
