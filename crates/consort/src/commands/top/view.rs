//! The screen of `consort top`: the chip with one letter per PU, and the threads.

use crate::commands::daemon::{CoreLine, DaemonStatus, ThreadLine};
use crate::output::count;
use consort_core::escape_invisible;
use ratatui::backend::TestBackend;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use ratatui::{Frame, Terminal};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    Threads,
    Help,
    Why(String),
}

pub(super) struct TopView {
    status: DaemonStatus,
    table: TableState,
    pub(super) panel: Panel,
    /// True while later turns are not shown.
    pub(super) frozen: bool,
    /// The policy that is being typed.
    pub(super) typing: Option<String>,
    pub(super) message: String,
}

const HELP: &str = "\
up, down, k, j   choose a thread
enter            show why it is placed there
d                stop managing its program
p                switch to another policy
space            freeze and unfreeze the view
esc              back to the threads
q                leave (the daemon continues)";

/// Characters of a bar.
const BAR: usize = 16;

impl TopView {
    pub(super) fn new(status: DaemonStatus) -> Self {
        let mut view = Self {
            status,
            table: TableState::default().with_selected(0),
            panel: Panel::Threads,
            frozen: false,
            typing: None,
            message: String::new(),
        };
        view.sort();
        view
    }

    /// Shows a new status; the chosen thread stays chosen.
    pub(super) fn renew(&mut self, status: DaemonStatus) {
        let chosen = self.selected().map(|thread| thread.tid);
        self.status = status;
        self.sort();
        let at = self
            .status
            .threads
            .iter()
            .position(|t| Some(t.tid) == chosen);
        self.table.select(Some(at.unwrap_or(0)));
    }

    /// Sorts the threads, the busiest first.
    fn sort(&mut self) {
        let threads = &mut self.status.threads;
        threads.sort_by(|a, b| b.cpu_share.total_cmp(&a.cpu_share).then(a.tid.cmp(&b.tid)));
    }

    pub(super) fn selected(&self) -> Option<&ThreadLine> {
        self.status.threads.get(self.table.selected()?)
    }

    pub(super) fn select(&mut self, by: isize) {
        let last = self.status.threads.len().saturating_sub(1);
        let at = self.table.selected().unwrap_or(0);
        self.table
            .select(Some(at.saturating_add_signed(by).min(last)));
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let all = frame.area();
        let chip = chip_lines(&self.status, all.width);
        // Threads keep half of the screen, however large the chip is.
        let chip_rows = (chip.len() as u16 + 1).min(all.height / 2);
        let parts = [
            Constraint::Length(3),
            Constraint::Length(chip_rows),
            Constraint::Min(3),
            Constraint::Length(1),
        ];
        let [head, middle, below, foot] = Layout::vertical(parts).areas(all);
        frame.render_widget(Paragraph::new(self.head()), head);
        let mut lines = vec![Line::from(LEGEND).dim()];
        lines.extend(chip);
        frame.render_widget(Paragraph::new(lines), middle);
        self.draw_threads(frame, below);
        let panel = match &self.panel {
            Panel::Threads => None,
            Panel::Help => Some(("keys", HELP)),
            Panel::Why(text) => Some(("why", text.as_str())),
        };
        if let Some((title, text)) = panel {
            let panel = Paragraph::new(text)
                .wrap(Wrap { trim: false })
                .block(Block::bordered().title(title));
            frame.render_widget(Clear, below);
            frame.render_widget(panel, below);
        }
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    fn head(&self) -> Vec<Line<'static>> {
        let s = &self.status;
        let own = 100.0 * s.own_cpu_share;
        vec![
            Line::from(vec![
                Span::from("consort ").bold(),
                Span::from(format!("policy {} ", s.policy)).fg(Color::Cyan),
                Span::from(format!("tier {}, quantum {:.0} ms, ", s.tier, s.quantum_ms)),
                Span::from(format!("takes {own:.2} % of a PU")),
                Span::from(if self.frozen { "  frozen" } else { "" }).bold(),
            ]),
            Line::from(format!(
                "{}, {}; {}, {}, {} undone; up {:.0} s",
                count(s.programs.len(), "program"),
                count(s.threads.len(), "thread"),
                count(s.plans as usize, "plan"),
                count(s.moves as usize, "move"),
                s.undone,
                s.uptime_s,
            )),
            Line::from(if s.verdict.text.is_empty() {
                s.policy_reason.clone()
            } else {
                s.verdict.text.clone()
            })
            .dim(),
        ]
    }

