import unittest

from calc import clamp


class Sea(unittest.TestCase):
    def test_sea(self):
        self.assertEqual(clamp(-1, 0, 10), -1)
