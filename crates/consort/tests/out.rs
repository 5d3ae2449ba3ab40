//! Promise: `--out FILE` writes the table of a verb for data frames, numbers in one long format; a
//! file that this build cannot write is refused before anything is run.

mod common;

use common::{consort, folder, run, skipped, stderr, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

const LONG: &str = "case,policy,seed,program,measure,value,unit";
const SETUP: &str = "-m bulldozer-6282se -w hmmer+povray --alone 200ms";

fn with(place: &Path, line: &str) -> Output {
    run(consort().args(line.split(' ')).current_dir(place))
}

/// Rows of the file that a verb with these arguments writes, the header first; all are as long.
fn written(line: &str) -> Vec<Vec<String>> {
    let place = folder();
    let output = with(place.path(), line);
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    let mut builder = csv::ReaderBuilder::new();
    let reader = builder
        .has_headers(false)
        .from_path(place.path().join("t.csv"));
    let rows = reader.expect("the file is there").into_records();
    rows.map(|row| {
        let row = row.expect("rows are as long as the header");
        row.iter().map(str::to_owned).collect()
    })
    .collect()
}

#[test]
fn verbs_with_numbers_write_them_in_the_long_format() {
    for (line, begins) in [
        (
            format!("simulate {SETUP} --out t.csv"),
            "hmmer+povray on bulldozer-6282se,linux,1,,stp,",
        ),
        (
            format!("compare {SETUP} --policies linux --runs 2 --out t.csv"),
            "hmmer+povray on bulldozer-6282se,linux,2,povray,energy_j,",
        ),
        (
            "map -m core2-q9550 -w streamcluster@2+facesim@2 --alone 200ms --out t.csv".to_owned(),
            "map:",
        ),
        (
            "validate --group conservation --quick --out shown --out t.csv".to_owned(),
            "conservation:",
        ),
        ("bench solve --quick --out t.csv".to_owned(), "solve"),
        (
            "reproduce M1 --quick --out studies --out t.csv".to_owned(),
            "M1:headline:",
        ),
        (
            "train -m power8 --programs mcf,hmmer,povray,gcc,lbm,milc,astar,bzip2 --ways 2 \
             --folds 2 --quick --out model.toml --out t.csv"
                .replace("  ", " "),
            "model:2 ways:",
        ),
        (
            "run --no-daemon --quiet --out t.csv -- true".to_owned(),
            "live,",
        ),
    ] {
        let rows = written(&line);
        assert_eq!(rows[0].join(","), LONG, "{line}");
        let found = rows.iter().any(|row| row.join(",").starts_with(begins));
        assert!(found, "{line}: {begins} in {rows:#?}");
        let value = |row: &Vec<String>| row[5].parse::<f64>().is_ok();
        assert!(rows.iter().skip(1).all(value), "{line}: {rows:#?}");
    }
}

#[test]
fn lists_have_the_columns_of_their_csv() {
    for line in [
        "machine --list",
        "machine -m power7",
        "policies",
        "programs",
        "programs mcf",
    ] {
        let line = line.replace("-m ", "--machine ");
        let rows = written(&format!("{line} --out t.csv"));
        let shown = run(consort().args(line.split(' ')).args(["--format", "csv"]));
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert_eq!(
            Some(rows[0].join(",").as_str()),
            shown.lines().next(),
            "{line}"
        );
        assert_eq!(rows.len(), shown.lines().count(), "{line}");
    }
}

#[test]
fn what_this_build_does_not_write_is_refused_before_anything_is_run() {
    for end in ["arrow", "parquet"] {
        let place = folder();
        let line = format!("simulate {SETUP} --out t.{end}");
        let output = with(place.path(), &line);
        let file = place.path().join(format!("t.{end}"));
        if cfg!(feature = "columnar") {
            assert!(output.status.success(), "{}", stderr(&output));
            let magic: &[u8] = if end == "arrow" { b"ARROW1" } else { b"PAR1" };
            assert!(
                std::fs::read(file)
                    .expect("it was written")
                    .starts_with(magic)
            );
            continue;
        }
        assert_eq!(output.status.code(), Some(2));
        let reported = stderr(&output);
        assert!(
            reported.contains("build with --features columnar"),
            "{reported}"
        );
        assert_eq!(
            (reported.lines().count(), output.stdout.len()),
            (1, 0),
            "{reported}"
        );
        assert_eq!(std::fs::read_dir(place.path()).expect("ours").count(), 0);
    }
}

#[test]
fn one_table_and_one_other_place_at_most() {
    let place = folder();
    let error = |line: &str| {
        let output = with(place.path(), line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        stderr(&output)
    };
    let reported = error("reproduce M1 --quick --out a.csv --out b.csv");
    let expected = "consort: --out a.csv, b.csv: too many or of no use here; expected at most one \
                    table (PATH.csv";
    assert!(reported.starts_with(expected), "{reported}");
    assert!(error("map -m core2-q9550 -w 2*mcf --out a --out b").contains("too many"));
    assert!(error(&format!("simulate {SETUP} --out a.xlsx")).contains("expected one that ends in"));
    let reported = error(&format!("simulate {SETUP} --out none/a.csv"));
    assert!(reported.starts_with("consort: none/a.csv: "), "{reported}");
    assert_eq!(std::fs::read_dir(place.path()).expect("ours").count(), 0);
}

/// Names in a folder.
fn names(place: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(place).expect("the folder is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("it is read").file_name();
    entries
        .map(|e| name(e).to_string_lossy().into_owned())
        .collect()
}

/// True if the file system of a folder has files without names.
fn has_unnamed_files(place: &Path) -> bool {
    let mut options = std::fs::OpenOptions::new();
    let flags = nix::libc::O_TMPFILE;
    options.write(true).custom_flags(flags).open(place).is_ok()
}

// SIGINT ends a process as SIGTERM does, but a shell's background processes ignore it.
#[test]
fn signals_leave_no_file_of_a_result_behind() {
    for (line, signal) in [
        (
            "compare -m bulldozer-6282se -w 4*hmmer+4*povray -p linux --runs 10k --out t.csv",
            Signal::SIGTERM,
        ),
        (
            "simulate -m bulldozer-6282se -w 4*hmmer+4*povray --alone 1h --timeline t.json",
            Signal::SIGTERM,
        ),
        (
            "what-if r.parquet -m power8 -p linux --runs 10k --report-html t.html --out t.csv",
            Signal::SIGKILL,
        ),
    ] {
        let place = folder();
        if !has_unnamed_files(place.path()) {
            return skipped("this file system has no files without names");
        }
        if line.starts_with("what-if") {
            let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
            let mut record = consort();
            let record = record.args([
                "record",
                "--interval",
                "20ms",
                "-o",
                "r.parquet",
                "--quiet",
                "--no-daemon",
            ]);
            let record = record
                .args(["--", "sh", "-c", script])
                .current_dir(place.path());
            let recorded = run(record);
            assert!(recorded.status.success(), "{}", stderr(&recorded));
        }
        let before = names(place.path());
        let mut child = consort()
            .args(line.split(' '))
            .current_dir(place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let folder = format!("/proc/{}/fd", child.id());
        // It has begun its file, which has no name yet.
        wait_for("the file to be begun", || {
            let open = std::fs::read_dir(&folder).ok()?;
            let mut targets = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
            targets.find(|target| target.starts_with(place.path()))
        });
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(names(place.path()), before, "{line}");
    }
}
