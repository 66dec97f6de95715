"""What mean() comes to."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from figures import mean


class TestMean(unittest.TestCase):
    def test_the_mean_is_the_sum_by_the_count(self) -> None:
        self.assertEqual(mean([1, 2, 6]), 3)
