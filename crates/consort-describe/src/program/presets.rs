//! The programs that come with Consort, embedded in the binary.
//!
//! `find("hmmer")` gives one; `docs/research/profiles-of-programs.md` says how their numbers came
//! about. A new file in `programs/` needs a line in the list below.

use super::spec::ProgramSpec;
use consort_core::hint;
use std::collections::BTreeMap;
use thiserror::Error;

macro_rules! embedded {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../programs/", $name, ".toml")))),*]
    };
}

/// Name and file of every preset, by name.
const FILES: &[(&str, &str)] = embedded![
    "GemsFDTD" "astar" "barnes" "barrier-heavy" "blackscholes" "bodytrack" "branchy" "bwaves"
    "bzip2" "cactusADM" "calculix" "canneal" "cholesky" "dealII" "dedup" "dram-chaser" "facesim"
    "ferret" "fft" "fluidanimate" "fmm" "freqmine" "gamess" "gcc" "gobmk" "gromacs" "h264ref"
    "hmmer" "io-heavy" "l1-chaser" "l2-chaser" "lbm" "leslie3d" "libquantum" "llc-chaser"
    "lock-heavy" "lu" "lu.cont" "lu.ncont" "matmul-fp" "matmul-int" "mcf" "milc" "monte-carlo"
    "namd" "ocean.cont" "ocean.ncont" "omnetpp" "perlbench" "povray" "pure-fp" "pure-int"
    "radiosity" "radix" "random-loads" "raytrace" "sjeng" "soplex" "sor" "sparse-matmult"
    "sphinx3" "splash-fft" "streamcluster" "streamer" "swaptions" "tonto" "vips" "water.nsq"
    "water.sp" "wrf" "x264" "xalancbmk" "zeusmp"
];

/// Reason why there is no such program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProgramPresetError {
    /// No preset has the name.
    #[error("no program '{name}': {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The file of the preset is not a valid description.
    #[error("program '{name}': {message}")]
    Broken {
        /// The preset.
        name: String,
        /// Account of what is wrong with it.
        message: String,
    },
}

/// Names of all presets, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    FILES.iter().map(|(name, _)| *name)
}

/// The preset of a name.
///
/// # Errors
/// [`ProgramPresetError::Unknown`] with the nearest name when there is none;
/// [`ProgramPresetError::Broken`] when its file is not valid, which the tests rule out.
pub fn find(name: &str) -> Result<ProgramSpec, ProgramPresetError> {
    let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return Err(ProgramPresetError::Unknown {
            name: name.to_owned(),
            hint: hint(name, names()),
        });
    };
    let file = format!("{name}.toml (built in)");
    super::parse(&file, text).map_err(|error| ProgramPresetError::Broken {
        name: (*name).to_owned(),
        message: error.to_string(),
    })
}

/// Programs of each suite, both in alphabetical order.
///
/// # Errors
/// [`ProgramPresetError::Broken`] as for [`find`].
pub fn suites() -> Result<BTreeMap<String, Vec<&'static str>>, ProgramPresetError> {
    let mut suites: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for name in names() {
        suites.entry(find(name)?.suite).or_default().push(name);
    }
    Ok(suites)
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn a_near_name_is_suggested() {
        let error = find("hmmr").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no program 'hmmr': did you mean 'hmmer'?"
        );
    }

    #[test]
    fn names_are_sorted_and_unique() {
        let names: Vec<_> = names().collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }

    #[test]
    fn a_broken_description_says_which_key_is_wrong() {
        let (_, text) = FILES[0];
        let error = parse(
            "x.toml",
            &text.replacen("writeback_share = 0", "writeback_share = 7", 1),
        );
        assert_eq!(error.unwrap_err().key, "phase[0].writeback_share");
        assert!(parse("x.toml", "name = 3").is_err());
    }
}