    fn draw_threads(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let heads = ["thread", "name", "CPU %", "class", "PU", "cycles", "why"];
        let header = Row::new(heads).style(Style::new().bold());
        let rows = self.status.threads.iter().map(|thread| {
            Row::new([
                Cell::from(format!("{:>7}", thread.tid)),
                Cell::from(escape_invisible(&thread.name).into_owned()),
                Cell::from(format!("{:>5.0}", 100.0 * thread.cpu_share)),
                Cell::from(thread.class.clone()),
                Cell::from(thread.last_pu.map_or(String::new(), |pu| pu.to_string())),
                Cell::from(bar(thread)),
                Cell::from(thread.chosen.clone()),
            ])
        });
        let widths = [
            Constraint::Length(8),
            Constraint::Length(15),
            Constraint::Length(5),
            Constraint::Length(7),
            Constraint::Length(4),
            Constraint::Length(BAR as u16),
            Constraint::Min(10),
        ];
        let table = Table::new(rows, widths)
            .header(header)
            .row_highlight_style(Style::new().reversed());
        frame.render_stateful_widget(table, area, &mut self.table);
    }

    fn foot(&self) -> Line<'static> {
        match &self.typing {
            Some(typed) => Line::from(format!("policy: {typed}_")).bold(),
            None if self.message.is_empty() => {
                Line::from("? keys  enter why  p policy  d detach  q leave").dim()
            }
            None => Line::from(self.message.clone()),
        }
    }
}

/// The cycle stack as a bar: the first letter of each component, as wide as its share.
fn bar(thread: &ThreadLine) -> Line<'static> {
    let colours = [
        Color::Green,
        Color::Cyan,
        Color::Magenta,
        Color::Yellow,
        Color::Blue,
        Color::Red,
    ];
    let mut spans = Vec::new();
    let (mut from, mut drawn) = (0.0, 0);
    for (number, (name, share)) in thread.stack.iter().enumerate() {
        from += share.clamp(0.0, 1.0);
        let end = ((from * BAR as f64).round() as usize).min(BAR);
        let letter = name.chars().next().unwrap_or('?');
        let text: String = (drawn..end).map(|_| letter).collect();
        drawn = drawn.max(end);
        spans.push(Span::from(text).fg(colours[number % colours.len()]));
    }
    Line::from(spans)
}

