//! Embeds the traces that ship: a list of their names and bytes, for `src/traced`. Where their
//! folder is not there, as outside the workspace, the list is empty.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Traces of programs that ship.
const TRACES: &str = "../../traces";

fn main() -> io::Result<()> {
    let folder = Path::new(TRACES);
    let mut paths: Vec<PathBuf> = Vec::new();
    if folder.exists() {
        println!("cargo:rerun-if-changed={TRACES}");
        for entry in fs::read_dir(folder.canonicalize()?)? {
            paths.push(entry?.path());
        }
    }
    paths.retain(|path| path.extension() == Some(OsStr::new("trace")));
    paths.sort();
    let mut list = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        list += &format!("    ({name:?}, include_bytes!({path:?})),\n");
    }
    list += "];\n";
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(Path::new(&out).join("traces.rs"), list)
}
