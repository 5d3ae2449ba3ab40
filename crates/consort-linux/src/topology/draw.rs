//! A topology as a few lines of text, good to read at 2 CPUs and at 256.
//!
//! ```text
//! 2 packages, 2 nodes, 4 LLC domains, 16 cores, 32 CPUs
//! package 0 > node 0
//!   LLC 0: 4 x core {2 CPUs}: 0-3 + 16-19
//!   LLC 1: 4 x core {2 CPUs}: 4-7 + 20-23
//! ```
//!
//! The coarser kind of group stands outside: nodes hold packages where a hypervisor makes every CPU
//! a socket. A kind with one member is joined to its parent by `>`, equal cores are one entry, and
//! so are neighbouring groups of one core each. `0-3 + 16-19` means that 0 and 16 share a core, 1
//! and 17, and so on; `0-7 (siblings adjacent)` that 0 and 1 do. A group that lies only partly
//! in the group around it is marked `(part)`. Last-level caches show their sizes if these differ, and
//! level 2 caches are named if several cores share one.

use consort_core::topology::{Core, Domain, Topology};
use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;

/// Draws packages, nodes, LLC domains, cores and CPUs, one line per element of the result.
pub fn draw(topology: &Topology) -> Vec<String> {
    let counts = [
        count(topology.packages().len(), "package"),
        count(topology.nodes().len(), "node"),
        count(topology.llcs().len(), "LLC domain"),
        count(topology.cores().len(), "core"),
        count(topology.pus().len(), "CPU"),
    ];
    let mut lines = vec![counts.join(", ")];
    lines.extend(core_types(topology));
    lines.extend(shared_l2s(topology));
    let mut levels = [
        level("package", topology.packages(), |c| c.package),
        level("node", topology.nodes(), |c| c.node),
        level("LLC", topology.llcs(), |c| c.llc),
    ];
    // The coarser kind of group stands outside: nodes hold packages if a hypervisor makes every CPU
    // a socket.
    levels.sort_by_key(|level| level.domains.len());
    let drawing = Drawing { topology };
    let all: Vec<usize> = (0..topology.cores().len()).collect();
    drawing.draw_groups(&levels, &all, "", "", &mut lines);
    lines
}

fn core_types(t: &Topology) -> Option<String> {
    let show =
        |c: &consort_core::topology::CoreType| format!("{} (capacity {})", c.name, c.capacity);
    let types: Vec<String> = t.core_types().iter().map(show).collect();
    (types.len() > 1).then(|| format!("core types: {}", types.join(", ")))
}

/// The level 2 caches that several cores share: neighbours that are alike together, as in
/// `2 x 2 MiB for 4 cores: 16-23`.
fn shared_l2s(t: &Topology) -> Option<String> {
    let shared: Vec<&Domain> = t.l2s().iter().filter(|l2| l2.cores.len() > 1).collect();
    let alike =
        shared.chunk_by(|a, b| (a.size_bytes, a.cores.len()) == (b.size_bytes, b.cores.len()));
    let show = |run: &[&Domain]| {
        let pus = run.iter().fold(PuSet::new(), |all, l2| all.union(&l2.pus));
        let size = run[0]
            .size_bytes
            .map_or("unknown size".to_owned(), size_text);
        let cores = count(run[0].cores.len(), "core");
        format!("{} x {size} for {cores}: {pus}", run.len())
    };
    let runs: Vec<String> = alike.map(show).collect();
    (!runs.is_empty()).then(|| format!("shared L2: {}", runs.join(", ")))
}

fn size_text(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    match kib >= 1024.0 {
        true => format!("{} MiB", kib / 1024.0),
        false => format!("{kib} KiB"),
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A kind of group, and the index of each core's group.
struct DomainLevel<'a> {
    name: &'static str,
    domains: &'a [Domain],
    of: fn(&Core) -> usize,
}

fn level<'a>(name: &'static str, domains: &'a [Domain], of: fn(&Core) -> usize) -> DomainLevel<'a> {
    DomainLevel { name, domains, of }
}

/// Groups that are drawn as one entry: one group, or several of one core each.
struct DrawnGroup {
    domains: Vec<usize>,
    cores: Vec<usize>,
}

struct Drawing<'a> {
    topology: &'a Topology,
}

