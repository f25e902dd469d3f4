"""Test files of the kinds that data sets publish, which pytest runs and the worker must run, too.

Each asks for f(1), f(2) and f(3).
"""

FILES = {
    "functions": """
def test_one(): assert f(1) == 2
def test_two(): assert f(2) == 4 and f(3) == 6
""",
    "a class": """
class TestF:
    def test_one(self): assert f(1) == 2
    def test_two(self): assert f(2) == 4 and f(3) == 6
""",
    "inherited methods": """
class Base:
    def test_one(self): assert f(1) == 2
    def test_two(self): assert f(self.value) == self.wanted
class TestF(Base):
    value, wanted = 2, 4
class TestG(Base):
    value, wanted = 3, 6
""",
    "inner classes": """
class TestOuter:
    def test_one(self): assert f(1) == 2
    class TestInner:
        def test_two(self): assert f(2) == 4
        class TestInnermost:
            def test_three(self): assert f(3) == 6
""",
    "class and static methods": """
class TestF:
    value = 1
    @classmethod
    def test_one(cls): assert f(cls.value) == 2
    @staticmethod
    def test_two(): assert f(2) == 4 and f(3) == 6
""",
    "assigned functions": """
import functools
def check(x, wanted): assert f(x) == wanted
def make(x):
    def inner(): assert f(x) == 2 * x
    return inner
test_one = functools.partial(check, 1, wanted=2)
test_two = make(2)
class TestF:
    test_three = lambda self: check(3, 6)
""",
    "what only looks like tests": """
class TestData:
    def __init__(self, value): self.value = value
    def test_never(self): assert False
class Testing:
    __test__ = False
    def test_never(self): assert False
def test_not(): assert False
test_not.__test__ = False
testing = TestData(3)
def test_one(): assert [f(1), f(2), f(testing.value)] == [2, 4, 6]
""",
    "loops": """
def test_all():
    for value, wanted in [(1, 2), (2, 4), (3, 6)]:
        assert f(value) == wanted, value
""",
    "raises and approx": """
import pytest
def test_all():
    assert f(1) == pytest.approx(2.0000001)
    assert [f(2), f(3)] == pytest.approx([4, 6])
    with pytest.raises(ZeroDivisionError) as caught:
        f(1) / 0
    assert "zero" in str(caught.value)
    with pytest.raises((TypeError, ZeroDivisionError), match="zero"):
        f(2) / 0
    pytest.raises(ZeroDivisionError, lambda: f(3) / 0)
""",
    "only fail": """
import pytest
def test_all():
    if [f(1), f(2), f(3)] != [2, 4, 6]:
        pytest.fail("wrong")
""",
    "parametrize, names in a text": """
import pytest
@pytest.mark.parametrize("value, wanted", [(1, 2), (2, 4), (3, 6)])
def test_all(value, wanted): assert f(value) == wanted
""",
    "parametrize, one name": """
import pytest
@pytest.mark.parametrize("value", [1, 2, 3])
def test_all(value): assert f(value) == 2 * value
""",
    "parametrize, one name whose values are tuples": """
import pytest
@pytest.mark.parametrize("pair", [(1, 2), (2, 4), (3, 6)])
def test_all(pair): assert f(pair[0]) == pair[1]
""",
    "parametrize, a list of one name": """
import pytest
@pytest.mark.parametrize(["value"], [(1,), (2,), [3]])
def test_all(value): assert f(value) == 2 * value
""",
    "parametrize, by keyword, with param and ids": """
import pytest
ROWS = [pytest.param(1, 2, id="one"), (2, 4), (3, 6)]
@pytest.mark.parametrize(argnames=("value", "wanted"), argvalues=ROWS, ids=["a", "b", "c"])
def test_all(value, wanted): assert f(value) == wanted
""",
    "parametrize, stacked and of a class": """
import pytest
@pytest.mark.parametrize("value", [1, 2, 3])
class TestF:
    @pytest.mark.parametrize("factor", [2])
    def test_all(self, factor, value): assert f(value) == factor * value
    def test_again(self, value): assert f(value) % 2 == 0
""",
    "parametrize, a generator": """
import pytest
@pytest.mark.parametrize("value", (x for x in range(1, 4)))
def test_all(value): assert f(value) == 2 * value
""",
    "parametrize, indirect": """
import pytest
@pytest.fixture
def doubled(request): return request.param, 2 * request.param
@pytest.mark.parametrize("doubled", [1, 2, 3], indirect=True)
def test_all(doubled): assert f(doubled[0]) == doubled[1]
""",
    "parametrize over a fixture's name": """
import pytest
@pytest.fixture
def value(): return 77
@pytest.fixture
def pair(value): return value, 2 * value
@pytest.mark.parametrize("value", [1, 2, 3])
def test_all(pair): assert f(pair[0]) == pair[1]
""",
    "marks of the file, and others": """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("value", [1, 2, 3])]
@pytest.mark.timeout(5)
@pytest.mark.filterwarnings("ignore")
def test_all(value): assert f(value) == 2 * value
""",
    "skips": """
import pytest, sys
def test_all(): assert [f(1), f(2), f(3)] == [2, 4, 6]
@pytest.mark.skip
def test_a(): assert False
@pytest.mark.skip(reason="no")
def test_b(): assert False
@pytest.mark.skipif(sys.version_info > (3,), reason="no")
class TestC:
    def test_c(self): assert False
@pytest.mark.skipif(sys.version_info < (3,), reason="no")
def test_d(): assert f(3) == 6
def test_e():
    pytest.skip("before anything is asked")
    assert False
@pytest.mark.parametrize("value", [1, pytest.param(9, marks=pytest.mark.skip)])
def test_f(value): assert f(value) == 2
@pytest.mark.parametrize("value", [])
def test_g(value): assert False
""",
    "fixtures": """
import pytest
@pytest.fixture
def one(): return 1
@pytest.fixture()
def two(one): return one + one
@pytest.fixture(scope="module")
def counted(): return []
@pytest.fixture(name="three")
def fixture_three(one, two): return one + two
def test_all(one, two, three):
    assert (f(one), f(two), f(three)) == (2, 4, 6)
def test_counts(counted):
    counted.append(f(1))
def test_counted(counted):
    assert counted == [2]
""",
    "fixtures that yield": """
import pytest
log = []
@pytest.fixture
def opened():
    log.append("opened")
    yield 3
    log.append("closed")
@pytest.fixture(scope="module", autouse=True)
def shared():
    log.append("shared")
    yield
    assert log == ["shared", "opened", "closed", "opened", "closed"]
def test_one(opened): assert f(opened) == 6
def test_two(opened): assert (f(1), f(2)) == (2, 4)
""",
    "fixtures that would swallow": """
import pytest
@pytest.fixture
def swallowing():
    try:
        yield 1
    except BaseException:
        pass
def test_all(swallowing): assert [f(1), f(2), f(3)] == [2, 4, 6]
""",
    "a fixture that fails in the end": """
import pytest
@pytest.fixture
def strict():
    seen = []
    yield seen
    assert seen == [2, 4, 6]
def test_all(strict): strict.extend(map(f, [1, 2, 3]))
""",
    "a fixture that returns a generator": """
import pytest
@pytest.fixture
def values(): return (x for x in [1, 2, 3])
def test_all(values): assert [f(x) for x in values] == [2, 4, 6]
""",
    "fixtures with params": """
import pytest
@pytest.fixture(params=[1, 2, 3], ids=str)
def value(request): return request.param
def test_all(value): assert f(value) == 2 * value
""",
    "fixtures of a class, automatic ones, usefixtures": """
import pytest
state = {}
@pytest.fixture
def fill(): state["value"] = 3
class TestF:
    @pytest.fixture(autouse=True)
    def prepare(self):
        self.values = [1, 2]
    @pytest.fixture
    def first(self): return self.values[0]
    def test_one(self, first): assert f(first) == 2
    def test_two(self): assert f(self.values[1]) == 4
    @pytest.mark.usefixtures("fill")
    def test_three(self): assert f(state["value"]) == 6
""",
    "request": """
import pytest
ended = []
@pytest.fixture
def value(request):
    request.addfinalizer(lambda: ended.append(1))
    return request.getfixturevalue("other")
@pytest.fixture
def other(): return 3
def test_a(value): assert f(value) == 6
def test_b(): assert ended == [1] and f(1) == 2 and f(2) == 4
""",
    "set-up of the file": """
def setup_module(module): module.values = [1, 2, 3]
def teardown_module(): del globals()["values"]
def test_all(): assert [f(value) for value in values] == [2, 4, 6]
""",
    "set-up of functions": """
state = []
def setup_function(function): state.append(function.__name__)
def teardown_function(function): state.clear()
def test_a(): assert state == ["test_a"] and f(1) == 2
def test_b(): assert state == ["test_b"] and (f(2), f(3)) == (4, 6)
class TestF:
    def test_c(self): assert state == []
""",
    "set-up of a class and its methods": """
class TestF:
    @classmethod
    def setup_class(cls): cls.values = [1, 2]
    @classmethod
    def teardown_class(cls): assert cls.values == [1, 2]
    def setup_method(self, method): self.name = method.__name__
    def teardown_method(self): assert self.name.startswith("test")
    def test_a(self): assert self.name == "test_a" and f(self.values[0]) == 2
    def test_b(self): assert self.name == "test_b" and f(self.values[1]) == 4
class TestG:
    def setup_method(self): self.value = 3
    def test_c(self): assert f(self.value) == 6
""",
    "a tear-down that fails": """
class TestF:
    def setup_method(self): self.seen = []
    def test_all(self): self.seen = [f(1), f(2), f(3)]
    def teardown_method(self): assert self.seen == [2, 4, 6]
""",
    "patches": """
import math
from unittest import mock
@mock.patch("math.floor")
@mock.patch.object(math, "ceil")
def test_all(ceil, floor):
    ceil.return_value, floor.return_value = 3, 1
    assert f(math.floor(9.5)) == 2 and f(2) == 4 and f(math.ceil(9.5)) == 6
class TestF:
    @mock.patch("math.floor", return_value=3)
    def test_three(self, floor): assert f(math.floor(0)) == 6
""",
    "tests behind decorators": """
import functools
def noisy(function):
    @functools.wraps(function)
    def wrapper(*arguments, **named): return function(*arguments, **named)
    return wrapper
@functools.lru_cache
def test_one(): assert f(1) == 2
@noisy
def test_two(): assert f(2) == 4
@noisy
@noisy
def test_three(): assert f(3) == 6
""",
    "what says of itself that it is a test": """
def one(): assert f(1) == 2
one.__test__ = True
class Others:
    __test__ = True
    def test_two(self): assert f(2) == 4
def test_three(): assert f(3) == 6
""",
    "a class that skips itself before anything is asked": """
import pytest
class TestA:
    @classmethod
    def setup_class(cls): pytest.skip("no")
    def test_a(self): assert False
def test_all(): assert [f(1), f(2), f(3)] == [2, 4, 6]
""",
}
