"""A project of Great Expectations in a temporary folder, for one run; the only module that imports the library."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from spark_jobs.quality.data_docs import escape_results
from spark_jobs.quality.frames import AcceptedFrames
from spark_jobs.quality.suite import Expected
from spark_jobs.quality.summary import Subject

# Counts and the first few offenders only; more would copy data into documents and require a sort of the whole frame.
EXAMPLES = 5
ATTRIBUTES = "attributes"

_VALIDATIONS = "gx/uncommitted/validations"
_DOCS = "gx/uncommitted/data_docs/local_site"


@dataclass(frozen=True, slots=True)
class ExpectationRun:
    """The outcome of one expectation: the result of Great Expectations as JSON, or why it could not be built."""

    expected: Expected
    document: Mapping[str, Any]
    refused: str | None = None


def pass_without_rows(expected: Expected) -> ExpectationRun:
    """Returns a success, because an expectation about no rows is met.

    Great Expectations fails a maximum there, but a source without changes is no error.
    """
    return ExpectationRun(expected, {"success": True, "result": {}})


class Project:
    """A file context of Great Expectations, because only these have Data Docs."""

    def __init__(self, folder: str) -> None:
        import great_expectations as gx

        self._gx = gx
        self._folder = Path(folder)
        context: Any = gx.get_context(mode="file", project_root_dir=folder)
        self._context = context
        # Progress bars go to the error stream once for every checkpoint, and show nothing beyond our own lines.
        self._context.variables.progress_bars = {"globally": False}

    def judge_summary(self, row: Mapping[str, float | None], expectations: Sequence[Expected]) -> list[ExpectationRun]:
        """Judges the run as a whole, in pandas, because one row takes 40 ms there and needs no Spark."""
        import pandas as pd

        about = [each for each in expectations if each.on == "summary"]
        if not about:
            return []
        source = self._context.data_sources.add_pandas("summary")
        return self._judge("summary", source, pd.DataFrame([dict(row)]), about)

    def judge_rows(
        self, subject: Subject, frames: AcceptedFrames, reference_time: datetime, expectations: Sequence[Expected]
    ) -> list[ExpectationRun]:
        """Judges accepted rows: our expectations in memory if the rows are few, the author's own in Spark."""
        about = [each for each in expectations if each.on == subject.frame]
        small = frames.memory(reference_time)
        if small is None:
            return self._judge_in_spark(subject.frame, subject.key, frames, reference_time, about)
        own = [each for each in about if each.own]
        source = self._context.data_sources.add_pandas(subject.frame)
        ours = [each for each in about if not each.own]
        outcomes = self._judge(subject.frame, source, small, ours, _examples_by(subject.key))
        return outcomes + (self._judge_in_spark("own", subject.key, frames, reference_time, own) if own else [])

    def judge_attributes(
        self, frames: AcceptedFrames, reference_time: datetime, expectations: Sequence[Expected]
    ) -> list[ExpectationRun]:
        """Judges attributes of accepted entities in Spark, because all expectations on them are the author's own."""
        about = [each for each in expectations if each.on == ATTRIBUTES]
        return self._judge_in_spark(ATTRIBUTES, "identity", frames, reference_time, about) if about else []

    def _judge_in_spark(
        self,
        name: str,
        key: str,
        frames: AcceptedFrames,
        reference_time: datetime,
        expectations: Sequence[Expected],
    ) -> list[ExpectationRun]:
        source = self._context.data_sources.add_spark(name, persist=False)
        frame = frames.spark(reference_time)
        try:
            return self._judge(name, source, frame, expectations, _examples_by(key))
        finally:
            frame.unpersist()

    @property
    def validations(self) -> Path:
        """The folder of the stored results."""
        return self._folder / _VALIDATIONS

    def build_data_docs(self) -> Path:
        """Builds the Data Docs and returns their folder."""
        escape_results(self.validations)
        self._context.build_data_docs()
        return self._folder / _DOCS

    def _judge(
        self, name: str, source: Any, frame: Any, expectations: Sequence[Expected], result_format: Any = "SUMMARY"
    ) -> list[ExpectationRun]:
        batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe("whole")
        built, refused = self._build_all(expectations)
        validations = [self._validation(group, batch, members) for group, members in _grouped(name, built)]
        checkpoint = self._gx.Checkpoint(name=name, validation_definitions=validations, result_format=result_format)
        checkpoint_result = self._context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": frame})
        return [*_outcomes(checkpoint_result, expectations), *refused]

    def _build_all(self, expectations: Sequence[Expected]) -> tuple[list[tuple[Expected, Any]], list[ExpectationRun]]:
        built, refused = [], []
        for expected in expectations:
            try:
                built.append((expected, _gx_expectation(expected)))
            except Exception as error:
                # Pydantic, GX and Python raise errors of their own for a name or an argument of the author.
                refused.append(ExpectationRun(expected, {}, f"{type(error).__name__}: {error}"))
        return built, refused

    def _validation(self, name: str, batch: Any, expectations: Sequence[Any]) -> Any:
        suite = self._context.suites.add(self._gx.ExpectationSuite(name=name, expectations=list(expectations)))
        definition = self._gx.ValidationDefinition(name=name, data=batch, suite=suite)
        return self._context.validation_definitions.add(definition)


@contextmanager
def open_project() -> Iterator[Project]:
    """Opens a project that is deleted at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="contexture-gx-") as folder:
        yield Project(folder)


def _grouped(name: str, built: Sequence[tuple[Expected, Any]]) -> Iterator[tuple[str, list[Any]]]:
    # One error fails the whole aggregate that computes a suite (CAST_INVALID_INPUT under ANSI). Therefore each of the
    # author's own expectations is a suite of its own, which cannot fail the others.
    if ours := [expectation for expected, expectation in built if not expected.own]:
        yield name, ours
    own = [expectation for expected, expectation in built if expected.own]
    yield from ((f"{name}-own-{number}", [expectation]) for number, expectation in enumerate(own, start=1))


def _examples_by(key: str) -> dict[str, Any]:
    return {
        "result_format": "SUMMARY",
        "partial_unexpected_count": EXAMPLES,
        "unexpected_index_column_names": [key],
    }


def _gx_expectation(expected: Expected) -> Any:
    import great_expectations.expectations as gxe
    from great_expectations.expectations.expectation import Expectation
    from great_expectations.expectations.row_conditions import PassThroughCondition

    kind: Any = getattr(gxe, expected.kind, None)
    if not (inspect.isclass(kind) and issubclass(kind, Expectation)):
        raise LookupError(f"Great Expectations has no {expected.kind}")
    arguments: dict[str, Any] = dict(expected.kwargs)
    if expected.where is not None:
        arguments["row_condition"] = PassThroughCondition(pass_through_filter=expected.where)
    arguments |= {"severity": expected.severity, "description": expected.description, "meta": {"name": expected.name}}
    return kind(**arguments)


def _outcomes(checkpoint_result: Any, expectations: Sequence[Expected]) -> Iterator[ExpectationRun]:
    by_name = {expected.name: expected for expected in expectations}
    for validation in checkpoint_result.run_results.values():
        for result in validation.results:
            document = result.to_json_dict()
            yield ExpectationRun(by_name[document["expectation_config"]["meta"]["name"]], document)
