"""How a landing row says that it was notified, and in which form."""

from __future__ import annotations

from typing import get_args

from contexture.ngsi.notifications.notification import Form

_PREFIX = "application/json; notified="
_FORMS = {f"{_PREFIX}{form}": form for form in get_args(Form)}


def media_type_of(form: Form) -> str:
    """The media type of a row whose body was notified in this form."""
    return f"{_PREFIX}{form}"


def notified_form(media_type: str) -> Form | None:
    """The form a row's body was notified in; None when it was not notified."""
    return _FORMS.get(media_type)
