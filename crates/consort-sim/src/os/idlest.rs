//! The search for the idlest PU: by domain, then by core, then by PU; ties by the seed.

use super::OsView;
use crate::engine::draw::RandomStream;

/// The allowed PU of `among` whose core is idlest, and on it the idlest.
pub(crate) fn idlest_pu(
    view: &OsView<'_>,
    draw: &mut RandomStream,
    thread: usize,
    among: &[usize],
) -> Option<usize> {
    let score = |pu: usize| {
        let core = &view.shape.cores[view.shape.core[pu]];
        let crowd = if view.load(pu) == 0 {
            view.sum(core)
        } else {
            usize::MAX
        };
        (crowd, view.load(pu))
    };
    let allowed = among.iter().copied().filter(|&pu| view.allows(thread, pu));
    least_by_score(draw, allowed, score)
}

/// The LLC domain with the fewest runnable threads per PU among those where a thread may run.
pub(crate) fn idlest_llc(
    view: &OsView<'_>,
    draw: &mut RandomStream,
    thread: usize,
) -> Option<usize> {
    let open = |pus: &[usize]| pus.iter().any(|&pu| view.allows(thread, pu));
    let llcs = (0..view.shape.llcs.len()).filter(|&l| open(&view.shape.llcs[l]));
    // In 1024ths of a thread per PU: fractions in lowest terms would need cross products.
    least_by_score(draw, llcs, |l| {
        view.sum(&view.shape.llcs[l]) * 1024 / view.shape.llcs[l].len()
    })
}

/// One of those with the least score, each as likely as the others.
pub(crate) fn least_by_score<K: PartialOrd>(
    draw: &mut RandomStream,
    among: impl Iterator<Item = usize>,
    score: impl Fn(usize) -> K,
) -> Option<usize> {
    let mut best: Option<(K, usize)> = None;
    let mut ties = 0;
    for candidate in among {
        let key = score(candidate);
        match &best {
            Some((least, _)) if key > *least => continue,
            Some((least, _)) if key == *least => ties += 1,
            _ => ties = 1,
        }
        if ties == 1 || draw.uniform_below(ties) == 0 {
            best = Some((key, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
