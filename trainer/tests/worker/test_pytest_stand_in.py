"""What a worker runs of pytest, against pytest itself: the same files, the same programs, the same verdicts."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import pytest_files
import refused_files
import skipping_files
import unittest_files
from programs_of_files import RIGHT, WRONG

SUPERVISOR = Path(__file__).parents[3] / "functions" / "supervisor"
PROGRAMS = (RIGHT, *WRONG)
RUN = {**pytest_files.FILES, **unittest_files.FILES}

# Says of each file given what the stand-in says of it.
DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
import pytest_runner, pytest_stand_in
from asked import Asked
from remote_program import UnusableTest
sys.modules["pytest"] = pytest_stand_in
for path in sys.argv[2:]:
    namespace = {"__name__": "__test__"}
    asked = [0]
    program, _, test = open(path).read().partition("\\n")
    own = {}
    exec(program, own)
    def f(x, program=own["f"], asked=asked):
        asked[0] += 1
        return program(x)
    namespace["f"] = f
    try:
        pytest_stand_in.refuse_what_is_missing(test)
        exec(compile(test, path, "exec"), namespace)
        pytest_runner.run_tests(namespace, Asked(lambda: asked[0]))
        print("passed")
    except UnusableTest:
        print("refused")
    except BaseException:
        print("failed")
"""


def write_files(folder: Path, tests: dict[str, str]) -> dict[tuple[str, str], Path]:
    paths = {}
    for number, (name, test) in enumerate(tests.items()):
        for other, program in enumerate(PROGRAMS):
            path = folder / f"test_{number}_{other}.py"
            path.write_text(f"{program}\n{test}")
            paths[name, program] = path
    return paths


def ask_stand_in(paths: dict[tuple[str, str], Path]) -> dict[tuple[str, str], str]:
    command = [sys.executable, "-c", DRIVER, str(SUPERVISOR), *map(str, paths.values())]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(paths, said, strict=True))


def ask_pytest(folder: Path, paths: dict[tuple[str, str], Path]) -> dict[tuple[str, str], str]:
    """A file passes when something of it has passed and nothing has failed."""
    report = folder / "report.xml"
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore", f"--junitxml={report}", f"--rootdir={folder}"]
    subprocess.run([sys.executable, "-m", "pytest", *options, str(folder)], capture_output=True, cwd=folder)
    seen: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        ends = {child.tag for child in case} & {"failure", "error", "skipped"} or {"passed"}
        file = (case.get("classname") or case.get("name") or "").split(".")[0]
        seen.setdefault(file, set()).update(ends)
    return {
        key: "passed" if seen.get(path.stem, set()) - {"skipped"} == {"passed"} else "failed"
        for key, path in paths.items()
    }


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("files")
    paths = write_files(folder, RUN)
    return ask_stand_in(paths), ask_pytest(folder, paths)


def test_the_worker_says_what_pytest_says(verdicts) -> None:
    ours, theirs = verdicts
    print(f"{len(ours)} files with a program each: {sum(ours[key] == theirs[key] for key in ours)} as pytest says")
    assert ours == theirs


@pytest.mark.parametrize("name", RUN)
def test_a_right_program_passes_and_each_wrong_one_fails(name: str, verdicts) -> None:
    ours, _ = verdicts
    assert [ours[name, program] for program in PROGRAMS] == ["passed"] + ["failed"] * len(WRONG)


def test_what_cannot_be_run_is_refused_whatever_the_program(tmp_path: Path) -> None:
    said = ask_stand_in(write_files(tmp_path, refused_files.FILES))
    assert {key: verdict for key, verdict in said.items() if verdict != "refused"} == {}


@pytest.mark.parametrize("name", skipping_files.FILES)
def test_a_skip_over_a_wrong_answer_fails(name: str, tmp_path: Path) -> None:
    said = ask_stand_in(write_files(tmp_path, {name: skipping_files.FILES[name]}))
    assert [*said.values()] == ["passed"] + ["failed"] * len(WRONG)
