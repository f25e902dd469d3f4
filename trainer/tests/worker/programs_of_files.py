"""The programs that each of the test files is run with."""

# A right `f` doubles, and is asked for 1, 2 and 3 only; each wrong one differs from it in one place.
RIGHT = "def f(x): return 2 * x"
WRONG = (
    "def f(x): return 2",
    "def f(x): return 2 * x if x != 2 else 5",
    "def f(x): return 2 * x if x != 3 else 7",
    "def f(x): raise ValueError(x)",
)
