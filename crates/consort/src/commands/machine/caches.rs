//! Caches in words.

use consort_sim::machine::{CacheSpec, CoreSpec, Scope};

/// A capacity in the largest unit that it fills.
pub(super) fn capacity(size_kib: f64) -> String {
    if size_kib >= 1024.0 {
        return format!("{} MiB", size_kib / 1024.0);
    }
    format!("{size_kib} KiB")
}

/// The caches of a core type, one line each.
pub(super) fn lines(core: &CoreSpec) -> Vec<String> {
    let l2 = core.l2.as_ref().map(|l2| line("L2", l2, "per L2 domain"));
    let l1s = [("L1I", &core.l1i), ("L1D", &core.l1d)];
    let l1s = l1s.map(|(name, cache)| line(name, cache, owner(cache.per)));
    l1s.into_iter().chain(l2).collect()
}

fn line(name: &str, cache: &CacheSpec, scope: &str) -> String {
    let (size, ways) = (capacity(cache.size_kib), cache.ways);
    let latency = cycles(cache.latency_cycles);
    format!("{name} {size} {scope}, {ways}-way, {latency}")
}

/// A number of cycles with its unit.
pub(super) fn cycles(n: f64) -> String {
    format!("{n} cycle{}", if n == 1.0 { "" } else { "s" })
}

/// Owner of a cache, in words.
pub(super) fn owner(scope: Scope) -> &'static str {
    match scope {
        Scope::Pu => "per PU",
        Scope::Core => "per core",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_have_the_largest_unit_that_they_fill() {
        assert_eq!(capacity(32.0), "32 KiB");
        assert_eq!(capacity(1024.0), "1 MiB");
        assert_eq!(capacity(1536.0), "1.5 MiB");
    }
}
