"""Reading `sasl.jaas.config`, the text with the login of Java clients, into options of this client.

No error quotes a value of the text: it holds passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
      | (?P<quoted> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' )
      | (?P<sign> [=;] )
      | (?P<word> [^\s=;"']+ )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = MappingProxyType({"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"})
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})

_EXTENSION = "extension_"
# What Java does with tickets and logs has no meaning for this client.
_TICKETS: Final = frozenset(
    {"useKeyTab", "storeKey", "useTicketCache", "ticketCache", "renewTGT", "refreshKrb5Config", "doNotPrompt"}
    | {"debug", "isInitiator", "client", "useFirstPass", "tryFirstPass", "storePass", "clearPass"}
)
_USER: Final[Mapping[str, str]] = MappingProxyType({"username": "sasl.username", "password": "sasl.password"})
_KERBEROS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "principal": "sasl.kerberos.principal",
        "keyTab": "sasl.kerberos.keytab",
        "serviceName": "sasl.kerberos.service.name",
    }
)
_CLIENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    }
)


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """One login module with its options, which hold secrets."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def login_of(text: str) -> JaasLogin:
    """Returns the one login module of a text, `Module required name="value" …;`, on one line or several.

    Raises:
        ValueError: it is something else; the message quotes nothing of it.
    """
    words = _words(text)
    module, flag = words[:1], words[1:2]
    if not module or not flag or flag[0].lower() not in _FLAGS:
        raise ValueError('write it as Java has it: the login module, required, name="value" …;')
    rest = words[2:]
    if rest[-1:] == [";"]:
        rest = rest[:-1]
    if ";" in rest:
        raise ValueError("give one login module, ended by a semicolon")
    if len(rest) % 3 or any(sign != "=" for sign in rest[1::3]):
        raise ValueError('write each of its options as name="value"')
    return JaasLogin(module[0].rpartition(".")[2], MappingProxyType(dict(zip(rest[::3], rest[2::3], strict=True))))


def login_options(text: str, mechanism: str) -> dict[str, str]:
    """Returns the options by which this client logs in as `sasl.jaas.config` says; the mechanism may be empty.

    Raises:
        ValueError: the text is no such text, or says what this client can't do.
    """
    login = login_of(text)
    match login.module:
        case "PlainLoginModule":
            return {"sasl.mechanism": "PLAIN", **_renamed(login, _USER)}
        case "ScramLoginModule":
            if not mechanism.upper().startswith("SCRAM-"):
                raise ValueError(
                    "set sasl.mechanism beside it to SCRAM-SHA-256 or SCRAM-SHA-512, as configured at the brokers"
                )
            return _renamed(login, _USER)
        case "OAuthBearerLoginModule":
            return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc", **_client(login)}
        case "Krb5LoginModule":
            return {"sasl.mechanism": "GSSAPI", **_renamed(login, _KERBEROS, without=_TICKETS)}
    raise ValueError(
        "its login module is none of PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule and Krb5LoginModule; "
        "use sasl.mechanism with sasl.username and sasl.password"
    )


def _words(text: str) -> list[str]:
    words, place = [], 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError("close the quotation mark that is open in it")
        place = found.end()
        if found["quoted"]:
            words.append(_ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), found["quoted"][1:-1]))
        elif found["sign"] or found["word"]:
            words.append(found[0])
    return words


def _client(login: JaasLogin) -> dict[str, str]:
    extensions = {name: value for name, value in login.options.items() if name.startswith(_EXTENSION)}
    found = _renamed(login, _CLIENT, without=frozenset(extensions))
    if extensions:
        pairs = (f"{name.removeprefix(_EXTENSION)}={value}" for name, value in extensions.items())
        found["sasl.oauthbearer.extensions"] = ",".join(pairs)
    return found


def _renamed(login: JaasLogin, names: Mapping[str, str], without: frozenset[str] = frozenset()) -> dict[str, str]:
    unknown = sorted(set(login.options) - set(names) - without)
    if unknown:
        raise ValueError(f"its options {', '.join(unknown)} have no equivalent: take them out")
    return {option: login.options[name] for name, option in names.items() if name in login.options}
