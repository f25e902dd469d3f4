"""Files of which nobody could say a verdict in a worker: refused, whatever the program."""

FILES = {
    "coroutines": """
async def test_all(): assert f(1) == 2
def test_other(): assert f(1) == 2
""",
    "coroutines in a TestCase": """
import unittest
class F(unittest.TestCase):
    async def test_all(self): self.assertEqual(f(1), 2)
    def test_other(self): self.assertEqual(f(1), 2)
""",
    "coroutines of unittest": """
import unittest
class F(unittest.IsolatedAsyncioTestCase):
    async def test_all(self): self.assertEqual(f(1), 2)
""",
    "tests that yield": """
def test_all():
    yield f(1)
def test_other(): assert f(1) == 2
""",
    "no test": "def check(): assert f(1) == 2\n",
    "only skipped tests": """
import pytest
@pytest.mark.skip
def test_all(): assert f(1) == 2
""",
    "an unknown fixture": "def test_all(capsys): assert f(1) == 2\n",
    "an unknown fixture behind others": """
import pytest
@pytest.fixture
def inner(tmp_path): return 1
@pytest.fixture
def outer(inner): return inner
def test_a(): assert f(1) == 2
def test_b(outer): assert f(1) == 2
""",
    "an expected failure of pytest's": """
import pytest
@pytest.mark.xfail
def test_all(): assert f(1) == 2
def test_other(): assert f(1) == 2
""",
    "uneven rows": """
import pytest
@pytest.mark.parametrize("a, b", [(1, 2), (1,)])
def test_all(a, b): assert f(a) == b
""",
    "arguments that nobody takes": """
import pytest
@pytest.mark.parametrize("a, b", [(1, 2)])
def test_all(a): assert f(a) == 2
""",
    "arguments of a TestCase": """
import pytest, unittest
class F(unittest.TestCase):
    @pytest.mark.parametrize("a", [1])
    def test_all(self, a=1): assert f(a) == 2
""",
    "a fixture in a TestCase": """
import pytest, unittest
class F(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def prepare(self): self.value = 1
    def test_all(self): assert f(self.value) == 2
""",
    "a fixture that needs itself": """
import pytest
@pytest.fixture
def value(value): return value
def test_all(value): assert f(value) == 2
""",
    "what pytest has and the worker has not": """
import pytest
def test_all():
    with pytest.warns(UserWarning):
        f(1)
""",
    "the method of an object": """
class Checks:
    def check(self): assert f(1) == 2
test_one = Checks().check
def test_two(): assert f(1) == 2
""",
    "a condition after the program was asked": """
import pytest
try: R = f(3)
except ValueError: R = 0
@pytest.mark.skipif(R != 6, reason="no")
def test_a(): assert f(1) == 2
def test_b(): assert f(1) == 2
""",
    "what is missing, on a branch that some programs never reach": """
import pytest
def test_a():
    if f(1) != 2:
        pytest.xfail("no")
    assert f(2) == 4
""",
}
