"""Builds the stand-ins: one root file system from Debian's packages, and an image of each recipe from it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from contexture.errors import ConfigurationError, RetriableError
from contexture.java.cache import cache_folder
from contexture_sandbox import jars
from contexture_sandbox.stack import project_folder
from tools.images.recipes import APPLICATION, BASE, DEBIAN, FILES, PACKAGES, Recipe, recipes

_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_SEAWEEDFS = "github.com/seaweedfs/seaweedfs/weed@3.97"
_OPTIONAL = {"chrislusf/seaweedfs:3.97"}
Progress = Callable[[str], None]


def build_images(progress: Progress, *, only: Collection[str] = (), store: bool = False) -> list[str]:
    """Builds the stand-ins that are not there yet; returns the tags of those that were built.

    Args:
        progress: gets a sentence for each image.
        only: the tags to build; all of them if empty. Those made from the image `contexture` need it.
        store: also builds the object store, which Go compiles for many minutes.

    Raises:
        ConfigurationError: a program is missing, or this user may not make a root file system.
        RetriableError: packages could not be fetched, or the engine refused a build.
    """
    context = cache_folder() / "stand-ins"
    context.mkdir(parents=True, exist_ok=True)
    built = []
    for recipe in recipes():
        is_wanted = recipe.tag in only if only else store or recipe.tag not in _OPTIONAL
        if not is_wanted or has_image(recipe.tag) or (recipe.base == APPLICATION and not has_image(APPLICATION)):
            continue
        if recipe.base == BASE and not has_image(BASE):
            progress(f"making {BASE} from Debian's packages")
            _make_base(context)
        progress(f"making a stand-in for {recipe.tag}")
        _build(recipe, context, progress)
        built.append(recipe.tag)
    return built


def has_image(tag: str) -> bool:
    """Returns whether the engine has an image of this name."""
    found = subprocess.run(["docker", "image", "inspect", tag], capture_output=True, check=False)
    return found.returncode == 0


def _make_base(context: Path) -> None:
    _need("debootstrap", "install Debian's package debootstrap, and run this as root")
    root = context / "root"
    shutil.rmtree(root, ignore_errors=True)
    _run(["debootstrap", "--variant=minbase", "bookworm", str(root)], "Debian's base could not be fetched")
    # Alternatives of Java link into it.
    (root / "usr/share/man/man1").mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["tar", "--create", "--directory", str(root), "."], stdout=subprocess.PIPE) as packed:
        _run(["docker", "import", "-", DEBIAN], "the engine did not take Debian's base", stdin=packed)
    shutil.rmtree(root, ignore_errors=True)
    # In a container, because Java's package wants a mounted /proc.
    packages = f"apt-get update && apt-get install --yes --no-install-recommends {' '.join(PACKAGES)}"
    _build(Recipe(BASE, (f"RUN {packages} && apt-get clean",), DEBIAN), context, lambda _: None)


def _build(recipe: Recipe, context: Path, progress: Progress) -> None:
    folder = context / "build"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "Dockerfile").write_text(recipe.dockerfile)
    copied = {word for line in recipe.lines if line.startswith("COPY") for word in line.split()[1:-1]}
    for name in sorted(word for word in copied if not word.startswith("--")):
        _fetch(name, folder, context, progress)
    _run(["docker", "build", "--tag", recipe.tag, str(folder)], f"the engine did not build {recipe.tag}")
    shutil.rmtree(folder)


def _fetch(name: str, folder: Path, context: Path, progress: Progress) -> None:
    """Puts what a COPY names into the folder of the build."""
    target = folder / name
    if (FILES / name).is_file():
        shutil.copy(FILES / name, target)
    elif name == "kafka-libs":
        shutil.copytree(jars.fetch(progress), target)
    elif name == "sandbox":
        shutil.copytree(project_folder() / "tools/sandbox", target, ignore=shutil.ignore_patterns("__pycache__"))
    elif name == "ca-certificates.crt":
        shutil.copy(_AUTHORITIES, target)
    elif name == "python":
        _copy_python(target)
    elif name == "weed":
        shutil.copy(_compile_store(context, progress), target)
    else:
        raise ConfigurationError(f"nothing is known about {name!r}", next_step="add it to tools/images/building.py")


def _copy_python(target: Path) -> None:
    """Copies this interpreter with its standard library alone."""
    if sys.version_info[:2] != (3, 11):
        raise ConfigurationError(
            f"the image has Python 3.11, and this is {sys.version_info.major}.{sys.version_info.minor}",
            next_step="make .venv anew with a Python 3.11",
        )
    unused = shutil.ignore_patterns("__pycache__", "site-packages", "test", "idlelib", "*.a")
    for folder in ("lib", "include"):
        shutil.copytree(Path(sys.base_prefix) / folder, target / folder, ignore=unused, symlinks=True)
    (target / "bin").mkdir()
    for name in ("python3.11", "python3", "python"):
        shutil.copy(Path(sys.base_prefix) / "bin" / "python3.11", target / "bin" / name)


def _compile_store(context: Path, progress: Progress) -> Path:
    program = context / "go" / "bin" / "weed"
    if not program.exists():
        _need("go", "install Go 1.24 or later")
        progress("compiling SeaweedFS")
        environment = ["env", f"GOPATH={context / 'go'}", "CGO_ENABLED=0", "nice"]
        _run([*environment, "go", "install", _SEAWEEDFS], "SeaweedFS could not be compiled")
    return program


def _need(program: str, next_step: str) -> None:
    if shutil.which(program) is None:
        raise ConfigurationError(f"there is no program {program}", next_step=next_step)


def _run(words: Sequence[str], failure: str, *, stdin: subprocess.Popen[bytes] | None = None) -> None:
    done = subprocess.run(words, stdin=stdin.stdout if stdin else None, capture_output=True, check=False)
    if done.returncode:
        reason = (done.stderr or done.stdout).decode(errors="replace")[-800:].strip()
        raise RetriableError(f"{failure}: {reason}", next_step="read the reason, and try again")
