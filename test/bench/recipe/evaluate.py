"""Runs one program over its inputs, one case after the other, each in fresh namespaces and a fresh interpreter.

Prints a JSON list of {exit_code, stdout}, in order.
"""

import json
import pathlib
import subprocess

FOLDER = pathlib.Path("/opt/recipe")
OUTPUT_LIMIT_BYTES = 65_536
COMMAND = (
    "timeout --signal=KILL 2s "
    "unshare --mount --mount-proc --pid --fork --kill-child=KILL --net --ipc bash isolate.sh "
    "< input > output 2> /dev/null 3> entered"
)


def run_case(text):
    (FOLDER / "input").write_text(text)
    done = subprocess.run(COMMAND, shell=True, cwd=FOLDER)
    if (FOLDER / "entered").read_text() != "entered":
        raise RuntimeError("the program's interpreter was not reached")
    with (FOLDER / "output").open("rb") as output:
        stdout = output.read(OUTPUT_LIMIT_BYTES)
    return {"exit_code": done.returncode, "stdout": stdout.decode(errors="replace")}


inputs = json.loads((FOLDER / "inputs.json").read_text())
print(json.dumps([run_case(text) for text in inputs]))
