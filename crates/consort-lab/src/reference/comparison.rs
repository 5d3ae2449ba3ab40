//! Published figures with ours, and the score over them.

use super::file::{PublishedValue, ReferenceLine};
use super::place::{find_entry, find_value, is_same_key};
use super::verdict::{self, judge_number, judge_text};
use crate::study::StudyReport;
use crate::study::file::OutcomeSpec;
use consort_data::Cell;
use serde::Serialize;

/// A published figure with ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Id of the study.
    pub study: String,
    /// Name of the published figure.
    pub published: String,
    /// Key of the table.
    pub table: String,
    /// Key of the row.
    pub row: String,
    /// Key of the column.
    pub column: String,
    /// Unit of both figures.
    pub unit: Option<String>,
    /// Our figure, with its interval if it has one.
    pub ours: Cell,
    /// The published figure.
    pub theirs: PublishedValue,
    /// Ours less theirs, or less the nearer end of their range; `None` for texts.
    pub difference: Option<f64>,
    /// The difference over theirs, or over that end; `None` if it is 0, and for texts.
    pub relative: Option<f64>,
    /// True if theirs lies in our 95 percent interval; `None` without an interval.
    pub within_ci95: Option<bool>,
    /// True if the direction agrees; `None` if the figure is a level, which has none.
    pub direction: Option<bool>,
    /// True if ours is within a third of theirs.
    pub within_third: bool,
    /// Section, table or figure of the source.
    pub section: Option<String>,
    /// Reason why the two disagree; `None` if it is not known.
    pub reason: Option<String>,
}

impl ComparedFigure {
    /// True if direction and size agree, so far as the figure has them.
    pub fn agrees(&self) -> bool {
        self.within_third && self.direction.unwrap_or(true)
    }
}

/// A published figure without one of ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnmatchedFigure {
    /// Line in the reference file, from 1.
    pub line: u64,
    /// The study, row and column that it names; the column is empty if it names none.
    pub names: [String; 3],
    /// The published figure.
    pub theirs: PublishedValue,
    /// Its unit.
    pub unit: Option<String>,
    /// Section, table or figure of the source.
    pub section: Option<String>,
    /// True if the figure is a level, which has no direction.
    pub level: bool,
    /// Reason, and the name that may have been meant.
    pub reason: String,
}

/// Number of figures that agree, out of all that could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgreementCount {
    /// Figures that agree.
    pub agree: usize,
    /// All figures that have such a verdict, those without a figure of ours included.
    pub of: usize,
}

impl AgreementCount {
    fn add(&mut self, agrees: bool) {
        self.agree += usize::from(agrees);
        self.of += 1;
    }
}

/// The score of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReferenceScore {
    /// Directions; levels have none and are left out.
    pub direction: AgreementCount,
    /// Sizes within a third.
    pub within_third: AgreementCount,
}

/// Published figures with ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReferenceComparison {
    /// The score over all figures.
    pub score: ReferenceScore,
    /// Figures that could be compared, in the order of the reference.
    pub compared: Vec<ComparedFigure>,
    /// Lines that could not; they count as misses.
    pub unmatched: Vec<UnmatchedFigure>,
}

/// Compares each published figure of these studies with ours; figures of other studies are left out.
pub fn compare(
    reference: &[ReferenceLine],
    studies: &[(&StudyReport, &[OutcomeSpec])],
) -> ReferenceComparison {
    let mut comparison = ReferenceComparison::default();
    for line in reference {
        let mut named = studies.iter();
        let Some((report, specs)) = named.find(|(r, _)| is_same_key(&r.study, &line.study)) else {
            continue;
        };
        let entry = find_entry(specs, &line.row).filter(|_| line.column.is_none());
        comparison.add(line, entry, report);
    }
    comparison
}

impl ReferenceComparison {
    fn add(&mut self, line: &ReferenceLine, entry: Option<&OutcomeSpec>, report: &StudyReport) {
        match compare_line(line, entry, report) {
            Ok(compared) => {
                if let Some(agrees) = compared.direction {
                    self.score.direction.add(agrees);
                }
                self.score.within_third.add(compared.within_third);
                self.compared.push(compared);
            }
            Err(absence) => {
                let level = entry.is_some_and(|entry| entry.level);
                if !level {
                    self.score.direction.add(false);
                }
                self.score.within_third.add(false);
                let column = line.column.clone().unwrap_or_default();
                self.unmatched.push(UnmatchedFigure {
                    line: line.line,
                    names: [report.study.clone(), line.row.clone(), column],
                    theirs: line.value.clone(),
                    unit: line.unit.clone(),
                    section: line.section.clone(),
                    level,
                    reason: absence,
                });
            }
        }
    }

    /// Adds the figures of another comparison.
    pub fn append(&mut self, other: &Self) {
        let (own, more) = (&mut self.score, other.score);
        for (count, more) in [
            (&mut own.direction, more.direction),
            (&mut own.within_third, more.within_third),
        ] {
            count.agree += more.agree;
            count.of += more.of;
        }
        self.compared.extend_from_slice(&other.compared);
        self.unmatched.extend_from_slice(&other.unmatched);
    }
}

