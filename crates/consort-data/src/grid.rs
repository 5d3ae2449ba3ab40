//! Text tables for a terminal.
//!
//! If a table is wider than the page, its texts are first broken between words, then its extra columns
//! are hidden, with a note below, and at last it is split into several parts, each with the first
//! column. A number is never broken.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use consort_core::escape_invisible;
use unicode_width::UnicodeWidthStr;

const GAP: usize = 2;
/// Texts become narrower than this only if a word needs less.
const COMFORTABLE: usize = 18;
/// Longer words are broken if the page is too narrow.
const LONG_WORD: usize = 28;

/// The head of a column of a text table.
#[derive(Clone, Debug)]
pub struct ColumnHead {
    /// The heading.
    pub text: String,
    /// True for numbers, which are aligned right and never broken.
    pub numeric: bool,
    /// True if the column is hidden first when the table is too wide.
    pub extra: bool,
}

/// Widths, in characters, that a column needs at least and can use at most.
struct ColumnWidths {
    least: usize,
    most: usize,
}

/// Lays texts out under their heads in lines of at most `width` characters, of any length if `None`.
/// A word or number that is longer than the width makes its line longer.
pub fn lay_out(heads: &[ColumnHead], rows: &[Vec<String>], width: Option<usize>) -> String {
    let rows = rows
        .iter()
        .map(|row| row.iter().map(|cell| escape_invisible(cell).into_owned()));
    let rows: Vec<Vec<String>> = rows.map(Iterator::collect).collect();
    let needs: Vec<ColumnWidths> = (0..heads.len())
        .map(|c| column_widths(heads, &rows, c))
        .collect();
    let all: Vec<usize> = (0..heads.len()).collect();
    let Some(width) = width else {
        let widths: Vec<usize> = needs.iter().map(|need| need.most).collect();
        return draw(heads, &rows, &all, &widths);
    };
    let (kept, missed) = without_extras(heads, &needs, width);
    let parts = parts(&needs, &kept, width);
    let drawn = parts
        .iter()
        .map(|part| draw(heads, &rows, part, &fit_widths(&needs, part, width)));
    let mut text = drawn.collect::<Vec<_>>().join("\n");
    if !missed.is_empty() {
        let missed: Vec<&str> = missed.iter().map(|&c| heads[c].text.as_str()).collect();
        let missed = missed.join(", ");
        let note = format!("hidden (terminal too narrow): {missed}; use --wide to show all");
        text += &(break_between_words(&note, width) + "\n");
    }
    text
}

/// A note in lines of at most `width` characters, unless a word is longer.
fn break_between_words(note: &str, width: usize) -> String {
    let (mut text, mut used) = (String::new(), 0);
    for word in note.split(' ') {
        let gap = match used {
            0 => "",
            used if used + 1 + word.width() <= width => " ",
            _ => "\n  ",
        };
        used = word.width()
            + match gap {
                "" => 0,
                " " => used + 1,
                _ => 2,
            };
        text += gap;
        text += word;
    }
    text
}

fn column_widths(heads: &[ColumnHead], rows: &[Vec<String>], column: usize) -> ColumnWidths {
    let head = &heads[column];
    let cells = || rows.iter().filter_map(|row| row.get(column));
    let widest = cells().map(|cell| cell.width()).max().unwrap_or(0);
    let most = widest.max(head.text.width());
    let of_cells = if head.numeric {
        widest
    } else {
        let longest = cells().map(|cell| longest_word(cell)).max().unwrap_or(0);
        longest.min(LONG_WORD).max(widest.min(COMFORTABLE))
    };
    ColumnWidths {
        least: of_cells.max(longest_word(&head.text)),
        most,
    }
}

fn longest_word(text: &str) -> usize {
    text.split(' ')
        .map(UnicodeWidthStr::width)
        .max()
        .unwrap_or(0)
}

/// Characters that columns take at least.
fn least_width(needs: &[ColumnWidths], columns: &[usize]) -> usize {
    let all: usize = columns.iter().map(|&c| needs[c].least + GAP).sum();
    all.saturating_sub(GAP)
}

/// Columns that stay, and extra columns that are left out so that the others fit, the last first.
fn without_extras(
    heads: &[ColumnHead],
    needs: &[ColumnWidths],
    width: usize,
) -> (Vec<usize>, Vec<usize>) {
    let mut kept: Vec<usize> = (0..heads.len()).collect();
    let mut missed = Vec::new();
    while least_width(needs, &kept) > width {
        let Some(place) = kept.iter().rposition(|&c| heads[c].extra) else {
            break;
        };
        missed.insert(0, kept.remove(place));
    }
    (kept, missed)
}

