import unittest

from calc import clamp


class Bee(unittest.TestCase):
    def test_bee(self):
        self.assertEqual(clamp(-1, 0, 10), 0)
