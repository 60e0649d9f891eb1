"""What the registry refuses, as an error message of SDMX-ML 2.1."""

from __future__ import annotations

from xml.sax.saxutils import escape

from contexture_sandbox.http_server import Answer

NO_RESULTS, UNAUTHORISED, SYNTAX, INTERNAL, NOT_IMPLEMENTED = 100, 110, 140, 500, 501
"""Error codes of SDMX-REST."""
_MESSAGE = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<mes:Error xmlns:mes="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/message" '
    'xmlns:com="http://www.sdmx.org/resources/sdmxml/schemas/v2_1/common">'
    '<mes:ErrorMessage code="{code}"><com:Text>{text}</com:Text></mes:ErrorMessage></mes:Error>'
)


class Refusal(Exception):  # noqa: N818 - the registry's own word; it never leaves the HTTP application
    """A request the registry does not grant.

    Args:
        status: HTTP status.
        code: of SDMX-REST.
        text: what a person should know.
    """

    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code
        self.text = text

    def answer(self) -> Answer:
        """The refusal as an answer."""
        headers = {"content-type": "application/vnd.sdmx.error+xml;version=2.1"}
        if self.status == 401:
            headers["www-authenticate"] = 'Basic realm="registry"'
        return Answer(self.status, _MESSAGE.format(code=self.code, text=escape(self.text)).encode(), headers)


def bad_request(text: str) -> Refusal:
    """400: the request makes no sense."""
    return Refusal(400, SYNTAX, text)


def no_results() -> Refusal:
    """404: nothing is selected."""
    return Refusal(404, NO_RESULTS, "No Results Found")