/// Columns in parts that fit, each beginning with the first of all.
fn parts(needs: &[ColumnWidths], columns: &[usize], width: usize) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = vec![Vec::new()];
    for &column in columns {
        let Some(part) = parts.last_mut() else { break };
        let with = [part.as_slice(), &[column]].concat();
        if part.len() > 1 && least_width(needs, &with) > width {
            parts.push(vec![columns[0], column]);
        } else {
            *part = with;
        }
    }
    parts
}

/// The least widths; the remaining width goes to columns that can use it, the narrowest first.
fn fit_widths(needs: &[ColumnWidths], part: &[usize], width: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = part.iter().map(|&c| needs[c].least).collect();
    let mut left = width.saturating_sub(least_width(needs, part));
    while left > 0 {
        let wanting = (0..part.len()).filter(|&i| widths[i] < needs[part[i]].most);
        let Some(narrowest) = wanting.min_by_key(|&i| widths[i]) else {
            break;
        };
        widths[narrowest] += 1;
        left -= 1;
    }
    widths
}

fn draw(heads: &[ColumnHead], rows: &[Vec<String>], columns: &[usize], widths: &[usize]) -> String {
    let chosen = |row: &Vec<String>| {
        columns
            .iter()
            .filter_map(|&c| row.get(c))
            .cloned()
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(chosen).collect();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::MAX)
        .set_header(columns.iter().map(|&c| heads[c].text.as_str()))
        .add_rows(rows);
    let settings = columns.iter().zip(widths).zip(table.column_iter_mut());
    for ((&column, &width), cells) in settings {
        let width = u16::try_from(width + GAP).unwrap_or(u16::MAX);
        cells.set_padding((0, GAP as u16));
        cells.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        if heads[column].numeric {
            cells.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    let lines = text.lines().map(str::trim_end);
    lines.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(text: &str, numeric: bool, extra: bool) -> ColumnHead {
        ColumnHead {
            text: text.to_owned(),
            numeric,
            extra,
        }
    }

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    #[test]
    fn what_fits_stays_on_one_line() {
        let heads = [head("name", false, false), head("CPU s", true, true)];
        let text = lay_out(&heads, &[row(&["a b", "1.00"])], Some(40));
        assert_eq!(text, "name  CPU s\na b    1.00\n");
    }

    #[test]
    fn texts_are_broken_between_words_and_numbers_never() {
        let heads = [
            head("name", false, false),
            head("many words", true, false),
            head("why", false, false),
        ];
        let rows = [row(&[
            "x",
            "1234567.89",
            "one two three four five six seven eight",
        ])];
        let text = lay_out(&heads, &rows, Some(36));
        assert!(text.lines().all(|line| line.width() <= 36), "{text}");
        assert!(
            text.lines().count() > 2 && text.contains("1234567.89"),
            "{text}"
        );
        assert_eq!(lay_out(&heads, &rows, None).lines().count(), 2);
    }

    #[test]
    fn extra_columns_are_hidden_first_and_named() {
        let heads = [
            head("name", false, false),
            head("a", true, true),
            head("b", true, false),
        ];
        let rows = [row(&["x", "1234567890", "1234567890"])];
        let text = lay_out(&heads, &rows, Some(20));
        let note = "\nhidden (terminal too\n  narrow): a; use\n  --wide to show all\n";
        assert!(text.ends_with(note), "{text}");
        assert_eq!(text.matches("1234567890").count(), 1);
    }

    #[test]
    fn wide_table_is_split_with_its_keys() {
        let heads: Vec<ColumnHead> = (0..5)
            .map(|i| head(&format!("c{i}"), i > 0, false))
            .collect();
        let rows = [row(&[
            "key",
            "1234567890",
            "1234567891",
            "1234567892",
            "1234567893",
        ])];
        let text = lay_out(&heads, &rows, Some(30));
        assert!(text.lines().all(|line| line.width() <= 30), "{text}");
        assert_eq!(text.matches("key").count(), 2);
        assert!(
            (0..4).all(|i| text.contains(&format!("123456789{i}"))),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn numbers_stay_whole_at_any_width(
            numbers in prop::collection::vec(0u64..1_000_000_000, 1..12),
            words in "[a-z ]{0,60}",
            width in 20usize..120,
        ) {
            let mut heads = vec![head("text", false, false)];
            heads.extend(numbers.iter().map(|_| head("a number", true, false)));
            let mut cells = vec![words];
            cells.extend(numbers.iter().map(u64::to_string));
            let text = lay_out(&heads, &[cells], Some(width));
            let number = numbers.iter().map(|n| n.to_string().len()).max().unwrap_or(0);
            let unbreakable = LONG_WORD + GAP + number.max("number".len());
            prop_assert!(
                text.lines().all(|line| line.width() <= width.max(unbreakable)),
                "{}",
                text
            );
            let shown: Vec<&str> = text.split_whitespace().collect();
            prop_assert!(numbers.iter().all(|n| shown.contains(&n.to_string().as_str())));
        }
    }
}
