//! Choice of the file that a command runs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::ProgramRecordError;

/// Scripts whose interpreter is a script, and so on; Linux allows as many.
const MOST_INTERPRETERS: usize = 5;
/// Bytes at the start of a file that show its type.
const HEAD: u64 = 256;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ResolvedProgram {
    pub(super) path: PathBuf,
    /// Name under which the program sees itself.
    pub(super) name: OsString,
    pub(super) arguments: Vec<OsString>,
}

/// The program that a command runs; for a script, its interpreter.
pub(super) fn resolve_program(command: &[OsString]) -> Result<ResolvedProgram, ProgramRecordError> {
    let (name, arguments) = command.split_first().ok_or(ProgramRecordError::NoCommand)?;
    let mut program = ResolvedProgram {
        path: find_in_path(name)?,
        name: name.clone(),
        arguments: arguments.to_vec(),
    };
    for _ in 0..MOST_INTERPRETERS {
        let head = read_head(&program.path)?;
        match head.strip_prefix(b"#!") {
            Some(line) => program = resolve_interpreter(program, line)?,
            None => return check_elf(&program.path, &head).map(|()| program),
        }
    }
    Err(ProgramRecordError::Foreign {
        path: program.path,
        what: "a script whose interpreters are scripts",
    })
}

fn find_in_path(name: &OsStr) -> Result<PathBuf, ProgramRecordError> {
    let not_found = || ProgramRecordError::NotFound {
        name: name.to_string_lossy().into_owned(),
    };
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return path.is_file().then_some(path).ok_or_else(not_found);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).map(|folder| folder.join(name));
    places
        .find(|place| is_executable(place))
        .ok_or_else(not_found)
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

fn read_head(path: &Path) -> Result<Vec<u8>, ProgramRecordError> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_err(|source| ProgramRecordError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    Ok(head)
}

/// The interpreter with the script as an argument. As in Linux, everything behind the interpreter's
/// name is one argument.
fn resolve_interpreter(
    script: ResolvedProgram,
    line: &[u8],
) -> Result<ResolvedProgram, ProgramRecordError> {
    let line = line
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    let interpreter = OsString::from_vec(interpreter.to_vec());
    let argument = argument.trim_ascii();
    let given = (!argument.is_empty()).then(|| OsString::from_vec(argument.to_vec()));
    let mut arguments: Vec<OsString> = given.into_iter().collect();
    arguments.push(script.path.into_os_string());
    arguments.extend(script.arguments);
    // `env NAME` would replace itself by another program, which ends the recording.
    if Path::new(&interpreter).file_name() == Some(OsStr::new("env")) && arguments.len() >= 2 {
        let name = arguments.remove(0);
        return Ok(ResolvedProgram {
            path: find_in_path(&name)?,
            name,
            arguments,
        });
    }
    Ok(ResolvedProgram {
        path: find_in_path(&interpreter)?,
        name: interpreter,
        arguments,
    })
}

/// Checks for an ELF file of class 64-bit (Tool Interface Standard, ELF 1.2) for x86-64.
fn check_elf(path: &Path, head: &[u8]) -> Result<(), ProgramRecordError> {
    let what = match head {
        [0x7f, b'E', b'L', b'F', 1, ..] => "a 32-bit program",
        [0x7f, b'E', b'L', b'F', 2, rest @ ..] if rest.get(13..15) == Some(&[62, 0]) => {
            return Ok(());
        }
        [0x7f, b'E', b'L', b'F', ..] => "a program for another processor",
        _ => "no program",
    };
    Err(ProgramRecordError::Foreign {
        path: path.to_owned(),
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(bytes: &[u8]) -> Result<ResolvedProgram, ProgramRecordError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, bytes).unwrap();
        resolve_program(&[path.into_os_string(), "x".into()])
    }

    #[test]
    fn scripts_run_their_interpreter() {
        let program = resolved(b"#!/bin/sh -e\necho\n").unwrap();
        assert_eq!(program.path, Path::new("/bin/sh"));
        assert_eq!(program.arguments[0], "-e");
        assert_eq!(program.arguments[2], "x");
        let program = resolved(b"#!/usr/bin/env sh\n").unwrap();
        assert!(program.path.ends_with("sh"));
        assert_eq!(program.arguments.len(), 2);
    }

    #[test]
    fn unprofilable_programs_are_named() {
        let said = |bytes: &[u8]| resolved(bytes).unwrap_err().to_string();
        assert!(said(b"\x7fELF\x01\x01\x01").contains("is a 32-bit program"));
        let arm = [&b"\x7fELF\x02"[..], &[0; 13], &[183, 0]].concat();
        assert!(said(&arm).contains("another processor"));
        assert!(said(b"hello").contains("is no program"));
        let missing = resolve_program(&["consort-no-such-program".into()]).unwrap_err();
        assert!(missing.to_string().contains("cannot find program"));
        assert!(
            resolve_program(&[])
                .unwrap_err()
                .to_string()
                .contains("-- CMD")
        );
    }
}