impl Drawing<'_> {
    fn core(&self, index: usize) -> &Core {
        &self.topology.cores()[index]
    }

    /// Type of a core and its number of CPUs; cores with the same are drawn together.
    fn shape(&self, index: usize) -> (usize, usize) {
        let core = self.core(index);
        (core.core_type, core.pus.len())
    }

    /// Draws the outermost of the levels and, within it, the rest. `path` names the groups around
    /// that have no line yet.
    fn draw_groups(
        &self,
        levels: &[DomainLevel<'_>],
        cores: &[usize],
        path: &str,
        indent: &str,
        out: &mut Vec<String>,
    ) {
        let Some((level, rest)) = levels.split_first() else {
            return self.draw_cores(cores, path, indent, out);
        };
        let entries = self.entries(level, cores);
        let (path, indent) = match entries.len() {
            // A kind with one member gets no line of its own.
            1 => (path.to_owned(), indent.to_owned()),
            _ => draw_heading(path, indent, out),
        };
        for entry in &entries {
            let label = label(level, entry);
            let path = if path.is_empty() {
                label
            } else {
                format!("{path} > {label}")
            };
            if entry.domains.len() > 1 {
                out.push(format!(
                    "{indent}{path}, each {}",
                    self.equal_cores(&entry.cores, 1)
                ));
            } else {
                self.draw_groups(rest, &entry.cores, &path, &indent, out);
            }
        }
    }

    fn entries(&self, level: &DomainLevel<'_>, cores: &[usize]) -> Vec<DrawnGroup> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &core in cores {
            groups
                .entry((level.of)(self.core(core)))
                .or_default()
                .push(core);
        }
        let mut entries: Vec<DrawnGroup> = Vec::new();
        for (domain, cores) in groups {
            match entries.last_mut() {
                Some(last) if self.can_join(level, last, domain, &cores) => {
                    last.domains.push(domain);
                    last.cores.extend(cores);
                }
                _ => entries.push(DrawnGroup {
                    domains: vec![domain],
                    cores,
                }),
            }
        }
        entries
    }

    /// Returns true if a group can be drawn together with those before it: one core each, all
    /// equal, with caches of one size.
    fn can_join(
        &self,
        level: &DomainLevel<'_>,
        before: &DrawnGroup,
        domain: usize,
        cores: &[usize],
    ) -> bool {
        let size = |domain: usize| level.domains[domain].size_bytes;
        size(before.domains[0]) == size(domain)
            && before.domains.len() == before.cores.len()
            && cores.len() == 1
            && self.shape(before.cores[0]) == self.shape(cores[0])
    }

    fn draw_cores(&self, cores: &[usize], path: &str, indent: &str, out: &mut Vec<String>) {
        let runs: Vec<&[usize]> = cores
            .chunk_by(|&a, &b| self.shape(a) == self.shape(b))
            .collect();
        if let [run] = runs[..] {
            out.push(format!(
                "{indent}{path}: {}",
                self.equal_cores(run, run.len())
            ));
            return;
        }
        let (_, indent) = draw_heading(path, indent, out);
        let lines = runs
            .into_iter()
            .map(|run| format!("{indent}{}", self.equal_cores(run, run.len())));
        out.extend(lines);
    }

    /// Describes equal cores, as in `8 x P core {2 CPUs}: 0-7 + 8-15`, with `n` as the number.
    fn equal_cores(&self, cores: &[usize], n: usize) -> String {
        let members: Vec<&Core> = cores.iter().map(|&c| self.core(c)).collect();
        let (core_type, ways) = self.shape(cores[0]);
        let types = self.topology.core_types();
        let name = match types.len() {
            1 => String::new(),
            _ => format!("{} ", types[core_type].name),
        };
        format!(
            "{n} x {name}core {{{}}}: {}",
            count(ways, "CPU"),
            pu_text(&members)
        )
    }
}

/// Gives the groups around a line of their own; the lines that follow are indented below it.
fn draw_heading(path: &str, indent: &str, out: &mut Vec<String>) -> (String, String) {
    if path.is_empty() {
        return (String::new(), indent.to_owned());
    }
    out.push(format!("{indent}{path}"));
    (String::new(), format!("{indent}  "))
}

fn label(level: &DomainLevel<'_>, entry: &DrawnGroup) -> String {
    let domain = |i: usize| &level.domains[entry.domains[i]];
    let last = entry.domains.len() - 1;
    let whole: usize = entry
        .domains
        .iter()
        .map(|&d| level.domains[d].cores.len())
        .sum();
    let part = if whole > entry.cores.len() {
        " (part)"
    } else {
        ""
    };
    // The size of a last-level cache, if these differ on this machine.
    let size_bytes = domain(0).size_bytes;
    let size_bytes =
        size_bytes.filter(|_| level.domains.iter().any(|d| d.size_bytes != size_bytes));
    let size = size_bytes.map_or(String::new(), |bytes| format!(" ({})", size_text(bytes)));
    match last {
        0 => format!("{} {}{size}{part}", level.name, domain(0).key),
        _ => format!(
            "{} x {} {}..{}{size}{part}",
            last + 1,
            level.name,
            domain(0).key,
            domain(last).key
        ),
    }
}

/// The CPUs of equal cores as text that shows siblings.
pub(super) fn pu_text(cores: &[&Core]) -> String {
    let all: PuSet = cores.iter().flat_map(|c| c.pus.iter().copied()).collect();
    let one_way = cores.iter().all(|c| c.pus.len() == 1);
    if one_way || cores.len() == 1 {
        return all.to_string();
    }
    let are_adjacent = |c: &&Core| c.pus.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
    if cores.iter().all(are_adjacent) {
        return format!("{all} (siblings adjacent)");
    }
    list_by_way(cores).unwrap_or_else(|| list_by_core(cores))
}

