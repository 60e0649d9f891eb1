# One image for everything of ours: Airflow's services and Spark's master and workers.
FROM python:3.11-slim-bookworm

# Optional dependencies of pyproject.toml to install, as uv takes them.
ARG EXTRAS="--extra celery"
ARG UV_VERSION=0.13.8

RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/* \
 && pip install --no-cache-dir uv==${UV_VERSION} \
 && useradd --uid 50000 --create-home contexture \
 && mkdir -p /opt/airflow/auth /opt/airflow/logs /var/lib/contexture \
 && chown -R contexture /opt/airflow /var/lib/contexture

WORKDIR /opt/contexture
ENV UV_LINK_MODE=copy UV_NO_CACHE=1 UV_PYTHON_DOWNLOADS=never

# The dependencies alone come first: a change of ours then does not fetch 1.3 GB again.
COPY pyproject.toml uv.lock README.md LICENSE NOTICE ./
RUN uv sync --frozen --no-dev --no-install-project ${EXTRAS}

COPY include ./include
COPY plugins ./plugins
COPY spark_jobs ./spark_jobs
RUN uv sync --frozen --no-dev --no-editable ${EXTRAS}
COPY dags ./dags
# Submits start in half the time with the classes that Spark loads in an archive.
RUN PATH=/opt/contexture/.venv/bin:${PATH} CONTEXTURE_CACHE=/tmp/cache \
    python -m contexture_airflow.spark_class_data --target /opt/contexture/class-data.jsa \
 && rm -rf /tmp/cache

# Probes of Airflow's chart call what they ask for by the entry point of Airflow's own image.
RUN printf '#!/bin/sh\nexec "$@"\n' > /entrypoint && chmod 755 /entrypoint

ENV PATH=/opt/contexture/.venv/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/contexture/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/contexture/plugins \
    CONTEXTURE_HOME=/var/lib/contexture \
    CONTEXTURE_CLASS_DATA=/opt/contexture/class-data.jsa \
    CONTEXTURE_PUBLICATIONS=/opt/contexture/include/publications

USER contexture
CMD ["contexture", "version"]
