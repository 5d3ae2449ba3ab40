//! Checks of what a program file says of branches.

use super::{MOST_MPKI, check_optional};
use crate::describe::Problems;
use crate::program::{BranchSpec, MixSpec, ResolutionSpec};

/// No more branches can be mispredicted than there are.
pub(super) fn check(key: &str, branch: &BranchSpec, mix: &MixSpec, problems: &mut Problems) {
    let branches_pki = (1000.0 * mix.branch).clamp(0.0, MOST_MPKI);
    problems.check_range(format!("{key}.mpki"), branch.mpki, 0.0, branches_pki);
    let exponent = branch.capacity_exponent;
    problems.check_range(format!("{key}.capacity_exponent"), exponent, 0.0, 2.0);
    for (name, points) in [
        ("tagged_mpki", branch.tagged_mpki),
        ("gshare_mpki", branch.gshare_mpki),
    ] {
        for (i, mpki) in points.into_iter().flatten().enumerate() {
            problems.check_range(format!("{key}.{name}[{i}]"), mpki, 0.0, branches_pki);
        }
    }
    for (i, mpki) in branch.target_mpki.into_iter().flatten().enumerate() {
        problems.check_range(format!("{key}.target_mpki[{i}]"), mpki, 0.0, branches_pki);
    }
    check_resolution(&format!("{key}.resolution"), branch.resolution, problems);
    let gshare = format!("{key}.gshare_resolution");
    check_resolution(&gshare, branch.gshare_resolution, problems);
}

fn check_resolution(key: &str, resolution: Option<ResolutionSpec>, problems: &mut Problems) {
    let Some(resolution) = resolution else { return };
    problems.check_range(format!("{key}.cycles"), resolution.cycles, 1.0, 1000.0);
    let absorbed = resolution.absorbed;
    problems.check_range(format!("{key}.absorbed"), absorbed, 0.0, 1.0);
    if let Some(slow) = resolution.absorbed_slow {
        problems.check_range(format!("{key}.absorbed_slow"), slow, 0.0, 1.0);
    }
    let misses = format!("{key}.misses");
    check_optional(misses, resolution.misses, (0.0, 100.0), problems);
}
