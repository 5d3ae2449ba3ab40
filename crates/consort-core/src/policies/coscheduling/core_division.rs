//! Cores of each program of a slot.

use crate::coscheduling::CoscheduleSlot;
use crate::ids::ProgramId;
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Divides the cores: each program gets neighbours in the order of last-level cache domains, the
/// programs with most cores first, so that few domains are shared. The source does not say which
/// cores a program gets.
pub fn divide_cores(topology: &Topology, slot: &CoscheduleSlot) -> BTreeMap<ProgramId, PuSet> {
    let mut cores: Vec<_> = topology.cores().iter().collect();
    cores.sort_by_key(|core| core.llc);
    let mut teams = slot.teams.clone();
    teams.sort_by_key(|team| std::cmp::Reverse(team.cores));
    let mut cores = cores.into_iter();
    let mut seats = BTreeMap::new();
    for team in teams {
        let own = cores.by_ref().take(team.cores as usize);
        let pus: PuSet = own.flat_map(|core| core.pus.iter().copied()).collect();
        seats.insert(team.program, pus);
    }
    seats
}

#[cfg(test)]
mod tests {
    use super::super::testing::pairs;
    use super::*;
    use crate::coscheduling::ProgramTeam;

    fn seated(cores: &[u32]) -> Vec<String> {
        let team = |(n, &cores): (usize, &u32)| ProgramTeam {
            program: ProgramId(n as u32),
            cores,
        };
        let slot = CoscheduleSlot {
            teams: cores.iter().enumerate().map(team).collect(),
        };
        let seats = divide_cores(&pairs(4), &slot);
        seats.values().map(ToString::to_string).collect()
    }

    #[test]
    fn programs_get_whole_cache_domains_where_they_can() {
        // Four domains of two cores; PUs of a domain are n and n + 4.
        assert_eq!(seated(&[4, 4]), ["0-1,4-5", "2-3,6-7"]);
        assert_eq!(seated(&[1, 4, 1, 2]), ["3", "0-1,4-5", "7", "2,6"]);
    }

    #[test]
    fn cores_that_are_not_there_are_not_given() {
        assert_eq!(seated(&[6, 6]), ["0-2,4-6", "3,7"]);
    }
}
