//! The notes of a study, from its frames.

use super::file::{NoteSpec, PhraseKind, PhraseSpec, ViewLoop};
use super::frames::{Frames, LoopTurn, TemplateWords};
use super::template::fill;
use consort_data::Cell;
use std::collections::BTreeMap;

/// The notes of one entry of the file: one for each turn of its loop.
pub(super) fn notes(frames: &Frames, spec: &NoteSpec) -> Vec<String> {
    let turns = frames.turns(spec.looped());
    let one = |turn: &LoopTurn| {
        let mut words = turn.words.clone();
        for (name, phrase) in &spec.phrases {
            words.insert(name.clone(), phrase_text(frames, spec, phrase, turn));
        }
        fill(&spec.text, &words)
    };
    turns.iter().flatten().map(one).collect()
}

/// An item of a phrase: its words, and its cells by their names.
struct PhraseItem {
    turn: LoopTurn,
    cells: BTreeMap<String, Cell>,
}

/// The loop of a phrase: of the note's experiment where it names none.
fn phrase_loop<'a>(note: &'a NoteSpec, phrase: &'a PhraseSpec) -> ViewLoop<'a> {
    let own = phrase.looped();
    ViewLoop {
        from: own.from.or(note.from.as_deref()),
        ..own
    }
}

fn phrase_text(frames: &Frames, note: &NoteSpec, phrase: &PhraseSpec, turn: &LoopTurn) -> String {
    let items = items(frames, note, phrase, turn);
    let by = phrase.by.as_deref().unwrap_or_default();
    let value = |item: &&PhraseItem| item.cells.get(by).and_then(Cell::value);
    let text = |some: &[&PhraseItem]| {
        let texts = some.iter().map(|item| {
            let mut words = text_words(phrase, item);
            for (name, inner) in &phrase.phrases {
                words.insert(name.clone(), phrase_text(frames, note, inner, &item.turn));
            }
            fill(&phrase.item, &words)
        });
        texts.collect::<Vec<_>>().join(&phrase.join)
    };
    let all: Vec<&PhraseItem> = items.iter().collect();
    let mut ranked: Vec<&PhraseItem> = { items.iter() }
        .filter(|item| value(item).is_some())
        .collect();
    ranked.sort_by(|a, b| {
        value(b)
            .partial_cmp(&value(a))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let few = phrase.few.min(ranked.len());
    match phrase.kind {
        PhraseKind::List => text(&all),
        PhraseKind::Top => text(&ranked[..few]),
        PhraseKind::Bottom => text(&ranked[ranked.len() - few..]),
        PhraseKind::Ends => text(&extreme_items(&all, by)),
        PhraseKind::Above => count_beyond_interval(&all, by, 1.0).to_string(),
        PhraseKind::Below => count_beyond_interval(&all, by, -1.0).to_string(),
        PhraseKind::Count => all.len().to_string(),
        PhraseKind::Correlation => correlation_text(phrase, &all),
        PhraseKind::Same => count_same_cases(frames, phrase, &all).to_string(),
    }
}

/// The items of a phrase: of its own groups, or of the note's group where it has none.
fn items(
    frames: &Frames,
    note: &NoteSpec,
    phrase: &PhraseSpec,
    turn: &LoopTurn,
) -> Vec<PhraseItem> {
    let over = phrase_loop(note, phrase);
    let turns = match phrase.groups.is_empty() && phrase.from.is_none() {
        true => frames
            .loop_words(over)
            .iter()
            .map(|words| turn.with_words(words))
            .collect(),
        false => frames.turns(over).concat(),
    };
    let item = |mut own: LoopTurn| {
        let mut words = turn.words.clone();
        words.extend(own.words);
        own.words = words;
        let cells = phrase.cells.iter();
        let cells = cells.map(|(name, cell)| (name.clone(), frames.cell(cell, &own)));
        PhraseItem {
            cells: cells.collect(),
            turn: own,
        }
    };
    turns.into_iter().map(item).collect()
}

/// The words of an item, its cells among them.
fn text_words(phrase: &PhraseSpec, item: &PhraseItem) -> TemplateWords {
    let mut words: TemplateWords = item.turn.words.clone();
    for (name, cell) in &item.cells {
        let digits = phrase.cells.get(name).and_then(|spec| spec.digits);
        let text = match (digits, cell.value()) {
            (Some(digits), Some(value)) => format!("{value:.digits$}"),
            (Some(_), None) => "?".to_owned(),
            (None, _) => cell.text(),
        };
        words.insert(name.clone(), text);
    }
    words
}

/// The item with the largest value and the one with the smallest.
fn extreme_items<'a>(items: &[&'a PhraseItem], by: &str) -> Vec<&'a PhraseItem> {
    let value = |item: &PhraseItem| item.cells.get(by).and_then(Cell::value).unwrap_or(1.0);
    let order = |a: &&&PhraseItem, b: &&&PhraseItem| value(a).total_cmp(&value(b));
    let both = [items.iter().max_by(order), items.iter().min_by(order)];
    both.into_iter().flatten().copied().collect()
}

