//! A comparison as tables, figures and texts.

use super::comparison::{ReferenceComparison, ReferenceScore};
use super::place::VALUE;
use crate::study::StudyError;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Cell, Figure, FigureError, Plot, ReportColumn, ReportTable,
    ReportTableError,
};

/// Stands for the reason of a disagreement without an explanation.
const OPEN: &str = "open question";

/// Groups of bars in a figure at most; more have no room for their names.
const GROUPS: usize = 40;

/// A comparison as it is shown.
#[derive(Clone, Debug)]
pub struct ReferenceView {
    /// Published, ours, difference and verdict, for people.
    pub verdicts: ReportTable,
    /// The same with places and reasons, for files.
    pub table: ReportTable,
    /// Published next to ours, a figure for each unit.
    pub figures: Vec<Figure>,
    /// Figures that disagree, those of a reason together, with the reason.
    pub misses: Vec<String>,
}

/// Columns of tables by key and title; people see [`FOR_PEOPLE`] of them.
const COLUMNS: [(&str, &str); 14] = [
    ("study", "Study"),
    ("published", "Published figure"),
    ("table", "Table"),
    ("row", "Row"),
    ("column", "Column"),
    ("unit", "Unit"),
    ("theirs", "Published"),
    ("ours", "Ours"),
    ("difference", "Difference"),
    ("direction", "Direction"),
    ("within_third", "Within a third"),
    ("section", "Source"),
    ("reason", "Reason"),
    ("relative_percent", "Relative difference, %"),
];

/// Range of [`COLUMNS`] for people.
const FOR_PEOPLE: std::ops::Range<usize> = 5..12;
/// Place of our figure in [`COLUMNS`].
const OURS: usize = 7;
/// Stands for a figure that the study lacks.
const NOT_MEASURED: &str = "not measured";

/// A figure as it is shown, with or without a value of ours.
struct ShownFigure {
    /// Name for people, with the study if there are several.
    name: String,
    /// In the order of [`COLUMNS`].
    cells: [Cell; 14],
    unit: String,
    theirs: Option<(f64, f64)>,
    ours: Cell,
    /// Reason of a disagreement; `None` if both agree.
    miss: Option<String>,
}

fn verdict(agrees: Option<bool>) -> Cell {
    match agrees {
        Some(true) => "yes".into(),
        Some(false) => "no".into(),
        None => Cell::missing("a level has no direction"),
    }
}

fn text(text: Option<&String>) -> Cell {
    text.map_or("", String::as_str).into()
}

impl ReferenceComparison {
    /// The comparison as it is shown; `None` if it is about nothing.
    ///
    /// # Errors
    /// None that can occur: columns are fixed, rows and keys are made here.
    pub fn view(&self) -> Result<Option<ReferenceView>, StudyError> {
        let shown = self.shown();
        if shown.is_empty() {
            return Ok(None);
        }
        let title = format!("Published and ours: {}", self.score.text());
        let mut verdicts = columns("verdicts", &title, &COLUMNS[FOR_PEOPLE])?;
        let mut table = columns("reference", "Ours and published figures", &COLUMNS)?;
        for (number, one) in (1..).zip(&shown) {
            // Files of users may repeat a figure.
            let name = match verdicts.row(&one.name) {
                Some(_) => format!("{} ({number})", one.name),
                None => one.name.clone(),
            };
            let mut cells = one.cells[FOR_PEOPLE].to_vec();
            if matches!(one.ours, Cell::Missing { .. }) {
                cells[OURS - FOR_PEOPLE.start] = NOT_MEASURED.into();
            }
            verdicts.push(&name, cells)?;
            table.push(&number.to_string(), one.cells.to_vec())?;
        }
        Ok(Some(ReferenceView {
            verdicts,
            table,
            figures: figures(&shown)?,
            misses: misses(&shown),
        }))
    }

    /// Figures that disagree, those of a reason together, with the reason.
    pub fn misses(&self) -> Vec<String> {
        misses(&self.shown())
    }

