//! The PUs of several cores as text that shows siblings.

use consort_core::topology::Core;
use consort_core::{PuId, PuSet};

/// The PUs of equal cores as text that shows siblings.
pub(super) fn pu_text(cores: &[&Core]) -> String {
    let all: PuSet = cores.iter().flat_map(|c| c.pus.iter().copied()).collect();
    let one_way = cores.iter().all(|c| c.pus.len() == 1);
    if one_way || cores.len() == 1 {
        return all.to_string();
    }
    if cores.iter().all(|c| are_consecutive(&c.pus)) {
        return format!("{all} (siblings adjacent)");
    }
    list_by_way(cores).unwrap_or_else(|| list_by_core(cores))
}

fn are_consecutive(pus: &[PuId]) -> bool {
    pus.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0)
}

/// A list of each core's first PUs, one of the second, and so on, where positions in the lists show
/// the cores and the lists are short.
fn list_by_way(cores: &[&Core]) -> Option<String> {
    let ways = cores.first()?.pus.len();
    let way = |w: usize| -> Vec<PuId> { cores.iter().map(|c| c.pus[w]).collect() };
    let lists: Vec<Vec<PuId>> = (0..ways).map(way).collect();
    if !lists.iter().all(|list| list.is_sorted()) {
        return None;
    }
    let text = |list: &Vec<PuId>| list.iter().copied().collect::<PuSet>().to_string();
    let text = lists.iter().map(text).collect::<Vec<_>>().join(" + ");
    (text.len() <= list_by_core(cores).len()).then_some(text)
}

fn list_by_core(cores: &[&Core]) -> String {
    let core = |c: &&Core| {
        c.pus
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("+")
    };
    cores.iter().map(core).collect::<Vec<_>>().join(" ")
}
