//! The screen of `consort top`: the chip with a letter and a load per CPU, and the threads.

use crate::commands::daemon::{CoreLine, DaemonStatus, ThreadLine};
use crate::output::count;
use consort_core::escape_invisible;
use ratatui::backend::TestBackend;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Table, TableState, Wrap};
use ratatui::{Frame, Terminal};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    Threads,
    Help,
    Why(String),
}

/// Order of the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SortKey {
    CpuShare,
    Name,
    Class,
    Cpu,
}

impl SortKey {
    const ALL: [(Self, &str); 4] = [
        (Self::CpuShare, "CPU %"),
        (Self::Name, "name"),
        (Self::Class, "class"),
        (Self::Cpu, "CPU"),
    ];

    fn compare(self, a: &ThreadLine, b: &ThreadLine) -> Ordering {
        let order = match self {
            Self::CpuShare => Ordering::Equal,
            Self::Name => a.name.cmp(&b.name),
            Self::Class => a.class.cmp(&b.class),
            Self::Cpu => a.last_pu.cmp(&b.last_pu),
        };
        let busier = || b.cpu_share.total_cmp(&a.cpu_share);
        order.then_with(busier).then(a.tid.cmp(&b.tid))
    }
}

/// A line of the list: a thread, or the program above its threads.
#[derive(Clone, Debug)]
enum TopRow {
    Program {
        pid: u32,
        name: String,
        cpu_share: f64,
        threads: usize,
    },
    Thread(ThreadLine),
}

impl TopRow {
    /// The process that a request about the row names, and the thread, if it is one.
    fn key(&self) -> (u32, Option<u32>) {
        match self {
            Self::Program { pid, .. } => (*pid, None),
            Self::Thread(thread) => (thread.pid, Some(thread.tid)),
        }
    }
}

/// Line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Prompt {
    /// Name of a policy to switch to.
    Policy(String),
    /// Part of the names of the threads and programs to show.
    Filter(String),
}

pub(super) struct TopView {
    status: DaemonStatus,
    rows: Vec<TopRow>,
    table: TableState,
    pub(super) panel: Panel,
    /// True while later turns are not shown.
    pub(super) frozen: bool,
    pub(super) typing: Option<Prompt>,
    pub(super) message: String,
    /// Index into [`SortKey::ALL`].
    sort: usize,
    filter: String,
    by_program: bool,
}

const HELP: &str = "\
up, down, k, j   choose a thread
enter            show why it is placed there
s                sort by the next of CPU %, name, class, CPU
/                show only threads and programs whose name contains a text
t                group threads by program
d                stop managing its program
p                switch to another policy
space            freeze and unfreeze the view
esc              back to the threads, without a filter
q                leave (the daemon continues)";

/// Characters of a bar.
const BAR: usize = 16;

impl TopView {
    pub(super) fn new(status: DaemonStatus) -> Self {
        let mut view = Self {
            status,
            rows: Vec::new(),
            table: TableState::default().with_selected(0),
            panel: Panel::Threads,
            frozen: false,
            typing: None,
            message: String::new(),
            sort: 0,
            filter: String::new(),
            by_program: false,
        };
        view.arrange();
        view
    }

    /// Shows a new status; the chosen row stays chosen.
    pub(super) fn renew(&mut self, status: DaemonStatus) {
        self.status = status;
        self.arrange();
    }

    pub(super) fn sort_by_next(&mut self) {
        self.sort = (self.sort + 1) % SortKey::ALL.len();
        self.message = format!("sorted by {}", SortKey::ALL[self.sort].1);
        self.arrange();
    }

    pub(super) fn toggle_programs(&mut self) {
        self.by_program = !self.by_program;
        self.arrange();
    }