fn compare_line(
    line: &ReferenceLine,
    entry: Option<&OutcomeSpec>,
    report: &StudyReport,
) -> Result<ComparedFigure, String> {
    let found = find_value(line, entry, report)?;
    let ours = match found.cell {
        Cell::Missing { missing } => return Err(format!("ours is missing: {missing}")),
        cell => verdict::convert(cell, found.unit.as_deref(), line.unit.as_deref())?,
    };
    let unit = line.unit.clone().or(found.unit);
    let is_level = entry.is_some_and(|entry| entry.level);
    let judged = match (line.value.ends(), ours.value()) {
        (Some(ends), Some(value)) => judge_number(
            (value, ours.ci95().unwrap_or(0.0)),
            ends,
            unit.as_deref().unwrap_or(""),
            is_level,
        ),
        (None, _) => judge_text(&ours.text(), &line.value.text()),
        (Some(_), None) => return Err(format!("ours is the text '{}'", ours.text())),
    };
    let difference = ours
        .value()
        .and_then(|v| verdict::difference(v, &line.value));
    let nearer = ours.value().zip(difference).map(|(value, off)| value - off);
    Ok(ComparedFigure {
        study: report.study.clone(),
        published: line.row.clone(),
        table: found.table,
        row: found.row,
        column: found.column,
        unit,
        theirs: line.value.clone(),
        difference,
        relative: nearer
            .filter(|nearer| *nearer != 0.0)
            .and_then(|nearer| Some(difference? / nearer.abs())),
        within_ci95: ours.ci95().and_then(|half| Some(difference?.abs() <= half)),
        ours,
        direction: judged.direction,
        within_third: judged.within_third,
        section: line.section.clone(),
        reason: entry.and_then(|entry| entry.reason.clone()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use crate::testing::report;
    use consort_core::stats::ConfidenceInterval;
    use consort_data::{HeadlineTable, ReportColumn, ReportTable};

    /// Table `speed` has rows `a+b` and `c`; table `misses` has `c`, too.
    fn study() -> StudyReport {
        let mut report = report("W3");
        let unit = |key: &str| ReportColumn::with_unit(key, key, "s");
        let mut speed = ReportTable::new("speed", "", vec![unit("time"), unit("rest")]).unwrap();
        let interval = ConfidenceInterval::from_values(&[1.0, 2.0, 3.0]).unwrap();
        speed
            .push("a+b", vec![interval.into(), "text".into()])
            .unwrap();
        speed
            .push("c", vec![0.5.into(), Cell::missing("not run")])
            .unwrap();
        let mut misses = ReportTable::new("misses", "", vec![unit("time")]).unwrap();
        misses.push("c", vec![7.0.into()]).unwrap();
        report.output.tables = vec![speed, misses];
        report
    }

    fn comparison(line: &str) -> ReferenceComparison {
        let text = format!("study,row,column,value\n{line}\n");
        compare(&parse("f.csv", &text).unwrap(), &[(&study(), &[])])
    }

    fn matched(line: &str) -> ComparedFigure {
        comparison(line).compared.remove(0)
    }

    fn check_unmatched(line: &str, expect: &str) {
        let comparison = comparison(line);
        assert_eq!(comparison.compared, []);
        assert_eq!(comparison.unmatched[0].line, 2);
        assert_eq!(comparison.unmatched[0].reason, expect);
    }

    #[test]
    fn figures_are_compared_with_their_difference() {
        let one = matched("w3,A+B,Time,4");
        assert_eq!((one.study.as_str(), one.row.as_str()), ("W3", "a+b"));
        assert_eq!((one.table.as_str(), one.column.as_str()), ("speed", "time"));
        assert_eq!(one.unit.as_deref(), Some("s"));
        assert_eq!(
            (one.ours.value(), &one.theirs),
            (Some(2.0), &PublishedValue::Number(4.0))
        );
        assert_eq!((one.difference, one.relative), (Some(-2.0), Some(-0.5)));
        // The interval is 2 ± 2.48.
        assert_eq!(one.within_ci95, Some(true));
        assert_eq!(matched("W3,a+b,time,5").within_ci95, Some(false));
        assert_eq!(matched("W3,a+b,time,0").relative, None);
    }

    #[test]
    fn row_of_two_tables_needs_its_table() {
        let reason = "tables 'speed' and 'misses' both have it; write 'speed:c'";
        check_unmatched("W3,c,time,1", reason);
        assert_eq!(matched("W3,misses:c,time,7").difference, Some(0.0));
        assert_eq!(matched("W3,speed:c,time,1").within_ci95, None);
    }

    #[test]
    fn unmatched_figure_has_a_reason() {
        check_unmatched("W3,a+d,time,1", "no row 'a+d'; did you mean 'a+b'?");
        check_unmatched("W3,a+b,times,1", "no column 'times'; did you mean 'time'?");
        check_unmatched("W3,a+b,rest,1", "ours is the text 'text'");
        check_unmatched("W3,speed:c,rest,1", "ours is missing: not run");
    }

    #[test]
    fn table_holds_every_line() {
        let found = comparison("W3,a+b,time,4\nW3,a+b,times,1");
        let table = found.view().unwrap().unwrap().table;
        assert_eq!(table.rows().len(), 2);
        let percent = table.cell("1", "relative_percent").unwrap();
        assert_eq!(percent.value(), Some(-50.0));
        let gap = table.cell("2", "ours").unwrap();
        assert_eq!(
            gap,
            &Cell::missing("line 3: no column 'times'; did you mean 'time'?")
        );
    }

    fn mapped(lines: &str, specs: &[OutcomeSpec]) -> ReferenceComparison {
        let text = format!("study,row,value,unit,section\n{lines}");
        compare(&parse("f.csv", &text).unwrap(), &[(&study(), specs)])
    }

    #[test]
    fn entry_maps_a_published_name_to_a_cell() {
        let spec = OutcomeSpec {
            row: "speed of *, figure 5".to_owned(),
            table: Some("speed".to_owned()),
            at: vec!["*".to_owned()],
            column: Some("time".to_owned()),
            reason: Some("the bus is slower".to_owned()),
            ..OutcomeSpec::default()
        };
        let found = mapped("W3,\"speed of a+b, figure 5\",8..9,s,5.2\n", &[spec]);
        let one = &found.compared[0];
        assert_eq!((one.table.as_str(), one.row.as_str()), ("speed", "a+b"));
        // 2 s are 6 s below the nearer end, which is more than a third of it.
        assert_eq!((one.difference, one.relative), (Some(-6.0), Some(-0.75)));
        // The interval of 2 ± 2.48 holds 0.
        assert_eq!((one.direction, one.within_third), (Some(false), false));
        assert_eq!(
            found.misses(),
            ["speed of a+b, figure 5: the bus is slower"]
        );
        assert_eq!(one.section.as_deref(), Some("5.2"));
    }

    #[test]
    fn rows_are_averaged_and_divided() {
        let mut report = study();
        let mut headline = HeadlineTable::new().unwrap();
        for (row, percent) in [("a over c", 50.0), ("b over c", 20.0), ("d over c", 30.0)] {
            headline.add(row, "percent", percent).unwrap();
        }
        report.output.tables.insert(0, headline.into_table());
        let rows = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let spec = |row: &str, at: &[&str], over: &[&str]| OutcomeSpec {
            row: row.to_owned(),
            at: rows(at),
            over: rows(over),
            ..OutcomeSpec::default()
        };
        let specs = [
            spec("mean", &["a over c", "b over c"], &[]),
            spec("a over b", &["a over c"], &["b over c", "d over c"]),
        ];
        let text = "study,row,value,unit\nW3,mean,35,percent\nW3,a over b,20,percent\n";
        let lines = parse("f.csv", text).unwrap();
        let found = compare(&lines, &[(&report, &specs)]).compared;
        assert_eq!(found[0].difference, Some(0.0));
        // 1.5/1.25 is 20 percent above 1.
        assert!(found[1].difference.unwrap().abs() < 1e-9);
        assert_eq!(found[1].row, "a over c over b over c + d over c");
    }

    #[test]
    fn names_are_ranked_by_their_rows() {
        let spec = OutcomeSpec {
            row: "order".to_owned(),
            table: Some("speed".to_owned()),
            at: vec!["{name}".to_owned()],
            column: Some("time".to_owned()),
            among: ["c", "a+b", "d"].map(str::to_owned).to_vec(),
            text: "{least} fastest; {most} slowest".to_owned(),
            ..OutcomeSpec::default()
        };
        let found = mapped("W3,order,a+b slowest; c fastest,,\n", &[spec]);
        let one = &found.compared[0];
        assert_eq!(one.ours, Cell::Text("c fastest; a+b slowest".to_owned()));
        assert_eq!((one.direction, one.within_third), (Some(true), true));
    }

    #[test]
    fn figure_without_a_value_counts_as_a_miss() {
        let found = mapped("W3,gain of all,8,percent,5.2\nW9,gain,1,,\n", &[]);
        assert_eq!(
            found.score.text(),
            "direction 0 of 1, size within a third 0 of 1"
        );
        assert_eq!(found.misses(), ["gain of all: not measured"]);
        let table = found.view().unwrap().unwrap().verdicts;
        assert_eq!(
            table.cell("gain of all", "ours"),
            Some(&"not measured".into())
        );
    }

    #[test]
    fn several_studies_are_told_apart_and_added() {
        let mut all = mapped("W3,gain of all,8,percent,5.2\n", &[]);
        let mut other = study();
        other.study = "W4".to_owned();
        let lines = parse("f.csv", "study,row,value\nW4,gain of all,8\n").unwrap();
        all.append(&compare(&lines, &[(&other, &[])]));
        assert_eq!(all.score.within_third.of, 2);
        assert_eq!(
            all.misses(),
            ["W3 gain of all; W4 gain of all: not measured"]
        );
    }
}
