//! Choice of the instructions that are recorded: all of them, or windows.

use std::fmt::Write;

use consort_ops::trace::TraceSampling;

use super::RecordedPart;

/// Choice of the instructions that are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WindowChoice {
    /// All of them.
    #[default]
    All,
    /// Windows at a fixed distance.
    Fixed(TraceSampling),
    /// Windows of 500,000 instructions whose distance grows with the program's length: the first 9
    /// million instructions are recorded without a gap, then the distance doubles each time that
    /// there are 17 windows, up to 48 million. The windows that do not fit the new distance are
    /// dropped, so that those of a profile are evenly spread whatever the length: at least 9 as soon
    /// as there is a gap.
    Growing,
}

/// Instructions of a growing plan's windows, and of what warms caches for each.
const WINDOW: u64 = 500_000;
/// End of the first window of the grid: the windows at a distance of D end at FIRST + n·D.
const FIRST: u64 = 2 * WINDOW;

/// Windows at one distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WindowStep {
    /// Instructions from the end of a window to the end of the next.
    every: u64,
    /// Number of windows; without meaning in the last step.
    windows: u64,
}

const fn step(every: u64, windows: u64) -> WindowStep {
    WindowStep {
        every: every * WINDOW,
        windows,
    }
}

/// Steps of a growing plan behind its first two windows. Each ends on the grid of the next, with 17
/// windows that fit its own distance, or 25 if the next distance is three times as long.
const GROWING: [WindowStep; 7] = [
    step(1, 16),
    step(2, 8),
    step(4, 8),
    step(8, 8),
    step(16, 8),
    step(32, 16),
    step(96, 0),
];

/// Windows of a recording, in their order.
#[derive(Debug, Clone)]
pub(crate) struct WindowPlan {
    skips: bool,
    warm: u64,
    window: u64,
    steps: Vec<WindowStep>,
}

/// Place of a window in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowPlace {
    step: usize,
    /// Its end, in instructions behind the skipped part.
    end: u64,
}

impl WindowPlan {
    /// The plan of a recording; `None` if it has no windows.
    pub(crate) fn new(extent: RecordedPart) -> Option<Self> {
        let skips = extent.skip > 0;
        match extent.windows {
            WindowChoice::All => None,
            WindowChoice::Fixed(sampling) => Some(Self {
                skips,
                warm: sampling.warm,
                window: sampling.window,
                steps: vec![WindowStep {
                    every: sampling.every,
                    windows: 0,
                }],
            }),
            WindowChoice::Growing => {
                // A program's first instructions count as they are. Behind a skipped part they
                // only warm caches, which would otherwise be as cold as they are at no other time.
                let first = if skips { step(2, 1) } else { step(1, 2) };
                let steps = std::iter::once(first).chain(GROWING).collect();
                Some(Self {
                    skips,
                    warm: WINDOW,
                    window: WINDOW,
                    steps,
                })
            }
        }
    }

    /// The plan as options of the plugin.
    pub(super) fn to_plugin_options(&self) -> String {
        let list = |number: fn(&WindowStep) -> u64| {
            let numbers = self.steps.iter().map(|step| number(step).to_string());
            numbers.collect::<Vec<_>>().join("+")
        };
        let mut options = format!(",warm={},window={}", self.warm, self.window);
        // Writing to a string does not fail.
        let _ = write!(options, ",every={}", list(|step| step.every));
        let _ = write!(options, ",windows={}", list(|step| step.windows));
        options
    }

    /// True if its distance grows, so that some of its windows are dropped later.
    pub(crate) const fn is_growing(&self) -> bool {
        self.steps.len() > 1
    }

    /// True if a window is recorded from the first instruction on.
    pub(crate) fn begins_with_window(&self) -> bool {
        !self.skips && self.stages(self.steps[0]) == 1
    }

    /// Stages per window in a step: those of no length are passed over.
    fn stages(&self, step: WindowStep) -> u64 {
        let gap = step.every - self.window;
        1 + u64::from(self.warm.min(gap) > 0) + u64::from(gap > self.warm)
    }

    /// The place of the window that is the stage with this number.
    pub(crate) fn locate_window(&self, stage: u64) -> WindowPlace {
        // The first stage is the skipped part. Without one, the first period has no skipping.
        let first_skips = self.steps[0].every - self.window > self.warm;
        let mut stage = match self.skips {
            true => stage.saturating_sub(1),
            false => stage + u64::from(first_skips),
        };
        let mut end = 0;
        let last = self.steps.len() - 1;
        for (number, step) in self.steps.iter().enumerate() {
            let windows = stage / self.stages(*step);
            if number == last || windows < step.windows {
                end += (windows + 1) * step.every;
                return WindowPlace { step: number, end };
            }
            stage -= step.windows * self.stages(*step);
            end += step.windows * step.every;
        }
        WindowPlace { step: last, end }
    }

    /// True if a window stays when another one, later in the plan, has been reached.
    pub(crate) fn keeps(&self, window: WindowPlace, reached: WindowPlace) -> bool {
        let every = self.steps[reached.step].every;
        !self.is_growing() || !self.has_gap(reached) || window.end % every == FIRST % every
    }

