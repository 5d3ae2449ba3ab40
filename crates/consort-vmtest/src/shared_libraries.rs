//! The shared libraries that a program needs to run elsewhere.
//!
//! Taking them along lets a guest run the very binary that the test build has made. The
//! alternative, a second build with `-C target-feature=+crt-static`, works too but compiles every
//! dependency again.

use crate::error::VmError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The absolute paths of the libraries and of the dynamic loader; empty for a static program.
///
/// # Errors
/// Where `ldd` cannot be run or does not find a library.
pub(crate) fn list_libraries(program: &Path) -> Result<Vec<PathBuf>, VmError> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .map_err(VmError::io("run ldd on", program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let message = String::from_utf8_lossy(&output.stderr);
    if is_static(&text) || is_static(&message) {
        return Ok(Vec::new());
    }
    if !output.status.success() || text.contains("not found") {
        return Err(VmError::Libraries {
            path: program.to_owned(),
            message: format!("{text}{message}"),
        });
    }
    Ok(parse(&text))
}

fn is_static(text: &str) -> bool {
    text.contains("not a dynamic executable") || text.contains("statically linked")
}

/// Lines are `name => /path (address)`, `/loader (address)` or `linux-vdso.so.1 (address)`.
fn parse(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_and_the_vdso_is_not() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let paths = parse(text);
        assert_eq!(
            paths,
            ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }

    #[test]
    fn both_ways_of_calling_a_program_static_are_known() {
        assert!(is_static("\tstatically linked\n"));
        assert!(is_static("\tnot a dynamic executable\n"));
        assert!(!is_static("\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n"));
    }
}
