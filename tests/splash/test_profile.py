"""Lengths of phases, worked by hand."""

import unittest

from profile import all_threads


class Lengths(unittest.TestCase):
    def near(self, lengths: list[float], expected: list[float]) -> None:
        for one, other in zip(lengths, expected, strict=True):
            self.assertAlmostEqual(one, other)

    def test_serial_phases_stay_and_others_are_those_of_all_threads(self) -> None:
        # Four threads: 2 of 10 alone, and 2 of each thread's 8.
        self.near(all_threads([1.0, 1.0, 2.0], 10.0, 0.2), [1.0, 1.0, 8.0])

    def test_phase_at_the_border_is_both(self) -> None:
        self.near(all_threads([3.0, 1.0], 10.0, 0.2), [6.0, 4.0])

    def test_without_serial_share_all_are_multiplied(self) -> None:
        self.near(all_threads([1.0, 1.5], 10.0, 0.0), [4.0, 6.0])


if __name__ == "__main__":
    unittest.main()
