"""Which registry is at an address."""

from __future__ import annotations

import httpx
import pytest

from builders import structures
from builders.registries import AT_ONCE, NOTHING_FOUND, answering, connection, sequence
from contexture.errors import ConfigurationError
from contexture.sources.http.errors import RegistryUnavailableError
from contexture.sources.sdmx.registry import FusionRegistry, SdmxRegistry, open_registry

PRODUCT = "/ws/fusion/info/product"
SEARCH = "/ws/registry/tx/searchTransactions"
AGENCIES_1 = "/agencyscheme/all/all/all"
STRUCTURES = httpx.Response(200, content=structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)).encode())
NOTHING = httpx.Response(404, content=NOTHING_FOUND)
FMR_12 = httpx.Response(200, json={"Version": "12.4.2", "ReleaseDate": "2026-09-19"})


def opened(
    answers: dict[str, object], base: str = "http://registry", **settings: object
) -> FusionRegistry | SdmxRegistry:
    return open_registry(connection(base, **settings), budget=AT_ONCE, transport=answering(answers))


def test_an_fmr_whose_log_may_not_be_read_is_compared_like_any_registry():
    registry = opened({PRODUCT: FMR_12, SEARCH: httpx.Response(403)})
    assert (registry.flavour, registry.has_log, registry.has_history) == ("fmr", False, True)


def test_a_registry_that_is_ill_is_neither():
    ill = httpx.Response(503)
    with pytest.raises(RegistryUnavailableError):
        opened({PRODUCT: ill})
    registry = opened({PRODUCT: sequence(ill, ill, FMR_12), SEARCH: httpx.Response(200, json=[])})
    assert registry.flavour == "fmr"


def test_a_page_at_the_product_endpoint_is_no_fmr():
    page = httpx.Response(200, html="<html>Structure</html>")
    registry = opened({PRODUCT: page, AGENCIES_1: STRUCTURES})
    assert (registry.flavour, registry.product) == ("generic", "SDMX-REST 1")


def test_what_is_said_is_not_asked():
    asked: list[str] = []

    class Listening(httpx.MockTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            asked.append(request.url.path)
            return super().handle_request(request)

    answers = Listening(answering({AGENCIES_1: STRUCTURES}).handler)
    settings = connection("http://registry", flavour="generic", api="v1")
    found = open_registry(settings, budget=AT_ONCE, transport=answers)
    assert (found.flavour, asked) == ("generic", [AGENCIES_1])


def test_a_publication_knows_better_than_the_connection():
    answers = {PRODUCT: FMR_12, AGENCIES_1: STRUCTURES}
    found = open_registry(
        connection("http://registry", flavour="fmr"),
        flavour="generic",
        budget=AT_ONCE,
        transport=answering(answers),
    )
    assert found.flavour == "generic"


def test_a_registry_without_agency_schemes_is_known_by_anything_it_has():
    registry = opened({AGENCIES_1: NOTHING, "/structure/all/all/all": STRUCTURES})
    assert registry.product == "SDMX-REST 1"


def test_a_registry_that_answers_in_utf_16_is_one_and_its_web_servers_page_is_none():
    message = structures.ml("2.1", ("Codelists", structures.CODELIST_2_1)).replace("UTF-8", "UTF-16")
    registry = opened({AGENCIES_1: httpx.Response(200, content=message.encode("utf-16"))})
    assert registry.product == "SDMX-REST 1"
    page = "<html><body>Structure of this site</body></html>"
    with pytest.raises(ConfigurationError, match="does not respond to structure queries"):
        opened({AGENCIES_1: httpx.Response(200, content=page.encode("utf-16"))})


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"flavour": "fmr"}, {"flavour": "generic"}])
def test_what_is_no_registry_is_refused(settings: dict[str, object]):
    with pytest.raises(ConfigurationError, match="Next: put"):
        opened({}, **settings)


def test_refused_credentials_are_not_taken_for_another_kind_of_registry():
    with pytest.raises(ConfigurationError, match="refuses the credentials of the connection"):
        opened({PRODUCT: httpx.Response(401)})


def test_the_release_shows_the_versions_of_the_interface():
    answers = {PRODUCT: httpx.Response(200, json={"version": "10.9.2"}), SEARCH: httpx.Response(200, json=[])}
    registry = opened({**answers, "/sdmx/v2/structure/agencyscheme/*/*/*": STRUCTURES})
    assert (registry.product, registry.has_history) == ("Fusion Registry 10.9.2", False)