    fn shown(&self) -> Vec<ShownFigure> {
        let compared = self.compared.iter().map(|one| &one.study);
        let studies = compared.chain(self.unmatched.iter().map(|one| &one.names[0]));
        let mut studies: Vec<&String> = studies.collect();
        studies.dedup();
        let named = |study: &str, name: &str| match studies.len() {
            1 => name.to_owned(),
            _ => format!("{study} {name}"),
        };
        let mut shown = Vec::new();
        for one in &self.compared {
            // A row that the source's own file chose may have several columns.
            let rest = one.published.strip_suffix(one.row.as_str());
            let is_row = rest.is_some_and(|table| table.is_empty() || table.ends_with(':'));
            let name = match is_row && one.column != VALUE {
                true => format!("{} {}", one.published, one.column),
                false => one.published.clone(),
            };
            let reason = one.reason.as_deref().unwrap_or(OPEN);
            let miss = (!one.agrees()).then(|| reason.to_owned());
            let difference = one.difference.map(Cell::from);
            let relative = one.relative.map(|share| Cell::from(100.0 * share));
            shown.push(ShownFigure {
                cells: [
                    one.study.as_str().into(),
                    one.published.as_str().into(),
                    one.table.as_str().into(),
                    one.row.as_str().into(),
                    one.column.as_str().into(),
                    text(one.unit.as_ref()),
                    one.theirs.text().as_str().into(),
                    one.ours.clone(),
                    difference.unwrap_or_else(|| Cell::missing("texts have none")),
                    verdict(one.direction),
                    verdict(Some(one.within_third)),
                    text(one.section.as_ref()),
                    text(miss.as_ref()),
                    relative
                        .unwrap_or_else(|| Cell::missing("the published figure is 0 or a text")),
                ],
                name: named(&one.study, &name),
                unit: one.unit.clone().unwrap_or_default(),
                theirs: one.theirs.ends(),
                ours: one.ours.clone(),
                miss,
            });
        }
        for one in &self.unmatched {
            let [study, row, column] = &one.names;
            let gap = || Cell::missing(NOT_MEASURED);
            shown.push(ShownFigure {
                cells: [
                    study.as_str().into(),
                    row.as_str().into(),
                    gap(),
                    gap(),
                    column.as_str().into(),
                    text(one.unit.as_ref()),
                    one.theirs.text().as_str().into(),
                    Cell::missing(format!("line {}: {}", one.line, one.reason)),
                    gap(),
                    verdict((!one.level).then_some(false)),
                    verdict(Some(false)),
                    text(one.section.as_ref()),
                    one.reason.as_str().into(),
                    gap(),
                ],
                name: named(study, format!("{row} {column}").trim_end()),
                unit: String::new(),
                theirs: None,
                ours: gap(),
                miss: Some(one.reason.clone()),
            });
        }
        shown
    }
}

fn columns(key: &str, title: &str, all: &[(&str, &str)]) -> Result<ReportTable, ReportTableError> {
    let columns = all
        .iter()
        .map(|(key, title)| ReportColumn::plain(key, title));
    ReportTable::new(key, title, columns.collect())
}

/// A text for each reason, with the names of its figures in front.
fn misses(shown: &[ShownFigure]) -> Vec<String> {
    let mut names: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in shown {
        let Some(miss) = &one.miss else { continue };
        match names.iter_mut().find(|(reason, _)| reason == miss) {
            Some((_, names)) => names.push(&one.name),
            None => names.push((miss, vec![&one.name])),
        }
    }
    let texts = names.iter();
    texts
        .map(|(reason, names)| format!("{}: {reason}", names.join("; ")))
        .collect()
}

/// Bars of the published numbers next to ours, a figure for each unit.
fn figures(shown: &[ShownFigure]) -> Result<Vec<Figure>, FigureError> {
    let drawn = |one: &&ShownFigure| one.ours.value().is_some() && one.theirs.is_some();
    let mut units: Vec<&str> = Vec::new();
    for one in shown.iter().filter(drawn) {
        if !units.contains(&one.unit.as_str()) {
            units.push(&one.unit);
        }
    }
    let figure = |unit: &&str| {
        let all = shown.iter().filter(drawn).filter(|one| one.unit == **unit);
        let all: Vec<&ShownFigure> = all.take(GROUPS).collect();
        // A range is a bar to its middle with the range as its interval.
        let theirs = |one: &&ShownFigure| {
            let (low, high) = one.theirs?;
            Some(Bar {
                value: (low + high) / 2.0,
                ci95: (low < high).then_some((high - low) / 2.0),
            })
        };
        let ours = |one: &&ShownFigure| {
            Some(Bar {
                value: one.ours.value()?,
                ci95: one.ours.ci95(),
            })
        };
        let series = |name: &str, bars: Vec<Option<Bar>>| BarSeries {
            name: name.to_owned(),
            bars,
        };
        let bars = BarChart {
            category: "Published figure".to_owned(),
            value: Axis::linear("Value", Some(*unit).filter(|unit| !unit.is_empty())),
            baseline: if *unit == "ratio" { 1.0 } else { 0.0 },
            groups: all.iter().map(|one| one.name.clone()).collect(),
            series: vec![
                series("published", all.iter().map(theirs).collect()),
                series("ours", all.iter().map(ours).collect()),
            ],
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let key = format!("published-{unit}").to_lowercase();
        let key: String = key.chars().map(plain).collect();
        let text = "Published ranges are bars to their middle; intervals of ours are over runs.";
        let title = "Published and ours";
        let runs = all.iter().filter_map(|one| one.ours.n()).max().unwrap_or(0);
        Figure::new(
            key.trim_end_matches('-'),
            title,
            text,
            runs,
            Plot::Bars(bars),
        )
    };
    units.iter().map(figure).collect()
}

impl ReferenceScore {
    /// The score in words.
    pub fn text(&self) -> String {
        let (direction, third) = (self.direction, self.within_third);
        format!(
            "direction {} of {}, size within a third {} of {}",
            direction.agree, direction.of, third.agree, third.of
        )
    }
}
