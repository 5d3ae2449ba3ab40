//! Parsing of an event file's text.

use super::file::{
    EventDefinition, EventFile, EventFileError, FormulaPart, PmuEvents, SignalFormula,
};
use super::schema::{RawEvent, RawFile, RawFormula, RawPmu};
use super::validate::{self, EventFileProblem};
use std::ops::Range;

/// Parses and validates an event file; `file` is its name for errors.
///
/// # Errors
/// When the file has an unknown key, an impossible value or an undefined name; the error is about
/// the first one.
pub fn parse_event_file(file: &str, text: &str) -> Result<EventFile, EventFileError> {
    let located = |problem: EventFileProblem| EventFileError {
        file: file.to_owned(),
        line: line_of(text, problem.at.start),
        problem: problem.what,
    };
    let raw: RawFile = toml::from_str(text).map_err(|e| {
        let at = e.span().unwrap_or(0..0);
        located(EventFileProblem::new(
            at,
            prepend_key(text, e.message(), e.span()),
        ))
    })?;
    validate::check_file(&raw).map_err(located)?;
    Ok(convert(raw))
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|&&b| b == b'\n').count() + 1
}

/// Puts the key before serde's message about a bad value, which does not name it.
fn prepend_key(text: &str, message: &str, at: Option<Range<usize>>) -> String {
    let line = at.and_then(|at| text.lines().nth(line_of(text, at.start) - 1));
    let key = line
        .and_then(|line| line.split_once('='))
        .map(|(key, _)| key.trim());
    match key {
        Some(key) if !message.contains(key) => format!("{key}: {message}"),
        _ => message.to_owned(),
    }
}

fn convert(raw: RawFile) -> EventFile {
    EventFile {
        name: raw.name.into_inner(),
        title: raw.title,
        sources: raw.sources.into_inner(),
        matches: raw.matches.into_inner(),
        pmus: raw.pmus.into_inner().into_iter().map(pmu).collect(),
    }
}

fn pmu(raw: RawPmu) -> PmuEvents {
    PmuEvents {
        names: raw.names.into_inner(),
        programmable: raw.programmable.into_inner(),
        fixed: raw.fixed.into_inner(),
        events: raw.events.into_inner().into_iter().map(event).collect(),
        formulas: raw.formulas.into_inner().into_iter().map(formula).collect(),
    }
}

fn event(raw: RawEvent) -> EventDefinition {
    EventDefinition {
        name: raw.name.into_inner(),
        config: raw.config,
        config1: raw.config1,
        config2: raw.config2,
        unit: raw.unit,
        place: raw.place,
        counters: raw.counters.map(toml::Spanned::into_inner),
        slots: raw.slots.map_or(1, toml::Spanned::into_inner),
        leader: raw.leader.map(toml::Spanned::into_inner),
    }
}

fn formula(raw: RawFormula) -> SignalFormula {
    let single = raw.value.map(|value| FormulaPart {
        name: String::new(),
        value: value.into_inner().0,
    });
    let named = raw.components.map(toml::Spanned::into_inner);
    let named = named.into_iter().flatten().map(|component| FormulaPart {
        name: component.name,
        value: component.value.into_inner().0,
    });
    SignalFormula {
        signal: raw.signal.into_inner(),
        parts: single.into_iter().chain(named).collect(),
    }
}
