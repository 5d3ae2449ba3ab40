//! The product's classes against the ground truth's, on all of the C and the mathematics library:
//! two tables that share nothing, so that what both say is no slip of one of them.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use consort_isa::{Arch, InstructionClass, decode};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
];
const LIBRARIES: &[&str] = &["libc.so.6", "libm.so.6"];

/// One instruction: its bytes, and its text in Intel syntax.
type Line = (Vec<u8>, String);

#[test]
fn both_tables_put_every_instruction_in_the_same_class() {
    let lines = match disassembled() {
        Ok(lines) => lines,
        Err(reason) => return skipped(&reason),
    };
    let Some(classes) = truth_classes(&lines) else {
        return skipped("python3 is not installed");
    };
    assert_eq!(lines.len(), classes.len());
    assert!(lines.len() > 50_000, "only {} instructions", lines.len());
    let mut differing: BTreeMap<(String, String, String), (usize, String)> = BTreeMap::new();
    for ((bytes, text), truth) in lines.iter().zip(classes) {
        let Ok(instruction) = decode(Arch::X86_64, bytes, 0x1000) else {
            continue;
        };
        // objdump tells some prefixes apart from what they belong to.
        let whole = usize::from(instruction.len) == bytes.len();
        let class = name(instruction.class);
        if whole && class != truth {
            let mnemonic = text.split(' ').next().unwrap_or_default().to_owned();
            let entry = differing.entry((mnemonic, class.to_owned(), truth));
            entry.or_insert((0, text.clone())).0 += 1;
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

fn name(class: InstructionClass) -> &'static str {
    match class {
        InstructionClass::Fp => "fp",
        InstructionClass::Vector => "vector",
        InstructionClass::Int => "int",
        InstructionClass::Load => "load",
        InstructionClass::Store => "store",
        InstructionClass::Branch => "branch",
        InstructionClass::Other => "other",
    }
}

/// The different instructions of the libraries.
fn disassembled() -> Result<Vec<Line>, String> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err("the ground truth reads x86-64 only".to_owned());
    }
    let mut lines = BTreeMap::new();
    for library in LIBRARIES {
        let path = find(library).ok_or(format!("no {library} here"))?;
        let output = Command::new("objdump")
            .args(["-d", "-w", "-M", "intel"])
            .arg(path)
            .output()
            .map_err(|_| "objdump is not installed".to_owned())?;
        let text = String::from_utf8_lossy(&output.stdout);
        lines.extend(text.lines().filter_map(parse));
    }
    Ok(lines
        .into_iter()
        .map(|(text, bytes)| (bytes, text))
        .collect())
}

fn find(library: &str) -> Option<PathBuf> {
    let mut places = FOLDERS.iter().map(|folder| Path::new(folder).join(library));
    places.find(|path| path.exists())
}

/// A line of the disassembly: address, bytes and text between tabs.
fn parse(line: &str) -> Option<(String, Vec<u8>)> {
    let mut fields = line.split('\t').skip(1);
    let bytes = fields.next()?.split_whitespace();
    let bytes: Result<Vec<u8>, _> = bytes.map(|byte| u8::from_str_radix(byte, 16)).collect();
    let text = fields.next()?.trim().to_owned();
    (!text.contains("(bad)")).then_some((text, bytes.ok()?))
}

/// Class that `tests/truth/classes.py` gives each text; `None` without Python.
fn truth_classes(lines: &[Line]) -> Option<Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth/classes.py");
    let mut child = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let texts: String = lines.iter().map(|(_, text)| format!("{text}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(texts.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let classes = String::from_utf8(output.stdout).unwrap();
    Some(classes.lines().map(str::to_owned).collect())
}

/// Says why a test did nothing, past the test harness's capture.
fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
