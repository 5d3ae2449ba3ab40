//! The program profiles that come with Consort: complete, valid, cited, and true to their rules.

use consort_describe::program::presets::{find, names, suites};
use consort_describe::program::{CURVE_KIB, ProgramSpec};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Programs of `spec2006-instruction-mix.csv`, `unit-occupancy-profiles.csv` and the CPU2006 rows
/// of the Skylake measurements.
const SPEC: &str = "perlbench bzip2 gcc bwaves gamess mcf milc zeusmp gromacs cactusADM leslie3d \
    namd gobmk dealII soplex povray calculix hmmer sjeng GemsFDTD libquantum h264ref tonto lbm \
    omnetpp astar wrf sphinx3 xalancbmk";
const SCIMARK: &str = "fft sor monte-carlo sparse-matmult lu";
/// Programs of the two PARSEC files.
const PARSEC: &str = "blackscholes swaptions bodytrack vips x264 freqmine fluidanimate dedup \
    ferret facesim canneal streamcluster";
/// Programs of `splash2-inputs.csv`; `fft` is SciMark's, so SPLASH-2's is `splash-fft`.
const SPLASH: &str = "barnes cholesky splash-fft fmm lu.cont lu.ncont ocean.cont ocean.ncont \
    radiosity radix raytrace water.nsq water.sp";
const MICRO: &str = "pure-int pure-fp l1-chaser l2-chaser llc-chaser dram-chaser random-loads \
    streamer branchy lock-heavy barrier-heavy io-heavy matmul-int matmul-fp";

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("programs")
}

fn all() -> Vec<ProgramSpec> {
    names().map(|name| find(name).unwrap()).collect()
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap()
}

/// Mean over the phases, weighted by their lengths.
fn mean(program: &ProgramSpec, of: impl Fn(usize) -> f64) -> f64 {
    let lengths = program.phases.iter().map(|p| p.length_ginstr);
    let weighted = lengths.enumerate().map(|(i, length)| length * of(i));
    weighted.sum::<f64>() / length(program)
}

fn length(program: &ProgramSpec) -> f64 {
    program.phases.iter().map(|p| p.length_ginstr).sum()
}

/// Mean misses per kilo-instruction at a capacity of the curves.
fn mean_mpki(program: &ProgramSpec, kib: f64) -> f64 {
    let point = CURVE_KIB.iter().position(|&c| c == kib).unwrap();
    mean(program, |i| program.phases[i].data_mpki[point])
}

fn near(value: f64, expect: f64, tolerance: f64) {
    let off = (value / expect - 1.0).abs();
    assert!(off <= tolerance, "{value} is not {expect}");
}

#[test]
fn every_program_file_is_valid_and_named() {
    for name in names() {
        assert_eq!(find(name).unwrap().name, name);
    }
}

#[test]
fn every_file_is_embedded() {
    let files = fs::read_dir(folder()).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    });
    let embedded: BTreeSet<_> = names().map(str::to_owned).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), embedded);
}

#[test]
fn every_program_of_the_published_tables_is_there() {
    let suites = suites().unwrap();
    for (suite, expect) in [
        ("spec2006", SPEC),
        ("scimark2", SCIMARK),
        ("parsec", PARSEC),
        ("splash2", SPLASH),
        ("micro", MICRO),
    ] {
        let expect: BTreeSet<_> = expect.split_whitespace().collect();
        let have: BTreeSet<_> = suites[suite].iter().copied().collect();
        assert_eq!(have, expect, "{suite}");
    }
    assert_eq!(suites.len(), 5);
}

/// The line without its comment and without quoted strings, and the comment.
fn split(line: &str) -> (String, &str) {
    let (code, comment) = line.split_once('#').unwrap_or((line, ""));
    (code.split('"').step_by(2).collect(), comment)
}

fn words(comment: &str) -> impl Iterator<Item = &str> {
    comment.split(|c: char| !c.is_alphanumeric())
}

#[test]
fn every_number_says_where_it_comes_from() {
    for program in all() {
        for (i, line) in text(&program.name).lines().enumerate() {
            let (code, comment) = split(line);
            let cited = |word| word == "estimated" || program.sources.contains_key(word);
            assert!(
                !code.contains(|c: char| c.is_ascii_digit()) || words(comment).any(cited),
                "{}.toml:{}: {line}",
                program.name,
                i + 1
            );
        }
    }
}

#[test]
fn every_source_is_cited() {
    for program in all() {
        let text = text(&program.name);
        for key in program.sources.keys() {
            let mut comments = text.lines().map(|line| split(line).1);
            let cites = comments.any(|comment| words(comment).any(|word| word == key));
            assert!(cites, "{}: {key}", program.name);
        }
    }
}

