//! The chip: one letter per PU, cores side by side, packages below each other.

use crate::commands::daemon::{CoreLine, DaemonStatus, ThreadLine};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use std::collections::BTreeMap;

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
pub(super) const LEGEND: &str =
    "F floating point  I integer  M memory  X mixed  ? unknown  b blocked  · none";

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

/// Characters that a core takes.
fn core_width(cores: &[CoreLine]) -> u16 {
    let most = cores.iter().map(|core| core.pus.len()).max().unwrap_or(1);
    most as u16 + 1
}

/// Characters of a package's label.
const LABEL: u16 = 5;

fn cores_per_line(cores: &[CoreLine], width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL) / core_width(cores)).max(1)
}

/// Lines that the chip takes.
pub(super) fn row_count(status: &DaemonStatus, width: u16) -> u16 {
    lines(status, width).len() as u16
}

/// The chip as lines of a given width.
pub(super) fn lines(status: &DaemonStatus, width: u16) -> Vec<Line<'static>> {
    let occupants = occupants(status);
    let mut packages: BTreeMap<u32, Vec<&CoreLine>> = BTreeMap::new();
    for core in &status.cores {
        packages.entry(core.package).or_default().push(core);
    }
    let per_line = cores_per_line(&status.cores, width);
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
