//! Progress on stderr, on a terminal only: the line of `consort run`, and bars.

use crate::output::count;
use consort_core::{Class, ControlTurn};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use nix::sys::signal::{SigSet, SigmaskHow};
use nix::sys::termios::{LocalFlags, tcgetattr};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Time after which a bar is redrawn although nothing was done, so that it never looks stuck.
const TICK: Duration = Duration::from_millis(500);

/// One line on stderr that is redrawn each quantum.
pub(crate) struct ProgressLine {
    bar: ProgressBar,
    policy: String,
    moves: usize,
}

/// Condition under which the line of progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressVisibility {
    /// Never shown.
    Never,
    /// Shown if the command neither reads nor writes the terminal, which cannot be shared.
    Unshared,
    /// Shown wherever stderr is a terminal.
    Requested,
}

impl ProgressVisibility {
    fn is_shown(self, stdout_taken: bool) -> bool {
        let shared = || io::stdin().is_terminal() || stdout_taken || io::stdout().is_terminal();
        match self {
            Self::Never => false,
            Self::Unshared => !shared(),
            Self::Requested => true,
        }
    }
}

impl ProgressLine {
    /// The line is hidden if stderr is no terminal. With `stdout_taken`, the command's output goes to
    /// stderr.
    pub(crate) fn new(line: ProgressVisibility, stdout_taken: bool, policy: &str) -> Self {
        let target = if line.is_shown(stdout_taken) {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("consort {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            policy: policy.to_owned(),
            moves: 0,
        }
    }

    pub(crate) fn set_policy(&mut self, policy: &str) {
        policy.clone_into(&mut self.policy);
    }

    pub(crate) fn show(&mut self, turn: &ControlTurn) {
        self.moves += turn.enacted.moved.len();
        if self.bar.is_hidden() {
            return;
        }
        // A program has switched the terminal to reading keys one by one or unseen, as programs do that
        // fill the screen, edit lines or ask for passwords.
        let usual = LocalFlags::ICANON | LocalFlags::ECHO;
        if tcgetattr(io::stderr()).is_ok_and(|mode| !mode.local_flags.contains(usual)) {
            // For good, and without a trace: the screen belongs to that program now.
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
            return;
        }
        let threads = &turn.observation.threads;
        let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
        for thread in threads {
            let class = turn.observation.class_of(thread);
            *classes.entry(class).or_default() += 1;
        }
        let classes: Vec<String> = { classes.iter() }
            .map(|(class, count)| format!("{count} {class}"))
            .collect();
        self.bar.set_message(format!(
            "{}: {} ({}), {}",
            self.policy,
            count(threads.len(), "thread"),
            classes.join(", "),
            count(self.moves, "move")
        ));
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for a known number of like things, on a terminal only.
pub(crate) struct ProgressMeter(ProgressBar);

pub(crate) fn start_meter(what: impl Into<Cow<'static, str>>) -> ProgressMeter {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {wide_bar} {done} {msg}{left}") {
        bar.set_style(
            style
                .with_key("done", write_done)
                .with_key("left", write_left),
        );
    }
    bar.set_message(what);
    start_ticking(&bar);
    ProgressMeter(bar)
}

fn write_done(state: &ProgressState, out: &mut dyn fmt::Write) {
    let _ = match state.len().filter(|&len| len > 0) {
        Some(len) => write!(out, "{}/{len}", state.pos()),
        None => write!(out, "{}/?", state.pos()),
    };
}

/// The estimate of the time left, as soon as something is done that it can follow from.
fn write_left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        let left = HumanDuration(state.eta());
        let _ = write!(out, ", about {left} left");
    }
}

/// Starts the thread that redraws a bar. It takes no signals: a live machine waits for those of its
/// command, and would never see one that this thread had received.
fn start_ticking(bar: &ProgressBar) {
    if bar.is_hidden() {
        return;
    }
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK);
    bar.enable_steady_tick(TICK);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
}

/// A bar of instructions up to `limit`, or a count if the total is unknown. With `stdout_taken`, the
/// command's output goes to stderr.
pub(crate) fn start_instruction_meter(limit: Option<u64>, stdout_taken: bool) -> ProgressMeter {
    let target = if ProgressVisibility::Unshared.is_shown(stdout_taken) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(limit, target);
    let template = match limit {
        Some(_) => "{elapsed} {wide_bar} {human_pos}/{human_len} instructions, {eta} left",
        None => "{elapsed} {human_pos} instructions recorded",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    ProgressMeter(bar)
}

impl ProgressMeter {
    /// True if stderr is a terminal.
    pub(crate) fn is_shown(&self) -> bool {
        !self.0.is_hidden()
    }

    pub(crate) fn set_position(&self, done: u64) {
        self.0.set_position(done);
    }

    pub(crate) fn set_done(&self, done: usize, total: usize) {
        self.0.set_length(total as u64);
        self.0.set_position(done as u64);
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

impl Drop for ProgressMeter {
    /// After an error the line must not stay above the message.
    fn drop(&mut self) {
        self.finish();
    }
}
