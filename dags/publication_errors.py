"""Shows what is wrong with publication files as an import error in Airflow; the DAGs of the good files are elsewhere.

It makes no DAG. Correct the files that the error names, with file and line; the error goes away within a minute.
"""

from __future__ import annotations

from contexture_airflow.catalogue import errors

found = errors()
if found:
    raise found[0] if len(found) == 1 else ExceptionGroup("publication files that cannot be used", found)