    pub(super) fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.arrange();
    }

    /// Filters, sorts and groups the rows; the chosen one stays chosen.
    fn arrange(&mut self) {
        let chosen = self.selected().map(TopRow::key);
        let names: BTreeMap<u32, &str> = { self.status.programs.iter() }
            .map(|program| (program.pid, program.name.as_str()))
            .collect();
        let name_of = |program: u32| names.get(&program).copied().unwrap_or_default();
        let wanted = self.filter.to_lowercase();
        let has = |name: &str| name.to_lowercase().contains(&wanted);
        let mut threads: Vec<ThreadLine> = { self.status.threads.iter() }
            .filter(|thread| has(&thread.name) || has(name_of(thread.program)))
            .cloned()
            .collect();
        let (key, _) = SortKey::ALL[self.sort];
        threads.sort_by(|a, b| key.compare(a, b));
        self.rows = if self.by_program {
            let mut programs: BTreeMap<u32, (f64, Vec<ThreadLine>)> = BTreeMap::new();
            for thread in threads {
                let (sum, members) = programs.entry(thread.program).or_default();
                *sum += thread.cpu_share;
                members.push(thread);
            }
            let mut programs: Vec<_> = programs.into_iter().collect();
            programs.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
            let rows = programs
                .into_iter()
                .flat_map(|(pid, (cpu_share, members))| {
                    let head = TopRow::Program {
                        pid,
                        name: name_of(pid).to_owned(),
                        cpu_share,
                        threads: members.len(),
                    };
                    std::iter::once(head).chain(members.into_iter().map(TopRow::Thread))
                });
            rows.collect()
        } else {
            threads.into_iter().map(TopRow::Thread).collect()
        };
        let at = self.rows.iter().position(|row| Some(row.key()) == chosen);
        self.table.select(Some(at.unwrap_or(0)));
    }

    fn selected(&self) -> Option<&TopRow> {
        self.rows.get(self.table.selected()?)
    }

    /// The process and, unless a program is chosen, the thread of the chosen row.
    pub(super) fn selected_key(&self) -> Option<(u32, Option<u32>)> {
        self.selected().map(TopRow::key)
    }

    pub(super) fn select(&mut self, by: isize) {
        let last = self.rows.len().saturating_sub(1);
        let at = self.table.selected().unwrap_or(0);
        self.table
            .select(Some(at.saturating_add_signed(by).min(last)));
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let all = frame.area();
        let chip = chip_lines(&self.status, all.width);
        // Threads keep half of the screen, however large the chip is.
        let legends = 1 + u16::from(cycle_legend(&self.status).is_some());
        let chip_rows = (chip.len() as u16 + legends).min(all.height / 2);
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
        if let Some(legend) = cycle_legend(&self.status) {
            lines.push(legend);
        }
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
        let verdict = match s.verdict.text.is_empty() {
            true => &s.policy_reason,
            false => &s.verdict.text,
        };
        vec![
            Line::from(verdict.clone()).bold(),
            Line::from(vec![
                Span::from(format!("policy {}", s.policy)).fg(Color::Cyan),
                Span::from(format!(
                    ", tier {}, quantum {:.0} ms, ",
                    s.tier, s.quantum_ms
                )),
                Span::from(format!("overhead {own:.2} % of a CPU")),
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
        ]
    }

    fn draw_threads(&mut self, frame: &mut Frame<'_>, area: Rect) {
        let heads = ["thread", "name", "CPU %", "class", "CPU", "cycles", "why"];
        let header = Row::new(heads).style(Style::new().bold());
        let indent = if self.by_program { "  " } else { "" };
        let rows = self.rows.iter().map(|row| match row {
            TopRow::Program {
                pid,
                name,
                cpu_share,
                threads,
            } => Row::new([
                Cell::from(format!("{pid:>7}")),
                Cell::from(escape_invisible(name).into_owned()),
                Cell::from(format!("{:>5.0}", 100.0 * cpu_share)),
                Cell::from(""),
                Cell::from(""),
                Cell::from(count(*threads, "thread")),
            ])
            .bold(),
            TopRow::Thread(thread) => Row::new([
                Cell::from(format!("{:>7}", thread.tid)),
                Cell::from(format!("{indent}{}", escape_invisible(&thread.name))),
                Cell::from(format!("{:>5.0}", 100.0 * thread.cpu_share)),
                Cell::from(thread.class.clone()),
                Cell::from(thread.last_pu.map_or(String::new(), |pu| pu.to_string())),
                Cell::from(bar(thread)),
                Cell::from(thread.chosen.clone()),
            ]),
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
            Some(Prompt::Policy(typed)) => Line::from(format!("policy: {typed}_")).bold(),
            Some(Prompt::Filter(typed)) => Line::from(format!("filter: {typed}_")).bold(),
            None if !self.filter.is_empty() => {
                Line::from(format!("only '{}' (esc shows all)", self.filter))
            }
            None if self.message.is_empty() => {
                let keys =
                    "? keys  enter why  s sort  / filter  t programs  p policy  d detach  q leave";
                Line::from(keys).dim()
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

/// Legend of the bars: the letters of the components that occur.
fn cycle_legend(status: &DaemonStatus) -> Option<Line<'static>> {
    let names = status.threads.iter().flat_map(|thread| thread.stack.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let parts = names
        .into_iter()
        .filter_map(|name| Some((name.chars().next()?, name)));
    let parts: Vec<String> = parts
        .map(|(letter, name)| format!("{letter} {name}"))
        .collect();
    (!parts.is_empty()).then(|| Line::from(format!("cycles: {}", parts.join("  "))).dim())
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

/// Returns the letter and the colour for the class of a CPU's occupant.
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

/// The busiest thread that was seen on each CPU.
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
    // Of the managed threads; each counts for the CPU on which it was seen last.
    let mut loads: BTreeMap<u32, f64> = BTreeMap::new();
    for thread in &status.threads {
        if let Some(pu) = thread.last_pu {
            *loads.entry(pu).or_default() += thread.cpu_share;
        }
    }
    let mut packages: BTreeMap<u32, Vec<&CoreLine>> = BTreeMap::new();
    for core in &status.cores {
        packages.entry(core.package).or_default().push(core);
    }
    // A core takes a letter per CPU, and a blank.
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
            let mut spans = vec![Span::from(if number == 0 { "load " } else { "     " }).dim()];
            for core in chunk {
                let load = |pu: &u32| load_sign(loads.get(pu).copied().unwrap_or(0.0));
                let text: String = core.pus.iter().map(load).collect();
                spans.push(Span::from(format!("{text} ")));
            }
            all.push(Line::from(spans));
        }
    }
    all
}

/// A bar as high as the load of a CPU, 0 to 1.
fn load_sign(load: f64) -> char {
    let signs = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let eighths = (8.0 * load.clamp(0.0, 1.0)).ceil();
    signs[eighths as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::daemon::CoreLine;
    use serde_json::json;

    fn status(packages: u32, cores: u32, ways: u32, threads: u32) -> DaemonStatus {
        let text = json!({
            "pid": 7, "version": "0.1.0", "uptime_s": 61.0, "policy": "workover",
            "policy_requested": "auto", "policy_reason": "2 CPUs share a core",
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
        let chosen = view.selected_key();
        let mut next = status(1, 4, 2, 6);
        next.threads[5].cpu_share = 2.0;
        view.renew(next);
        assert_eq!(view.selected_key(), chosen);
        view.select(100);
        assert_eq!(view.table.selected(), Some(5));
        view.renew(status(1, 4, 2, 0));
        assert!(view.selected().is_none());
    }

    /// Names and process ids in the order of the rows.
    fn shown(view: &TopView) -> Vec<String> {
        let text = |row: &TopRow| match row {
            TopRow::Program { pid, threads, .. } => format!("{pid}: {threads}"),
            TopRow::Thread(thread) => thread.name.clone(),
        };
        view.rows.iter().map(text).collect()
    }

    #[test]
    fn threads_are_sorted_filtered_and_grouped() {
        let mut next = status(1, 4, 2, 3);
        next.threads[1].program = 200;
        next.threads[1].cpu_share = 3.0;
        let mut view = TopView::new(next);
        assert_eq!(shown(&view), ["worker-1", "worker-0", "worker-2"]);
        view.sort_by_next();
        assert_eq!(shown(&view), ["worker-0", "worker-1", "worker-2"]);
        view.toggle_programs();
        let grouped = ["200: 1", "worker-1", "100: 2", "worker-0", "worker-2"];
        assert_eq!(shown(&view), grouped);
        view.set_filter("R-2".to_owned());
        assert_eq!(shown(&view), ["100: 1", "worker-2"]);
    }
}
