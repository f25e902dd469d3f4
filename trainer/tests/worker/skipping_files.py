"""Files that skip a test over what the program answered: pytest passes a wrong program then, the worker fails it."""

FILES = {
    "the rest of a test": """
import pytest
def test_all():
    if [f(1), f(2), f(3)] != [2, 4, 6]: pytest.skip("no")
def test_other(): pass
""",
    "a test, over an answer that the file has asked for": """
import pytest
R = [f(1), f(2), f(3)]
def test_all():
    if R != [2, 4, 6]: pytest.skip("no")
def test_other(): pass
""",
    "a test, over what a wider fixture has asked for": """
import pytest
@pytest.fixture(scope="module")
def answers(): return [f(1), f(2), f(3)]
def test_first(answers): assert answers
def test_all(answers):
    if answers != [2, 4, 6]: pytest.skip("no")
""",
    "a class": """
import pytest
class TestF:
    @classmethod
    def setup_class(cls):
        if [f(1), f(2), f(3)] != [2, 4, 6]: pytest.skip("no")
    def test_all(self): pass
def test_other(): pass
""",
    "a file": """
import pytest
def setup_module():
    if [f(1), f(2), f(3)] != [2, 4, 6]: pytest.skip("no")
def test_all(): pass
""",
    "no rows": """
import pytest
ROWS = [1] if [f(1), f(2), f(3)] == [2, 4, 6] else []
@pytest.mark.parametrize("row", ROWS)
def test_all(row): pass
def test_other(): pass
""",
    "uneven rows": """
import pytest
ROWS = [(1, 2)] if [f(1), f(2), f(3)] == [2, 4, 6] else [(1,)]
@pytest.mark.parametrize("a, b", ROWS)
def test_all(a, b): pass
""",
    "unittest": """
import unittest
class F(unittest.TestCase):
    def test_all(self):
        if [f(1), f(2), f(3)] != [2, 4, 6]: self.skipTest("no")
    def test_other(self): pass
""",
    "unittest, a class": """
import unittest
class F(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if [f(1), f(2), f(3)] != [2, 4, 6]: raise unittest.SkipTest("no")
    def test_all(self): pass
class G(unittest.TestCase):
    def test_other(self): pass
""",
}