/// Number of values above 1, or below with the sign -1, beyond their intervals.
fn count_beyond_interval(items: &[&PhraseItem], by: &str, sign: f64) -> usize {
    let is = |item: &&&PhraseItem| {
        let cell = item.cells.get(by);
        let value = cell.and_then(Cell::value).unwrap_or(1.0);
        let half = cell.and_then(Cell::ci95).unwrap_or(0.0);
        sign * (value - 1.0) > half
    };
    items.iter().filter(is).count()
}

fn count_same_cases(frames: &Frames, phrase: &PhraseSpec, items: &[&PhraseItem]) -> usize {
    let cell = phrase.by.as_ref().and_then(|by| phrase.cells.get(by));
    let of = |item: &&PhraseItem| cell.map_or(0, |cell| frames.count_same_cases(cell, &item.turn));
    items.iter().map(of).sum()
}

fn correlation_text(phrase: &PhraseSpec, items: &[&PhraseItem]) -> String {
    let value = |item: &PhraseItem, name: &Option<String>| {
        let cell = name.as_ref().and_then(|name| item.cells.get(name));
        cell.and_then(Cell::value)
    };
    let pair = |item: &&PhraseItem| Some((value(item, &phrase.with)?, value(item, &phrase.by)?));
    let pairs: Vec<(f64, f64)> = items.iter().filter_map(pair).collect();
    let cell = correlation(&pairs).map(Cell::from);
    cell.unwrap_or_else(|| Cell::missing("one program")).text()
}

/// Pearson's correlation; none without variation.
fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|(x, y)| of(x - mx, y - my)).sum()
    };
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    (spread > 0.0).then(|| sum(&|x, y| x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::super::file::StudyFile;
    use super::*;
    use crate::frame::{Case, Frame};
    use std::sync::Arc;

    /// Three programs under two policies, one run each.
    fn frames() -> Frames {
        let case = |name: &str| Case::with_label(name, "program", name);
        let policies = ["linux", "random"].map(str::to_owned).to_vec();
        let mut frame = Frame::new(["a", "b", "c"].map(case).to_vec(), policies, 1);
        frame.set_run_values("stp", vec![1.0, 1.5, 2.0, 1.0, 4.0, 8.0]);
        Frames {
            frames: [("only".to_owned(), Arc::new(frame))].into(),
            ..Frames::default()
        }
    }

    fn check(note: &str, expect: &[&str]) {
        let texts = "id = 'x'\ntitle = ''\nsource = ''\nsection = ''\noriginal = ''\ndiffers = ''";
        let text = format!(
            "{texts}\nseed = 1\nfull_seconds = 1\n[experiments.only]\nmachine = 'power7'\n\
             policies = ['linux', 'random']\ncases = [{{ workload = 'mcf' }}]\n\
             [[headline]]\nrows = [{{ measure = 'stp', policy = 'linux' }}]\n[[notes]]\n{note}"
        );
        let file = StudyFile::parse("x.toml", &text).unwrap();
        assert_eq!(notes(&frames(), &file.notes[0]), expect);
    }

    #[test]
    fn phrases_list_rank_and_count() {
        let cell = "cells = { r = { measure = 'stp', over = 'linux', digits = 1 } }";
        let over = "groups = [{ by = 'program' }]\npolicies = ['random']\nby = 'r'";
        let phrase = |kind: &str| {
            format!(
                "text = '{{p}}'\n[notes.phrases.p]\nkind = '{kind}'\nitem = '{{group}} {{r}}'\n\
                 few = 2\n{over}\n{cell}"
            )
        };
        check(&phrase("list"), &["a 1.5, b 0.5, c 2.0"]);
        check(&phrase("top"), &["c 2.0, a 1.5"]);
        check(&phrase("bottom"), &["a 1.5, b 0.5"]);
        check(&phrase("ends"), &["c 2.0, b 0.5"]);
        check(&phrase("above"), &["2"]);
        check(&phrase("below"), &["1"]);
        check(&phrase("count"), &["3"]);
    }

    #[test]
    fn a_note_is_said_of_each_word_of_each_group() {
        let note = "groups = [{ by = 'program', where = { program = 'b' } }]\n\
                    policies = ['linux', 'random']\ntext = '{group} under {policy}'";
        check(note, &["b under linux", "b under random"]);
    }

    #[test]
    fn correlations_are_pearson_s() {
        let line = [(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)];
        assert!((correlation(&line).unwrap() - 1.0).abs() < 1e-12);
        let falling = line.map(|(x, y)| (x, -y));
        assert!((correlation(&falling).unwrap() + 1.0).abs() < 1e-12);
        // By hand: covariance 1, spreads 2 and 2.
        let some = [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (1.0, 1.0)];
        assert_eq!(correlation(&some), Some(0.0));
        assert_eq!(correlation(&[(1.0, 1.0)]), None);
    }
}
