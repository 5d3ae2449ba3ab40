//! Commands as they were written, and whether they can be started.

use crate::failure::bad_input;
use anyhow::Result;
use nix::unistd::{AccessFlags, access};
use std::path::{Path, PathBuf};

/// Parts each command into words, as a shell would without anything else that shells do, and
/// checks that its program can be executed.
pub(super) fn parse(texts: &[String]) -> Result<Vec<Vec<String>>> {
    texts.iter().map(|text| words(text)).collect()
}

fn words(text: &str) -> Result<Vec<String>> {
    let words = shell_words::split(text)
        .map_err(|error| bad_input(format!("--command '{text}': {error}")))?;
    let Some(program) = words.first() else {
        return Err(bad_input(
            "--command: it is empty; name a program and its arguments",
        ));
    };
    if is_executable(program) {
        return Ok(words);
    }
    Err(bad_input(format!(
        "--command '{text}': there is no program {program} that can be executed; \
         name one in PATH or give its path"
    )))
}

fn is_executable(program: &str) -> bool {
    let can_run = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return can_run(Path::new(program));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&folders);
    let mut paths = paths.map(|folder: PathBuf| folder.join(program));
    paths.any(|path| can_run(&path))
}

/// A short name for each command: its program's, with a number where there are several of it.
pub(super) fn names(commands: &[Vec<String>]) -> Vec<String> {
    let file = |words: &Vec<String>| {
        let path = words.first().map(Path::new);
        let name = path.and_then(Path::file_name);
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let files: Vec<String> = commands.iter().map(file).collect();
    let numbered = |(i, name): (usize, &String)| {
        let alike = |others: &[String]| others.iter().filter(|other| *other == name).count();
        match alike(&files) {
            1 => name.clone(),
            _ => format!("{name}#{}", alike(&files[..=i])),
        }
    };
    files.iter().enumerate().map(numbered).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_as_by_a_shell_and_nothing_else_is_done() {
        let parsed = parse(&["sh -c 'exit 0' $HOME".to_owned()]).unwrap();
        assert_eq!(parsed, [["sh", "-c", "exit 0", "$HOME"]]);
    }

    #[test]
    fn what_cannot_be_started_is_refused_before_anything_is() {
        let error = |text: &str| parse(&[text.to_owned()]).unwrap_err().to_string();
        assert!(error("no-such-program-here 1").contains("no program no-such-program-here"));
        assert!(error("/etc/passwd").contains("no program /etc/passwd"));
        assert!(error("sh 'open").contains("sh 'open"));
        assert!(error(" ").contains("it is empty"));
    }

    #[test]
    fn programs_of_one_name_are_numbered() {
        let commands = ["/usr/bin/xz a", "sh b", "xz c"].map(|c| shell_words::split(c).unwrap());
        assert_eq!(names(&commands), ["xz#1", "sh", "xz#2"]);
    }
}