    /// True if anything was not recorded between the first window and this one.
    fn has_gap(&self, window: WindowPlace) -> bool {
        let recorded = { self.steps[..=window.step].iter() }.skip(usize::from(self.skips));
        !self.is_growing() || { recorded }.any(|step| step.every > self.window)
    }

    /// Number of windows that stay when the stage with this number is the last window.
    pub(crate) fn kept_windows(&self, last: u64) -> u64 {
        let reached = self.locate_window(last);
        let every = self.steps[reached.step].every;
        let first = match self.is_growing() {
            false => every,
            true if self.skips || self.has_gap(reached) => FIRST,
            true => WINDOW,
        };
        (reached.end - first) / every + 1
    }

    /// True if no window is dropped from here on.
    pub(crate) const fn is_final(&self, reached: WindowPlace) -> bool {
        reached.step + 1 == self.steps.len()
    }

    /// The windows that stay when this is the last one; `None` if they are all that was executed.
    pub(crate) fn sampling(&self, last: WindowPlace) -> Option<TraceSampling> {
        let every = self.steps[last.step].every;
        self.has_gap(last).then(|| TraceSampling {
            every,
            window: self.window,
            warm: self.warm.min(every - self.window),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing(skip: u64) -> WindowPlan {
        let windows = WindowChoice::Growing;
        WindowPlan::new(RecordedPart {
            skip,
            windows,
            ..RecordedPart::default()
        })
        .unwrap()
    }

    /// Places of all windows that end within so many instructions, as the plugin makes them.
    fn places(plan: &WindowPlan, length: u64) -> Vec<WindowPlace> {
        let mut stage = u64::from(plan.skips);
        let mut places = Vec::new();
        let mut end = 0;
        for (number, step) in plan.steps.iter().enumerate() {
            for window in 0.. {
                let is_last = number + 1 == plan.steps.len();
                end += step.every;
                if end > length || (window == step.windows && !is_last) {
                    end -= step.every;
                    break;
                }
                stage += plan.stages(*step);
                let place = plan.locate_window(stage - 1);
                assert_eq!(place, WindowPlace { step: number, end });
                places.push(place);
            }
        }
        places
    }

    fn kept_ends(plan: &WindowPlan, length: u64) -> Vec<u64> {
        let places = places(plan, length);
        let last = *places.last().unwrap();
        let kept = places.iter().filter(|place| plan.keeps(**place, last));
        let ends: Vec<_> = kept.map(|place| place.end).collect();
        let stage = (0..).find(|stage| plan.locate_window(*stage) == last);
        assert_eq!(plan.kept_windows(stage.unwrap()), ends.len() as u64);
        ends
    }

    #[test]
    fn windows_are_even_for_any_length() {
        for skip in [0, 1000] {
            let plan = growing(skip);
            for length in [10, 17, 18, 33, 38, 64, 65, 130, 250, 384, 385, 500, 3000] {
                let ends = kept_ends(&plan, length * 1_000_000);
                let distance = ends[1] - ends[0];
                assert!(ends.windows(2).all(|pair| pair[1] - pair[0] == distance));
                assert!(ends.len() >= 9, "{length}: {ends:?}");
                assert!(ends.len() <= 25 || distance == 48_000_000, "{length}");
                assert_eq!(ends[0], FIRST);
            }
        }
    }

    #[test]
    fn short_program_is_recorded_as_a_whole() {
        let plan = growing(0);
        assert!(plan.begins_with_window());
        let all = places(&plan, 9_000_000);
        assert_eq!(kept_ends(&plan, 9_000_000).len(), 18);
        assert_eq!(plan.sampling(all[17]), None);
        let beyond = places(&plan, 10_000_000);
        let sampling = plan.sampling(*beyond.last().unwrap()).unwrap();
        assert_eq!(sampling.every, 1_000_000);
        // The first window of all is the program's start-up, which is on no grid.
        assert_eq!(kept_ends(&plan, 10_000_000)[0], 1_000_000);
    }

    #[test]
    fn part_behind_a_skip_warms_first() {
        let plan = growing(5);
        assert!(!plan.begins_with_window());
        // Skipped, warming, window.
        assert_eq!(plan.locate_window(2).end, FIRST);
        assert_eq!(plan.sampling(plan.locate_window(2)), None);
    }

    #[test]
    fn fixed_windows_are_all_kept() {
        let sampling = TraceSampling {
            every: 3_000,
            window: 1_000,
            warm: 500,
        };
        for skip in [0, 7] {
            let extent = RecordedPart {
                skip,
                windows: WindowChoice::Fixed(sampling),
                ..RecordedPart::default()
            };
            let plan = WindowPlan::new(extent).unwrap();
            // Without a skipped part the first period begins with warming.
            let first = plan.locate_window(if skip > 0 { 2 } else { 1 });
            let second = plan.locate_window(if skip > 0 { 5 } else { 4 });
            assert_eq!(second.end - first.end, 3_000);
            assert!(plan.keeps(first, second) && plan.is_final(first));
            assert_eq!(plan.sampling(second), Some(sampling));
        }
    }
}
