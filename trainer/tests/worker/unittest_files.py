"""The same of unittest. Each asks for f(1), f(2) and f(3)."""

FILES = {
    "unittest": """
import unittest
class F(unittest.TestCase):
    def setUp(self): self.values = [1, 2, 3]
    def test_all(self): self.assertEqual([f(x) for x in self.values], [2, 4, 6])
    def test_close(self): self.assertAlmostEqual(f(1), 2.00000001)
    def test_raises(self):
        with self.assertRaises(ZeroDivisionError): f(2) / 0
if __name__ == "__main__":
    unittest.main()
""",
    "unittest, inherited and shared": """
import unittest
class Base:
    def test_value(self): self.assertEqual(f(self.value), 2 * self.value)
class One(Base, unittest.TestCase):
    value = 1
class Two(One):
    value = 2
class Three(One):
    @classmethod
    def setUpClass(cls): cls.value = 3
""",
    "unittest, set-up of the file, clean-ups": """
import unittest
state = []
def setUpModule(): state.append(1)
class F(unittest.TestCase):
    def setUp(self):
        self.addCleanup(state.append, 2)
    def tearDown(self): self.assertEqual(state[0], 1)
    def test_a(self): self.assertEqual((f(1), f(2)), (2, 4))
class G(unittest.TestCase):
    def test_b(self):
        self.assertEqual(state, [1, 2])
        self.assertEqual(f(3), 6)
""",
    "unittest, subtests": """
import unittest
class F(unittest.TestCase):
    def test_all(self):
        for value in (1, 2, 3):
            with self.subTest(value=value):
                self.assertEqual(f(value), 2 * value)
""",
    "unittest, skips and expected failures": """
import unittest
class F(unittest.TestCase):
    def test_all(self): self.assertEqual([f(1), f(2), f(3)], [2, 4, 6])
    @unittest.skip("no")
    def test_a(self): self.fail()
    @unittest.skipIf(True, "no")
    def test_b(self): self.fail()
    @unittest.expectedFailure
    def test_c(self): self.assertEqual(1, 2)
    def test_d(self): self.skipTest("no")
    def test_e(self): raise unittest.SkipTest("no")
@unittest.skip("no")
class G(unittest.TestCase):
    def test_a(self): self.fail()
""",
    "unittest, a success that was not expected": """
import unittest
class F(unittest.TestCase):
    @unittest.expectedFailure
    def test_all(self): self.assertNotEqual([f(1), f(2), f(3)], [2, 4, 6])
    def test_other(self): self.assertEqual(f(1), 2)
""",
    "unittest, a tear-down that fails": """
import unittest
class F(unittest.TestCase):
    def test_all(self): self.seen = [f(1), f(2), f(3)]
    def tearDown(self): self.assertEqual(self.seen, [2, 4, 6])
""",
    "unittest, a clean-up that fails": """
import unittest
class F(unittest.TestCase):
    def test_all(self):
        self.addCleanup(lambda: self.assertEqual([f(1), f(2), f(3)], [2, 4, 6]))
""",
    "unittest, runTest": """
import unittest
class F(unittest.TestCase):
    def runTest(self): self.assertEqual([f(1), f(2), f(3)], [2, 4, 6])
""",
    "unittest, pytest's skips": """
import pytest, unittest
class F(unittest.TestCase):
    def test_all(self): self.assertEqual([f(1), f(2), f(3)], [2, 4, 6])
    def test_b(self): pytest.skip("no")
class G(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no")
    def test_c(self): self.fail()
""",
}
