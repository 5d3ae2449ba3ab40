//! Grounds on which programs run together: parts of machines.

use crate::error::ValidateError;
use consort_core::PuId;
use consort_sim::chip::Chip;
use consort_sim::machine::presets;
use std::sync::Arc;

/// PUs of a machine that are used.
#[derive(Clone, Copy, Debug)]
enum PuSelection {
    /// So many PUs of the first core.
    Core(usize),
    /// One PU each of so many cores of the first LLC domain.
    Cores(usize),
    /// One PU of a core of each type.
    Types,
}

/// A part of a machine.
struct ChipPartSpec {
    key: &'static str,
    machine: &'static str,
    smt: Option<u32>,
    part: PuSelection,
}

/// Sites by what they show: SMT on cores that share buffers in unlike ways, a shared FPU, two types
/// of cores, a shared LLC.
const SITES: &[ChipPartSpec] = &[
    part_spec(
        "core-i7-6700-smt2",
        "core-i7-6700",
        None,
        PuSelection::Core(2),
    ),
    part_spec("power7-smt2", "power7", Some(2), PuSelection::Core(2)),
    part_spec("power8-smt2", "power8", Some(2), PuSelection::Core(2)),
    part_spec(
        "bulldozer-module",
        "bulldozer-6282se",
        None,
        PuSelection::Core(2),
    ),
    part_spec("acmp-large-and-small", "acmp-1+1", None, PuSelection::Types),
    part_spec("power7-smt4", "power7", Some(4), PuSelection::Core(4)),
    part_spec("power8-smt4", "power8", Some(4), PuSelection::Core(4)),
    part_spec(
        "core-i7-6700-llc",
        "core-i7-6700",
        None,
        PuSelection::Cores(4),
    ),
];

const fn part_spec(
    key: &'static str,
    machine: &'static str,
    smt: Option<u32>,
    part: PuSelection,
) -> ChipPartSpec {
    ChipPartSpec {
        key,
        machine,
        smt,
        part,
    }
}

/// A part of a machine, ready to run programs on.
pub(super) struct ChipPart {
    /// Its name in tables.
    pub(super) key: &'static str,
    /// The machine.
    pub(super) chip: Arc<Chip>,
    /// The PUs that programs run on.
    pub(super) pus: Vec<PuId>,
}

impl ChipPart {
    /// All of them; those for two programs come first.
    ///
    /// # Errors
    /// A machine that cannot be made, which the tests rule out.
    pub(super) fn all() -> Result<Vec<Self>, ValidateError> {
        SITES.iter().map(Self::new).collect()
    }

    fn new(site: &ChipPartSpec) -> Result<Self, ValidateError> {
        let spec = presets::find(site.machine)?;
        let chip = Arc::new(Chip::new(&spec, site.smt)?);
        let pus = select_pus(&chip, site.part);
        Ok(Self {
            key: site.key,
            chip,
            pus,
        })
    }

    /// Places that differ from those before them: by core type.
    pub(super) fn distinct_places(&self) -> Vec<usize> {
        let kind = |place: &usize| self.chip.places()[self.pus[*place].0 as usize].core_type;
        let places = 0..self.pus.len();
        let new = |place: &usize| (0..*place).all(|before| kind(&before) != kind(place));
        places.filter(new).collect()
    }
}

fn select_pus(chip: &Chip, part: PuSelection) -> Vec<PuId> {
    let places = chip.places();
    let mut found: Vec<usize> = Vec::new();
    for pu in 0..places.len() {
        let place = places[pu];
        let is_new = |key: fn(&consort_sim::chip::PuPlace) -> usize| {
            found
                .iter()
                .all(|&other| key(&places[other]) != key(&place))
        };
        let fits = match part {
            PuSelection::Core(n) => place.core == places[0].core && found.len() < n,
            PuSelection::Cores(n) => {
                place.llc == places[0].llc && found.len() < n && is_new(|place| place.core)
            }
            PuSelection::Types => is_new(|place| place.core_type),
        };
        if fits {
            found.push(pu);
        }
    }
    found.into_iter().map(|pu| PuId(pu as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_has_its_pus() {
        let grounds = ChipPart::all().unwrap();
        let sizes: Vec<usize> = grounds.iter().map(|ground| ground.pus.len()).collect();
        assert_eq!(sizes, [2, 2, 2, 2, 2, 4, 4, 4]);
        let unlike: Vec<usize> = grounds
            .iter()
            .map(|ground| ground.distinct_places().len())
            .collect();
        assert_eq!(unlike, [1, 1, 1, 1, 2, 1, 1, 1]);
    }
}
