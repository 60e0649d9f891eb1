"""Collects what the product says to people from its source code, for `docs/reference/messages.md`.

The code is parsed and not run, so that a message is found wherever it is written: an error with its next step, a line
of a log, the help of a command, a field of a form, a sentence that is returned and becomes a part of a message. An
inserted value is shown as its name in braces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final, NamedTuple

PROJECT: Final = Path(__file__).resolve().parents[1]
PLACES: Final = ("include/contexture", "plugins/contexture_airflow", "spark_jobs", "dags")
LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical", "exception")
KINDS: Final[Mapping[str, str]] = {
    "error": "Errors",
    "publication": "Findings in publication files",
    "rule": "Rows that break a rule",
    "check": "Points of `doctor` and steps of connection tests",
    "command": "Help of commands",
    "option": "Help of options and arguments",
    "output": "Output and progress",
    "log": "Lines of logs",
    "form": "Fields of forms",
    "DAG": "Descriptions of DAGs and tasks",
    "sentence": "Other sentences, and parts of messages",
}
_CHECKS: Final = ("PointOutcome", "CheckResult", "CheckStep", "Point", "Check")
_NO_SENTENCE: Final = re.compile(
    r"\b(SELECT|INSERT|CREATE|DELETE FROM|WHERE|FROM|UPDATE|COALESCE|JOIN|CASE|AND|OR|SET LOCAL)\b"
    r"|\(\?|\\[sbdwn]|^[#^]|^ +[\w{]+: |-----END|\n.*\n"
)
_WORD: Final = re.compile(r"(?<![\w{])[a-z]{2,}(?![\w}])")
_PLACEHOLDER: Final = re.compile(r"\{\w+\}")
_Scope = Mapping[str, Sequence[ast.expr]]


class Message(NamedTuple):
    """What one place in the code says.

    Attributes:
        module: path of the file in the project.
        kind: one of `KINDS`.
        text: what happened, or what the thing is.
        next_step: what to do; with an option its names, with a log line its level; empty where there is none.
    """

    module: str
    kind: str
    text: str
    next_step: str = ""


def messages() -> list[Message]:
    """Returns every message of the product, by file, in the order of the code; a repeated one once for each file."""
    paths = sorted(file for place in PLACES for file in (PROJECT / place).rglob("*.py"))
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    shared: dict[str, list[ast.expr]] = {}
    for tree in trees.values():
        for name, values in _assigned(tree.body).items():
            if name.isupper() and not name.startswith("_"):
                shared.setdefault(name, []).extend(values)
    unique = {name: values for name, values in shared.items() if len(values) == 1}
    found: list[Message] = []
    for path, tree in trees.items():
        found += dict.fromkeys(_of_module(path.relative_to(PROJECT).as_posix(), tree, unique))
    return [each for each in found if _WORD.search(_PLACEHOLDER.sub("", f"{each.text} {each.next_step}"))]


def messages_page(generated: str) -> str:
    """Returns all messages in one page, by kind and package; `generated` is the notice at its head."""
    every = messages()
    lines = [
        "# Messages",
        "",
        generated,
        "",
        f"Search this page for a message that you have: it lists all {len(every):,} of them. `{{name}}` is an inserted",
        "value; ` / ` separates alternatives. The column *where* is the module below the heading's folder.",
    ]
    for kind, title in KINDS.items():
        of_kind = [each for each in every if each.kind == kind]
        lines += ["", f"## {title}"]
        for package, rows in groupby(of_kind, key=_package):
            third = {"option": "option", "log": "level", "form": "field", "command": "command", "rule": "rule"}.get(
                kind, "next step"
            )
            lines += ["", f"### {title}: `{package}`", "", f"| where | message | {third} |", "|---|---|---|"]
            lines += [
                f"| {_cell(each.module.removeprefix(package + '/').removesuffix('.py'))} | {_cell(each.text)} "
                f"| {_cell(each.next_step)} |"
                for each in rows
            ]
    return "\n".join(lines) + "\n"


def _package(message: Message) -> str:
    parts = message.module.split("/")
    return "/".join(parts[: min(3 if parts[0] == "include" else 2, len(parts) - 1)])


def _cell(text: str) -> str:
    # What a message quotes as code stays code; elsewhere the signs of Markdown are text.
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return _escape("`".join(parts), "\\`*_[]<|")
    return "`".join(_escape(part, "|" if place % 2 else "\\*_[]<|") for place, part in enumerate(parts))


def _escape(text: str, signs: str) -> str:
    for sign in signs:
        text = text.replace(sign, f"\\{sign}")
    return text.replace("\\<", "&lt;")


def _of_module(module: str, tree: ast.Module, shared: _Scope) -> Iterator[Message]:
    scope = {**shared, **_assigned(tree.body)}
    listed: set[int] = set()
    for table in scope.get("COMMANDS", ()) if module == "include/contexture/cli/__init__.py" else ():
        listed.update(id(each) for each in ast.walk(table))
        if isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(value, ast.Tuple):
                    yield Message(module, "command", _text(value.elts[1], scope), _text(key, scope))
    for message, used in _in_body(module, tree.body, scope):
        listed |= used
        yield message
    for node in ast.walk(tree):
        for value in _said_by(node):
            for each in _sentences(value):
                if id(each) not in listed:
                    yield Message(module, "sentence", _text(each, scope))


def _in_body(module: str, body: Sequence[ast.AST], scope: _Scope) -> Iterator[tuple[Message, set[int]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if module.startswith("include/contexture/cli/") and _is_command(node) and (text := ast.get_docstring(node)):
                yield (
                    Message(module, "command", text.partition("\n\n")[0], node.name.strip("_").replace("_", "-")),
                    set(),
                )
            yield from _in_body(module, list(ast.iter_child_nodes(node)), {**scope, **_assigned(ast.walk(node))})
            continue
        if isinstance(node, ast.Call):
            for message in _of_call(module, node, _before(node, scope)):
                yield message, _used(node, scope)
        yield from _in_body(module, list(ast.iter_child_nodes(node)), scope)


def _before(call: ast.Call, scope: _Scope) -> _Scope:
    """The scope in which a variable has the values of its last assignments before a call: those of one `if` statement.

    A function assigns its `message` anew for each finding; assignments that follow each other are alternatives.
    """
    found = {}
    for name, values in scope.items():
        earlier = [each for each in values if each.lineno <= call.lineno] if len(values) > 1 else []
        near = [each for at, each in enumerate(earlier) if _is_one_of_last(earlier[at:])]
        found[name] = near or values
    return found


def _is_one_of_last(values: Sequence[ast.expr]) -> bool:
    return all(after.lineno - (each.end_lineno or each.lineno) <= 2 for each, after in pairwise(values))


def _used(call: ast.Call, scope: _Scope) -> set[int]:
    """The nodes that a message of a call contains, also by the names of its arguments."""
    found: set[int] = set()
    for node in ast.walk(call):
        found.add(id(node))
        if isinstance(node, ast.Name):
            found.update(id(each) for value in scope.get(node.id, ()) for each in ast.walk(value))
    return found


def _assigned(nodes: Iterator[ast.AST] | Sequence[ast.AST]) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for name, value in zip(target.elts, node.value.elts, strict=False):
                        if isinstance(name, ast.Name):
                            found.setdefault(name.id, []).append(value)
    return found


def _of_call(module: str, call: ast.Call, scope: _Scope) -> Iterator[Message]:
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    found = _help_of_call(call, named, scope) or _finding_of_call(call, named, scope) or _line_of_call(call, scope)
    if found is not None:
        yield Message(module, *found)


_Found = tuple[str, str, str] | None
"""The kind of a message, its text and its next step."""


def _help_of_call(call: ast.Call, named: Mapping[str, ast.expr], scope: _Scope) -> _Found:
    name = _called(call)
    if name in {"Option", "Argument"} and "help" in named:
        options = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        return "option", _text(named["help"], scope), " ".join(options)
    if name == "Param" and "description" in named:
        return "form", _text(named["description"], scope), _text(named.get("title"), scope)
    if name == "Typer" and "help" in named:
        return "command", _text(named["help"], scope), ""
    if name in {"DAG", "dag"} and "description" in named:
        return "DAG", _text(named["description"], scope), ""
    return None


def _finding_of_call(call: ast.Call, named: Mapping[str, ast.expr], scope: _Scope) -> _Found:
    name, (first, second, third) = _called(call), [*call.args, None, None, None][:3]
    if "next_step" in named:
        happened = _text(named.get("message", named.get("happened", first)), scope)
        subject = f"{happened} " if first is not None and _is_text(second) else ""
        return "error", f"{subject}{_text(second, scope)}" if subject else happened, _text(named["next_step"], scope)
    if name == "ModelProblem" and second is not None:
        return "publication", _text(second, scope), _text(third, scope)
    if name == "Violation" and _says_something(third, scope):
        return "rule", _text(third, scope), _text(first, scope)
    if name in _CHECKS and _says_something(detail := named.get("detail", second), scope):
        return "check", _text(detail, scope), _text(named.get("remedy", third), scope)
    return None


def _line_of_call(call: ast.Call, scope: _Scope) -> _Found:
    name, (first, second) = _called(call), [*call.args, None, None][:2]
    if name in LOG_LEVELS and isinstance(call.func, ast.Attribute) and _called_on(call.func).endswith("log"):
        return "log", _text(first, scope), name
    if name == "add" and _says_something(second, scope):
        return "rule", _text(second, scope), _text(first, scope)
    if name in {"print_progress", "echo", "print", "report", "_report"} and _says_something(first, scope):
        return "output", _text(first, scope), ""
    return None


def _is_command(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    called = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr in {"command", "callback"} for each in called)


def _said_by(node: ast.AST) -> list[ast.expr]:
    """What a statement returns, yields or names: values that reach a person as a part of something else."""
    match node:
        case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
            return [value]
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return [value]
        case _:
            return []


def _sentences(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.Constant(value=str(value)):
            if value.count(" ") > 1 and not _NO_SENTENCE.search(value):
                yield node
        case ast.JoinedStr():
            if _is_sentence(_text(node, {})):
                yield node
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _sentences(part)
        case ast.IfExp(body=body, orelse=orelse):
            yield from (*_sentences(body), *_sentences(orelse))
        case ast.Call(args=parts, keywords=keywords):
            for part in (*parts, *(keyword.value for keyword in keywords)):
                yield from _sentences(part)


def _is_sentence(text: str) -> bool:
    return text.count(" ") > 1 and len(_WORD.findall(text)) > 1 and not _NO_SENTENCE.search(text)


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _called_on(function: ast.Attribute) -> str:
    on = function.value
    return on.attr if isinstance(on, ast.Attribute) else getattr(on, "id", "")


def _says_something(node: ast.expr | None, scope: _Scope) -> bool:
    """Whether there are words in a text, and not values alone."""
    if isinstance(node, ast.Name):
        return any(_says_something(value, {}) for value in scope.get(node.id, ()))
    return node is not None and any(
        isinstance(each, ast.Constant) and isinstance(each.value, str) and any(map(str.isalpha, each.value))
        for each in ast.walk(node)
    )


def _text(node: ast.expr | None, scope: _Scope) -> str:
    match node:
        case None:
            return ""
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(value, scope) for value in values)
        case ast.FormattedValue(value=value):
            return f"{{{_name(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, scope) + _text(right, scope)
        case ast.BinOp(left=left, op=ast.Mod()):
            return _text(left, scope)
        case ast.IfExp(body=body, orelse=orelse):
            return f"{_text(body, scope)} / {_text(orelse, scope)}"
        case ast.Name(id=name) if texts := [each for each in scope.get(name, ()) if _is_text(each)]:
            return " / ".join(dict.fromkeys(_text(each, {}) for each in texts))
        case _:
            return f"{{{_name(node)}}}"


def _is_text(node: ast.expr | None) -> bool:
    is_written = isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.IfExp)
    return is_written and _says_something(node, {})


def _name(node: ast.expr) -> str:
    """The last name of an expression: `topic` of `self._target.topic`, `rows` of `len(rows)`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[argument, *_]):
            return _name(argument)
        case ast.Call(func=function, args=arguments):
            return _name(arguments[0]) if arguments and _is_conversion(function) else _name(function)
        case ast.Subscript(value=value) | ast.Await(value=value) | ast.FormattedValue(value=value):
            return _name(value)
        case ast.GeneratorExp(elt=each) | ast.ListComp(elt=each) | ast.SetComp(elt=each):
            return _name(each)
        case ast.IfExp(body=body):
            return _name(body)
        case ast.BoolOp(values=[first, *_]):
            return _name(first)
        case ast.BinOp(left=left):
            return _name(left)
        case _:
            return "value"


def _is_conversion(function: ast.expr) -> bool:
    """Whether a function shows its argument, whose name says more than its own."""
    conversions = "len str repr sorted list tuple min max sum round printable abbreviate violation_subject named_urn"
    return getattr(function, "id", "") in conversions.split()