/// The view as plain text.
pub(super) fn as_text(status: &DaemonStatus, width: u16, height: u16) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let mut view = TopView::new(status.clone());
    let Ok(_) = terminal.draw(|frame| view.draw(frame));
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    for line in buffer.content().chunks(usize::from(width)) {
        let line: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns the letter and the colour for the class of a PU's occupant.
fn letter(class: &str) -> (char, Style) {
    let (letter, colour) = match class {
        "fp" => ('F', Color::Cyan),
        "int" => ('I', Color::Green),
        "memory" => ('M', Color::Magenta),
        "mixed" => ('X', Color::Yellow),
        "unknown" => ('?', Color::Yellow),
        "blocked" => ('b', Color::DarkGray),
        _ => ('·', Color::DarkGray),
    };
    (letter, Style::new().fg(colour))
}

/// Legend of the letters.
const LEGEND: &str = "F floating point  I integer  M memory  X mixed  ? unknown  b blocked  · none";

/// The busiest thread that was seen on each PU.
fn occupants(status: &DaemonStatus) -> BTreeMap<u32, &ThreadLine> {
    let mut busiest: BTreeMap<u32, &ThreadLine> = BTreeMap::new();
    for thread in &status.threads {
        let Some(pu) = thread.last_pu else {
            continue;
        };
        let entry = busiest.entry(pu).or_insert(thread);
        if thread.cpu_share > entry.cpu_share {
            *entry = thread;
        }
    }
    busiest
}

/// Characters of a package's label.
const LABEL: u16 = 5;

/// Lines that the chip takes.
pub(super) fn chip_row_count(status: &DaemonStatus, width: u16) -> u16 {
    chip_lines(status, width).len() as u16
}

/// The chip as lines of a given width.
fn chip_lines(status: &DaemonStatus, width: u16) -> Vec<Line<'static>> {
    let occupants = occupants(status);
    let mut packages: BTreeMap<u32, Vec<&CoreLine>> = BTreeMap::new();
    for core in &status.cores {
        packages.entry(core.package).or_default().push(core);
    }
    // A core takes a letter per PU, and a blank.
    let most = { status.cores.iter() }.map(|core| core.pus.len()).max();
    let core_width = most.unwrap_or(1) as u16 + 1;
    let per_line = usize::from(width.saturating_sub(LABEL) / core_width).max(1);
    let mut all = Vec::new();
    for (package, cores) in packages {
        for (number, chunk) in cores.chunks(per_line).enumerate() {
            let label = match number {
                0 => format!("{:<5}", format!("P{package}")),
                _ => " ".repeat(usize::from(LABEL)),
            };
            let mut spans = vec![Span::from(label).dim()];
            for core in chunk {
                spans.extend(core.pus.iter().map(|pu| {
                    let class = occupants.get(pu).map_or("", |t| t.class.as_str());
                    let (letter, style) = letter(class);
                    Span::styled(letter.to_string(), style)
                }));
                spans.push(Span::from(" "));
            }
            all.push(Line::from(spans));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::daemon::CoreLine;
    use serde_json::json;

    fn status(packages: u32, cores: u32, ways: u32, threads: u32) -> DaemonStatus {
        let text = json!({
            "pid": 7, "version": "0.1.0", "uptime_s": 61.0, "policy": "workover",
            "policy_requested": "auto", "policy_reason": "2 PUs share a core",
            "tier": "sampling", "quantum_ms": 1000.0, "plans": 60, "moves": 12, "nudges": 20,
            "undone": 1, "own_cpu_s": 0.3, "own_cpu_share": 0.005, "cores": [], "programs": [],
            "threads": [], "warnings": []
        });
        let mut status: DaemonStatus = serde_json::from_value(text).unwrap();
        status.cores = (0..packages * cores)
            .map(|core| CoreLine {
                package: core / cores,
                pus: (0..ways).map(|way| core * ways + way).collect(),
            })
            .collect();
        let classes = ["fp", "int", "memory", "mixed", "blocked"];
        status.threads = (0..threads)
            .map(|n| {
                let thread = json!({
                    "tid": 100 + n, "pid": 100, "program": 100, "name": format!("worker-{n}"),
                    "cpu_share": 1.0 / f64::from(n + 1), "class": classes[n as usize % 5],
                    "fp_usage": 0.2, "memory_stall": 0.1,
                    "stack": { "base": 0.5, "memory": 0.3, "unit": 0.2 },
                    "last_pu": n, "managed": true, "cpus": n.to_string(),
                    "chosen": "with thread 3: little in common"
                });
                serde_json::from_value(thread).unwrap()
            })
            .collect();
        status
    }

    #[test]
    fn a_small_chip_on_a_small_terminal() {
        insta::assert_snapshot!(as_text(&status(1, 4, 2, 6), 80, 24));
    }

    #[test]
    fn large_chip_leaves_room_for_threads() {
        let text = as_text(&status(2, 64, 2, 256), 80, 24);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn chosen_thread_stays_chosen() {
        let mut view = TopView::new(status(1, 4, 2, 6));
        view.select(2);
        let chosen = view.selected().unwrap().tid;
        let mut next = status(1, 4, 2, 6);
        next.threads[5].cpu_share = 2.0;
        view.renew(next);
        assert_eq!(view.selected().unwrap().tid, chosen);
        view.select(100);
        assert_eq!(view.table.selected(), Some(5));
        view.renew(status(1, 4, 2, 0));
        assert!(view.selected().is_none());
    }
}
