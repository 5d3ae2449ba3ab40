//! Rules for event files beyond their form.

use super::schema::{CounterKind, EventUnit, MatchRule, RawEvent, RawFile, RawFormula, RawPmu};
use consort_core::Signal;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// A fault, and the bytes of the file that have it.
pub(crate) struct EventFileProblem {
    pub at: Range<usize>,
    pub what: String,
}

impl EventFileProblem {
    pub(crate) fn new(at: Range<usize>, what: impl Into<String>) -> Self {
        Self {
            at,
            what: what.into(),
        }
    }
}

type CheckResult = Result<(), EventFileProblem>;

/// Checks a whole file.
pub(crate) fn check_file(raw: &RawFile) -> CheckResult {
    require_filled("sources", &raw.sources)?;
    require_filled("match", &raw.matches)?;
    require_filled("pmu", &raw.pmus)?;
    for rule in raw.matches.get_ref() {
        check_match_rule(rule, raw.matches.span())?;
    }
    raw.pmus.get_ref().iter().try_for_each(check_pmu)
}

fn require(holds: bool, at: Range<usize>, what: impl Into<String>) -> CheckResult {
    if holds {
        Ok(())
    } else {
        Err(EventFileProblem::new(at, what))
    }
}

fn require_filled<T>(key: &str, list: &Spanned<Vec<T>>) -> CheckResult {
    let what = format!("{key} is empty; give at least one");
    require(!list.get_ref().is_empty(), list.span(), what)
}

fn check_match_rule(rule: &MatchRule, at: Range<usize>) -> CheckResult {
    let MatchRule::X86 { models, .. } = rule else {
        return Ok(());
    };
    let ordered = !models.is_empty() && models.iter().all(|[first, last]| first <= last);
    let what = "models needs ranges [first, last] with first not above last";
    require(ordered, at, what)
}

fn check_pmu(raw: &RawPmu) -> CheckResult {
    require_filled("names", &raw.names)?;
    let counters = *raw.programmable.get_ref();
    let what = "programmable is out of range; give 1 to 32";
    require((1..=32).contains(&counters), raw.programmable.span(), what)?;
    check_names(raw)?;
    for event in raw.events.get_ref() {
        check_placement(event, raw)?;
        check_leader(event, raw)?;
    }
    check_fixed_counters(raw)?;
    check_anchors(raw)?;
    check_formulas(raw)
}

fn check_names(raw: &RawPmu) -> CheckResult {
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

fn check_placement(event: &RawEvent, raw: &RawPmu) -> CheckResult {
    let slots = event.slots.as_ref().map_or(1, |s| *s.get_ref());
    let at = event
        .slots
        .as_ref()
        .map_or(event.name.span(), Spanned::span);
    let what = "slots is out of range; give 1 or 2";
    require((1..=2).contains(&slots), at, what)?;
    let programmable = event.place == CounterKind::Programmable;
    let constrained = slots > 1 || event.counters.is_some();
    let what = "counters and slots are for programmable events only";
    require(programmable || !constrained, event.name.span(), what)?;
    let Some(counters) = &event.counters else {
        return Ok(());
    };
    require_filled("counters", counters)?;
    let count = *raw.programmable.get_ref();
    let inside = counters.get_ref().iter().all(|&c| c < count);
    let what = format!("counters names one outside 0 to {}", count - 1);
    require(inside, counters.span(), what)
}

fn check_leader(event: &RawEvent, raw: &RawPmu) -> CheckResult {
    let Some(leader) = &event.leader else {
        let what = "place \"metric\" needs a leader";
        return require(event.place != CounterKind::Metric, event.name.span(), what);
    };
    let name = leader.get_ref();
    let leads = |e: &RawEvent| e.name.get_ref() == name && e.leader.is_none();
    let what = format!("leader {name:?} is not an event of this PMU without a leader of its own");
    require(raw.events.get_ref().iter().any(leads), leader.span(), what)
}

fn check_fixed_counters(raw: &RawPmu) -> CheckResult {
    let fixed = |e: &&RawEvent| e.place == CounterKind::Fixed;
    let used = raw.events.get_ref().iter().filter(fixed).count();
    let what = format!("fixed is too low: {used} events have a counter of their own");
    require(used <= *raw.fixed.get_ref(), raw.fixed.span(), what)
}

fn check_anchors(raw: &RawPmu) -> CheckResult {
    for unit in [EventUnit::Cycles, EventUnit::Instructions] {
        let is_anchor = |e: &RawEvent| e.unit == unit && e.leader.is_none();
        let what =
            format!("event: none has unit {unit:?}; every PMU needs cycles and instructions");
        let found = raw.events.get_ref().iter().any(is_anchor);
        require(found, raw.events.span(), what)?;
    }
    Ok(())
}

fn check_formulas(raw: &RawPmu) -> CheckResult {
    let mut seen = BTreeSet::new();
    for formula in raw.formulas.get_ref() {
        let signal = *formula.signal.get_ref();
        let what = format!("signal {signal} has two formulas");
        require(seen.insert(signal), formula.signal.span(), what)?;
        check_formula(formula)?;
        check_known_names(formula, raw)?;
    }
    Ok(())
}

fn check_formula(formula: &RawFormula) -> CheckResult {
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
        .map_or(Ok(()), |list| require_filled("components", list))
}

fn check_known_names(formula: &RawFormula, raw: &RawPmu) -> CheckResult {
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
