//! The notes of a study, from its frames.

use super::file::{NoteSpec, PhraseKind, PhraseSpec, ViewLoop};
use super::frames::{Frames, LoopTurn, TemplateWords};
use super::template::fill;
use consort_core::stats::pearson;
use consort_data::Cell;
use std::cmp::Ordering;
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

impl PhraseItem {
    fn cell(&self, name: Option<&String>) -> Option<&Cell> {
        self.cells.get(name?)
    }

    fn value(&self, name: Option<&String>) -> Option<f64> {
        self.cell(name)?.value()
    }

    /// The words of the item, its cells among them.
    fn words(&self, phrase: &PhraseSpec) -> TemplateWords {
        let mut words = self.turn.words.clone();
        for (name, cell) in &self.cells {
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
}

fn phrase_text(frames: &Frames, note: &NoteSpec, phrase: &PhraseSpec, turn: &LoopTurn) -> String {
    let items = items(frames, note, phrase, turn);
    let by = phrase.by.as_ref();
    let text = |some: Vec<&PhraseItem>| {
        let texts = some.into_iter().map(|item| {
            let mut words = item.words(phrase);
            for (name, inner) in &phrase.phrases {
                words.insert(name.clone(), phrase_text(frames, note, inner, &item.turn));
            }
            fill(&phrase.item, &words)
        });
        texts.collect::<Vec<_>>().join(&phrase.join)
    };
    // Items without a value rank as if they were equal to the policy that they are compared with.
    let value_or_one = |item: &PhraseItem| item.value(by).unwrap_or(1.0);
    // Values above 1, or below with the sign -1, beyond their intervals.
    let count_beyond = |sign: f64| {
        let is_beyond = |item: &&PhraseItem| {
            let half = item.cell(by).and_then(Cell::ci95).unwrap_or(0.0);
            sign * (value_or_one(item) - 1.0) > half
        };
        items.iter().filter(is_beyond).count().to_string()
    };
    let mut ranked: Vec<(f64, &PhraseItem)> = { items.iter() }
        .filter_map(|item| Some((item.value(by)?, item)))
        .collect();
    ranked.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let ranked: Vec<&PhraseItem> = ranked.into_iter().map(|(_, item)| item).collect();
    let few = phrase.few.min(ranked.len());
    match phrase.kind {
        PhraseKind::List => text(items.iter().collect()),
        PhraseKind::Top => text(ranked[..few].to_vec()),
        PhraseKind::Bottom => text(ranked[ranked.len() - few..].to_vec()),
        PhraseKind::Ends => {
            let order =
                |a: &&PhraseItem, b: &&PhraseItem| value_or_one(a).total_cmp(&value_or_one(b));
            let most = items.iter().max_by(order);
            text(most.into_iter().chain(items.iter().min_by(order)).collect())
        }
        PhraseKind::Above => count_beyond(1.0),
        PhraseKind::Below => count_beyond(-1.0),
        PhraseKind::Count => items.len().to_string(),
        PhraseKind::Correlation => {
            let pairs = items.iter().filter_map(|item| {
                let with = item.value(phrase.with.as_ref())?;
                Some((with, item.value(by)?))
            });
            let cell = pearson(&pairs.collect::<Vec<_>>()).map(Cell::from);
            cell.unwrap_or_else(|| Cell::missing("one program")).text()
        }
        PhraseKind::Same => {
            let cell = by.and_then(|by| phrase.cells.get(by));
            let same = items
                .iter()
                .map(|item| cell.map_or(0, |cell| frames.count_same_cases(cell, &item.turn)));
            same.sum::<usize>().to_string()
        }
    }
}

/// The items of a phrase: of its own groups, or of the note's group if it has none.
fn items(
    frames: &Frames,
    note: &NoteSpec,
    phrase: &PhraseSpec,
    turn: &LoopTurn,
) -> Vec<PhraseItem> {
    let own = phrase.looped();
    // The note's experiment, unless the phrase names one.
    let over = ViewLoop {
        from: own.from.or(note.from.as_deref()),
        ..own
    };
    let turns = match phrase.groups.is_empty() && phrase.from.is_none() {
        true => frames
            .loop_words(over)
            .iter()
            .map(|words| turn.with_words(words))
            .collect(),
        false => frames.turns(over).concat(),
    };
    let items = turns.into_iter().map(|mut own| {
        let mut words = turn.words.clone();
        words.extend(own.words);
        own.words = words;
        let cells = phrase.cells.iter();
        let cells = cells.map(|(name, cell)| (name.clone(), frames.cell(cell, &own)));
        PhraseItem {
            cells: cells.collect(),
            turn: own,
        }
    });
    items.collect()
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
    fn note_repeats_for_each_word_and_group() {
        let note = "groups = [{ by = 'program', where = { program = 'b' } }]\n\
                    policies = ['linux', 'random']\ntext = '{group} under {policy}'";
        check(note, &["b under linux", "b under random"]);
    }
}