#[test]
fn misses_do_not_exceed_accesses() {
    for program in all() {
        for phase in &program.phases {
            let accesses = 1000.0 * (phase.mix.load + phase.mix.store);
            let most = phase.data_mpki[0];
            assert!(most <= accesses + 0.5, "{}: {most}", program.name);
        }
    }
}

#[test]
fn files_stay_readable() {
    for program in all() {
        assert!(program.phases.len() <= 12, "{}", program.name);
        let longest = text(&program.name).lines().map(str::len).max().unwrap();
        // Measured stretches and chains, which have to be on one line each, are the longest.
        assert!(longest <= 260, "{}: {longest}", program.name);
    }
}

#[test]
fn mcf_follows_from_its_measurements() {
    let mcf = find("mcf").unwrap();
    near(length(&mcf), 314.0, 0.005);
    let phase = &mcf.phases[0];
    assert_eq!(
        (phase.mix.load, phase.mix.store, phase.mix.branch),
        (0.380, 0.106, 0.212)
    );
    // 198 cycles of latency, 75.3 cycles per miss: 2.629 at 224 entries, and (128/224)^0.6 = 0.7148.
    assert_eq!(phase.mlp.value, 1.88);
    // 1 - 17.48/27.69; 241.31/221.5 - 1.
    assert_eq!(
        (phase.prefetch.effectiveness, phase.prefetch.excess),
        (0.37, 0.09)
    );
    // The mean of 58.95 and 59.23, whatever the phases do.
    near(mean_mpki(&mcf, 4096.0), 59.09, 0.01);
    // Between 28.25 at 15 MiB and 27.69 at 20.25 MiB: 28.25·(27.69/28.25)^0.215.
    near(mean_mpki(&mcf, 16384.0), 28.13, 0.01);
}

#[test]
fn lbm_follows_from_its_measurements() {
    let lbm = find("lbm").unwrap();
    assert_eq!(lbm.phases.len(), 1);
    // All its phases are alike: 1230 Ginstr.
    near(length(&lbm), 1230.0, 0.001);
    // L1 misses; the mean of 30.2 and 30.18; 7 MB of LLC beside 1 MiB of L2.
    near(mean_mpki(&lbm, 32.0), 50.38, 0.005);
    near(mean_mpki(&lbm, 1024.0), 30.19, 0.005);
    near(mean_mpki(&lbm, 8192.0), 20.32, 0.005);
    // 30.19 + (50.38 - 30.19)·√(32/8).
    near(mean_mpki(&lbm, 8.0), 70.57, 0.005);
    // 198/13.9 = 14.24 at 224 entries; (128/224)^0.9 = 0.6043.
    assert_eq!(lbm.phases[0].mlp.value, 8.61);
    assert_eq!(lbm.phases[0].prefetch.effectiveness, 1.0);
}

#[test]
fn streamcluster_follows_from_its_measurements() {
    let program = find("streamcluster").unwrap();
    let threads = program.threads.as_ref().unwrap();
    // 129,600 barriers in 22.12·10^9 instructions, at 16,384 points between them instead of 200,000.
    near(threads.barrier.unwrap().spacing_minstr, 2.084, 0.01);
    let phase = &program.phases[0];
    assert_eq!(
        (phase.prefetch.effectiveness, phase.prefetch.excess),
        (0.84, 1.28)
    );
    // 6500 MB/s of four threads at 2.83 GHz and 0.6 instructions per cycle are 14.95 lines per
    // kilo-instruction; 1.65 lines move per miss; a thread has 3 of the 6 MB.
    let between = 0.5 * (mean_mpki(&program, 2048.0) + mean_mpki(&program, 4096.0));
    near(between, 9.065, 0.02);
}

#[test]
fn amdahls_law_follows_from_the_published_thread_counts() {
    let serial = |name| find(name).unwrap().threads.unwrap().serial_share;
    // Near-linear is a speedup of at least 7.2 on 8 threads.
    for name in ["blackscholes", "swaptions", "vips", "freqmine", "ferret"] {
        assert!(1.0 / (serial(name) + (1.0 - serial(name)) / 8.0) >= 7.2);
    }
    // Best at 5 threads, at 2: (1 - s)/s.
    near((1.0 - serial("bodytrack")) / serial("bodytrack"), 5.0, 0.01);
    near((1.0 - serial("dedup")) / serial("dedup"), 2.0, 0.01);
}
