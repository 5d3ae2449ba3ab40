"""The evaluation, on a meter's lines written by hand."""

import tempfile
import unittest
from pathlib import Path

from summary import COUNTED, count, persistence, time

TWO = """\
total 4000
barrier 0 100
barrier 1 300
barrier 0 1000
barrier 1 0
thread 0 1300
thread 1 500
rest 0 200
rest 1 200
wait 0 2 1 0
lock 0 a 30 1530
lock 1 a 10 510
lock 1 b 40 2040
wait 1 0 0 1
"""


def written(text: str) -> Path:
    """A file with that text."""
    path = Path(tempfile.mkdtemp()) / "lines.txt"
    path.write_text(text)
    return path


class Summary(unittest.TestCase):
    def setUp(self) -> None:
        self.figures = dict(zip(COUNTED, count(written(TWO), 31.0)))

    def near(self, name: str, value: float) -> None:
        self.assertAlmostEqual(self.figures[name], value, msg=name)

    def test_a_stretch_of_one_thread_is_serial(self) -> None:
        self.near("serial_percent", 100 * 1000 / 1800)
        self.near("barriers", 2)
        self.near("spacing_minstr", 800 / 2 / 3 / 1e6)

    def test_imbalance_is_that_of_stretches_that_threads_share(self) -> None:
        # Deviation of 100 and 300, none of 200 and 200; means of 200 each.
        self.near("imbalance", 200 / 2**0.5 / 400)

    def test_all_that_one_thread_executes_alone_is_serial_in_the_whole(self) -> None:
        self.near("whole_serial_percent", 100 * (4000 - 1800 + 1000) / 4000)

    def test_persistence_is_1_for_one_late_thread_and_0_for_turns(self) -> None:
        late, turns = [[90, 110]] * 5, [[90, 110], [110, 90]] * 3
        self.assertAlmostEqual(persistence(late), 1.0)
        self.assertEqual(persistence(turns), 0.0)
        # Sums of 290 and 310 have the variance 200; work drawn anew three times would have 600.
        self.assertAlmostEqual(persistence([[90, 110]] * 2 + [[110, 90]]), 0.0)
        self.assertEqual(persistence([[90, 110]]), 0.0)

    def test_locks_count_by_how_evenly_they_are_taken(self) -> None:
        self.near("locks", 80**2 / (40**2 + 40**2))
        self.near("hold_instr", 51 - 31)
        self.near("locks_per_minstr", 80 / 1800 * 1e6)

    def test_threads_that_meet_unlike_barriers_are_refused(self) -> None:
        with self.assertRaises(ValueError):
            count(written(TWO + "barrier 1 5\n"), 0.0)

    def test_times_are_medians(self) -> None:
        path = written("1 0.5 0.5 90 80 0 0 10\n1 0.75 0.25 20 10 0 0 10\n1 0.5 0.5 40 20 0 0 10\n")
        self.assertEqual(time(path)[:5], [3, 1000, 50, 0.04, 0.02])


if __name__ == "__main__":
    unittest.main()
