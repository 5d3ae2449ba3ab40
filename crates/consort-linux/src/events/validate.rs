//! Rules for event files beyond their form.

use super::schema::{MatchRule, Place, RawEvent, RawFile, RawFormula, RawPmu, Unit};
use consort_core::Signal;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// A fault, and the bytes of the file that have it.
pub(crate) struct Problem {
    pub at: Range<usize>,
    pub what: String,
}

impl Problem {
    pub(crate) fn new(at: Range<usize>, what: impl Into<String>) -> Self {
        Self {
            at,
            what: what.into(),
        }
    }
}

type Checked = Result<(), Problem>;

/// Checks a whole file.
pub(crate) fn file(raw: &RawFile) -> Checked {
    filled("sources", &raw.sources)?;
    filled("match", &raw.matches)?;
    filled("pmu", &raw.pmus)?;
    for rule in raw.matches.get_ref() {
        match_rule(rule, raw.matches.span())?;
    }
    raw.pmus.get_ref().iter().try_for_each(pmu)
}

fn require(holds: bool, at: Range<usize>, what: impl Into<String>) -> Checked {
    if holds {
        Ok(())
    } else {
        Err(Problem::new(at, what))
    }
}

fn filled<T>(key: &str, list: &Spanned<Vec<T>>) -> Checked {
    let what = format!("{key} is empty; give at least one");
    require(!list.get_ref().is_empty(), list.span(), what)
}

fn match_rule(rule: &MatchRule, at: Range<usize>) -> Checked {
    let MatchRule::X86 { models, .. } = rule else {
        return Ok(());
    };
    let ordered = !models.is_empty() && models.iter().all(|[first, last]| first <= last);
    let what = "models needs ranges [first, last] with first not above last";
    require(ordered, at, what)
}

fn pmu(raw: &RawPmu) -> Checked {
    filled("names", &raw.names)?;
    let counters = *raw.programmable.get_ref();
    let what = "programmable is out of range; give 1 to 32";
    require((1..=32).contains(&counters), raw.programmable.span(), what)?;
    names_differ(raw)?;
    for event in raw.events.get_ref() {
        placement(event, raw)?;
        leader(event, raw)?;
    }
    fixed_fit(raw)?;
    anchors(raw)?;
    formulas(raw)
}

fn names_differ(raw: &RawPmu) -> Checked {
    let mut seen = BTreeSet::new();
    for event in raw.events.get_ref() {
        let name = event.name.get_ref();
        let at = event.name.span();
        let first = name.as_bytes().first();
        let spelled = first.is_some_and(u8::is_ascii_lowercase)
            && name
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        let what = format!("name {name:?} is not a name; use a-z first, then a-z, 0-9 and _");
        require(spelled, at.clone(), what)?;
        let what = format!("name {name:?} is given twice; names of one PMU differ");
        require(seen.insert(name), at, what)?;
    }
    Ok(())
}

fn placement(event: &RawEvent, raw: &RawPmu) -> Checked {
    let slots = event.slots.as_ref().map_or(1, |s| *s.get_ref());
    let at = event
        .slots
        .as_ref()
        .map_or(event.name.span(), Spanned::span);
    let what = "slots is out of range; give 1 or 2";
    require((1..=2).contains(&slots), at, what)?;
    let programmable = event.place == Place::Programmable;
    let constrained = slots > 1 || event.counters.is_some();
    let what = "counters and slots are for programmable events only";
    require(programmable || !constrained, event.name.span(), what)?;
    let Some(counters) = &event.counters else {
        return Ok(());
    };
    filled("counters", counters)?;
    let count = *raw.programmable.get_ref();
    let inside = counters.get_ref().iter().all(|&c| c < count);
    let what = format!("counters names one outside 0 to {}", count - 1);
    require(inside, counters.span(), what)
}

fn leader(event: &RawEvent, raw: &RawPmu) -> Checked {
    let Some(leader) = &event.leader else {
        let what = "place \"metric\" needs a leader";
        return require(event.place != Place::Metric, event.name.span(), what);
    };
    let name = leader.get_ref();
    let leads = |e: &RawEvent| e.name.get_ref() == name && e.leader.is_none();
    let what = format!("leader {name:?} is not an event of this PMU without a leader of its own");
    require(raw.events.get_ref().iter().any(leads), leader.span(), what)
}

fn fixed_fit(raw: &RawPmu) -> Checked {
    let fixed = |e: &&RawEvent| e.place == Place::Fixed;
    let used = raw.events.get_ref().iter().filter(fixed).count();
    let what = format!("fixed is too low: {used} events have a counter of their own");
    require(used <= *raw.fixed.get_ref(), raw.fixed.span(), what)
}

fn anchors(raw: &RawPmu) -> Checked {
    for unit in [Unit::Cycles, Unit::Instructions] {
        let is_anchor = |e: &RawEvent| e.unit == unit && e.leader.is_none();
        let what =
            format!("event: none has unit {unit:?}; every PMU needs cycles and instructions");
        let found = raw.events.get_ref().iter().any(is_anchor);
        require(found, raw.events.span(), what)?;
    }
    Ok(())
}

fn formulas(raw: &RawPmu) -> Checked {
    let mut seen = BTreeSet::new();
    for formula in raw.formulas.get_ref() {
        let signal = *formula.signal.get_ref();
        let what = format!("signal {signal} has two formulas");
        require(seen.insert(signal), formula.signal.span(), what)?;
        form(formula)?;
        known_names(formula, raw)?;
    }
    Ok(())
}

fn form(formula: &RawFormula) -> Checked {
    let signal = *formula.signal.get_ref();
    let computable = [
        Signal::Cycles,
        Signal::Instructions,
        Signal::FpUsage,
        Signal::MemoryStall,
        Signal::CycleStack,
        Signal::LlcAccesses,
        Signal::LlcMisses,
    ];
    let at = formula.signal.span();
    let what = format!("signal {signal} does not come from hardware counters");
    require(computable.contains(&signal), at.clone(), what)?;
    let stack = signal == Signal::CycleStack;
    let fits = formula.value.is_some() != stack && formula.components.is_some() == stack;
    let what = "signal cycle-stack needs components, any other a value";
    require(fits, at, what)?;
    formula
        .components
        .as_ref()
        .map_or(Ok(()), |list| filled("components", list))
}

fn known_names(formula: &RawFormula, raw: &RawPmu) -> Checked {
    let components = formula.components.iter().flat_map(Spanned::get_ref);
    let values = components.map(|c| &c.value).chain(&formula.value);
    for value in values {
        for name in value.get_ref().0.names() {
            let known = raw
                .events
                .get_ref()
                .iter()
                .any(|e| e.name.get_ref() == name);
            let what = format!("value: {name:?} is not an event of this PMU");
            require(known, value.span(), what)?;
        }
    }
    Ok(())
}
