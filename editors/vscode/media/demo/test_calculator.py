"""Tests of the calculator. Run them with: python -m unittest"""

import unittest

from calculator import average, spread, total


class CalculatorTest(unittest.TestCase):
    """What the calculator promises."""

    def test_total_adds_all_numbers(self) -> None:
        self.assertEqual(total([1, 2, 3]), 6)

    def test_average_of_equal_numbers_is_that_number(self) -> None:
        self.assertEqual(average([4, 4, 4]), 4)

    def test_average_may_lie_between_two_numbers(self) -> None:
        self.assertEqual(average([1, 2]), 1.5)

    def test_average_of_nothing_is_an_error(self) -> None:
        with self.assertRaises(ValueError):
            average([])

    def test_spread_is_the_distance_from_smallest_to_largest(self) -> None:
        self.assertEqual(spread([3, 9, 5]), 6)


if __name__ == "__main__":
    unittest.main()