/// A list of each core's first CPUs, one of the second, and so on, where positions in the lists
/// show the cores and the lists are short.
fn list_by_way(cores: &[&Core]) -> Option<String> {
    let ways = cores.first()?.pus.len();
    let way = |w: usize| -> Vec<PuId> { cores.iter().map(|c| c.pus[w]).collect() };
    let lists: Vec<Vec<PuId>> = (0..ways).map(way).collect();
    if !lists.iter().all(|list| list.is_sorted()) {
        return None;
    }
    let text = |list: &Vec<PuId>| list.iter().copied().collect::<PuSet>().to_string();
    let text = lists.iter().map(text).collect::<Vec<_>>().join(" + ");
    // Positions in long lists are hard to follow, so the shorter form wins.
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

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::PuId;
    use consort_core::topology::{CoreType, PuFacts};
    use proptest::prelude::*;

    /// One CPU for each (package, node, core, LLC).
    fn drawn(places: &[(u32, u32, u32, u32)]) -> Vec<String> {
        draw(&topology(places))
    }

    fn topology(places: &[(u32, u32, u32, u32)]) -> Topology {
        let fact = |(pu, &(package, node, core, llc))| PuFacts {
            pu: PuId(pu),
            package,
            node,
            core,
            llc,
            l2: None,
            core_type: 0,
        };
        let facts = (0..).zip(places).map(fact).collect();
        Topology::new(facts, vec![CoreType::uniform()]).unwrap()
    }

    #[test]
    fn two_pus_are_one_line_and_a_summary() {
        assert_eq!(
            drawn(&[(0, 0, 0, 0), (0, 0, 1, 0)]),
            [
                "1 package, 1 node, 1 LLC domain, 2 cores, 2 CPUs",
                "package 0 > node 0 > LLC 0: 2 x core {1 CPU}: 0-1"
            ]
        );
    }

    #[test]
    fn single_pu_sockets_are_one_line_per_node() {
        let places: Vec<_> = (0..256).map(|i| (i, i / 128, i, i)).collect();
        assert_eq!(
            drawn(&places)[1..],
            [
                "node 0 > 128 x package 0..127, each 1 x core {1 CPU}: 0-127",
                "node 1 > 128 x package 128..255, each 1 x core {1 CPU}: 128-255"
            ]
        );
    }

    #[test]
    fn siblings_can_be_found_however_they_are_numbered() {
        let cores = |numbers: [u32; 6]| drawn(&numbers.map(|core| (0, 0, core, 0)))[1].clone();
        let text = |text: &str| format!("package 0 > node 0 > LLC 0: 3 x core {{2 CPUs}}: {text}");
        assert_eq!(cores([0, 1, 2, 0, 1, 2]), text("0-2 + 3-5"));
        assert_eq!(cores([0, 0, 1, 1, 2, 2]), text("0-5 (siblings adjacent)"));
        assert_eq!(cores([0, 1, 2, 2, 1, 0]), text("0+5 1+4 2+3"));
    }

    #[test]
    fn unequal_caches_and_shared_l2s_are_shown() {
        let two = topology(&[(0, 0, 0, 0), (0, 0, 1, 0), (0, 0, 2, 1)]);
        let sizes = |pairs: &[(u32, u64)]| pairs.iter().copied().collect();
        let unequal = two
            .clone()
            .with_cache_sizes(&sizes(&[(0, 96 << 20), (1, 32 << 20)]), &sizes(&[]));
        assert_eq!(
            draw(&unequal)[2..],
            [
                "  LLC 0 (96 MiB): 2 x core {1 CPU}: 0-1",
                "  LLC 1 (32 MiB): 1 x core {1 CPU}: 2"
            ]
        );
        let equal = two.with_cache_sizes(&sizes(&[(0, 512 << 10), (1, 512 << 10)]), &sizes(&[]));
        assert!(!draw(&equal).join("\n").contains("KiB"));
        let facts = equal.facts().into_iter().map(|f| PuFacts {
            l2: Some(f.llc),
            ..f
        });
        let shared = Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap();
        let shared = shared.with_cache_sizes(&sizes(&[]), &sizes(&[(0, 1536 << 10)]));
        assert_eq!(draw(&shared)[1], "shared L2: 1 x 1.5 MiB for 2 cores: 0-1");
    }

    #[test]
    fn what_crosses_the_group_around_it_is_marked() {
        let lines = drawn(&[(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 2, 1), (1, 1, 3, 1)]);
        assert!(lines.iter().any(|l| l.contains("(part)")), "{lines:?}");
    }

    proptest! {
        #[test]
        fn every_pu_is_drawn(places in prop::collection::vec((0u32..2, 0u32..2, 0u32..3), 1..24), smt in 1u32..4) {
            let places: Vec<_> = places.iter().zip(0u32..)
                .flat_map(|(&(package, node, llc), core)| (0..smt).map(move |_| (package, node, core, llc)))
                .collect();
            let drawn_pus = drawn(&places)[1..].iter()
                .filter_map(|line| line.rsplit_once(": "))
                .map(|(_, pus)| pus.replace(" (siblings adjacent)", "").replace(['+', ' '], ","))
                .fold(PuSet::new(), |all, pus| all.union(&pus.parse().unwrap()));
            prop_assert_eq!(drawn_pus.len(), places.len());
        }
    }
}
