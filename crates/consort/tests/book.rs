//! Promise: the book is whole. Its pages are in its table of contents, links and names of files
//! lead somewhere, its commands run, and its words are those of the house's style.
//!
//! Lines that begin with `$ ` in a block marked `console` run in the order of the page, in one
//! shell and a folder of their own. A command may only fail if `$ echo $?` follows. What is shown
//! below a command is compared by its first line, without regard to numbers. After a comma, `exact`
//! compares all lines (`...` stands for omitted ones), `sample` compares none because they depend
//! on the host, and `needs=REASON` checks the arguments of `consort` without running anything.
//! A block with `title="FILE"` is written to that file first. `BOOK_PAGE=use/daemon.md` selects
//! one page.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;
#[path = "extending/page.rs"]
mod page;

use page::Block;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Words that the style guide rules out, and their number in all pages.
const DIALECT: &[&str] = &[
    "tells",
    "told",
    "hear",
    "hears",
    "heard",
    "asks",
    "asked",
    "whoever",
    "somebody",
    "nobody",
    "beside",
    "of which",
    "those that",
    "as it was",
    "so much",
    "for want of",
    "to be had",
    "goes on",
    "let alone",
    "stands on",
    "what it takes",
    "until lately",
];
const MOST_DIALECT: usize = 10;
/// Hand-written words outside tables, and occurrences of "for example" per 10,000 of them.
const MOST_WORDS: usize = 35_000;
const LEAST_EXAMPLES: usize = 20;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below a folder whose names end in one of these, by their paths from it.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(below) = folders.pop() {
        for entry in std::fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "target" && name != "node_modules" {
                folders.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Pages of the book, by their paths from `docs`.
fn pages() -> Vec<String> {
    let all = files(&root().join("docs"), &[".md"]).into_iter();
    let all = all.map(|path| path.to_str().unwrap().to_owned());
    all.filter(|page| page != "SUMMARY.md").collect()
}

fn is_generated(page: &str) -> bool {
    page == "figures.md" || page.starts_with("reference/") && page != "reference/glossary.md"
}

/// The text of a page. A page that only includes another one has its text.
fn text(page: &str) -> String {
    let path = root().join("docs").join(page);
    let own = std::fs::read_to_string(&path).unwrap();
    match own.trim().strip_prefix("{{#include ") {
        Some(rest) => {
            let other = path.parent().unwrap().join(rest.trim_end_matches("}}"));
            std::fs::read_to_string(other).unwrap()
        }
        None => own,
    }
}

/// A text without its fenced blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Targets of the links of a text outside code.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let links = prose.split("](").skip(1);
    let links = links.filter_map(|rest| rest.split(')').next());
    links.map(str::to_owned).collect()
}

/// The anchor of a heading, as web views of repositories and mdBook make it.
fn anchor(heading: &str) -> String {
    let plain = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = plain
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut broken = String::new();
    let mut documents = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "rtl/README.md",
    ]
    .map(str::to_owned)
    .to_vec();
    documents.extend(pages().iter().map(|page| format!("docs/{page}")));
    documents.push("docs/SUMMARY.md".to_owned());
    for document in documents {
        let path = root().join(&document);
        let own = std::fs::read_to_string(&path).unwrap();
        for link in links(&own).iter().filter(|link| !link.contains("://")) {
            let (target, part) = link.split_once('#').unwrap_or((link, ""));
            let other = match target.is_empty() {
                true => path.clone(),
                false => path.parent().unwrap().join(target),
            };
            let is_page = other.extension().is_some_and(|ending| ending == "md");
            let has_part = || {
                let there = std::fs::read_to_string(&other).unwrap();
                let mut headings = there.lines().filter(|line| line.starts_with('#'));
                part.is_empty() || headings.any(|heading| anchor(heading) == part)
            };
            if !other.exists() || is_page && !has_part() {
                broken += &format!("{document}: {link}\n");
            }
        }
    }
    assert!(broken.is_empty(), "{broken}");
}

#[test]
fn documents_that_files_name_exist() {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
    let endings = [
        ".rs", ".toml", ".md", ".py", ".pyi", ".c", ".sv", ".snap", ".txt", ".csv", "Makefile",
    ];
    let mut broken = BTreeSet::new();
    for folder in ["crates", "packaging", "rtl", "tests", "traces", ".ci"] {
        // Scripts of CI have no ending.
        let endings: &[&str] = if folder == ".ci" { &[""] } else { &endings };
        for file in files(&root().join(folder), endings) {
            let path = root().join(folder).join(&file);
            let bytes = std::fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for rest in text.split("docs/").skip(1) {
                let name = rest.split(|c| !is_of_path(c)).next().unwrap();
                let name = name.trim_end_matches('.');
                let is_document = [".md", ".svg", ".ipynb", ".csv"]
                    .iter()
                    .any(|ending| name.ends_with(ending));
                if is_document && !root().join("docs").join(name).exists() {
                    broken.insert(format!("{folder}/{}: docs/{name}", file.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn summary_lists_every_page() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    let there: BTreeSet<String> = pages().into_iter().collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    let absent: Vec<_> = listed.difference(&there).collect();
    assert!(
        missing.is_empty() && absent.is_empty(),
        "not in SUMMARY.md: {missing:#?}\nnot in docs: {absent:#?}"
    );
}

/// Returns what is missing at the opening of a page.
fn fault_of_opening(page: &str) -> Option<&'static str> {
    let text = text(page);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let is_heading = lines.next().is_some_and(|line| line.starts_with("# "));
    let marks = ["#", "|", "- ", "* ", "```", ">", "    ", "1."];
    let starts_a_paragraph = |line: &str| !marks.iter().any(|mark| line.starts_with(mark));
    let lower = text.to_lowercase();
    if !is_heading {
        Some("no heading first")
    } else if !lines.next().is_some_and(starts_a_paragraph) {
        Some("no paragraph below the heading")
    } else if !is_generated(page) && !lower.contains("\n```") && !lower.contains("for example") {
        Some("no example")
    } else {
        None
    }
}

#[test]
fn pages_open_with_a_paragraph_and_have_an_example() {
    let faults = pages().into_iter().filter_map(|page| {
        let fault = fault_of_opening(&page)?;
        Some(format!("{page}: {fault}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// How often a text has these words, not as parts of others.
fn count_words(text: &str, words: &str) -> usize {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let found = text.match_indices(words).filter(|(at, _)| {
        let after = text[at + words.len()..].chars().next();
        !is_letter(text[..*at].chars().next_back()) && !is_letter(after)
    });
    found.count()
}

#[test]
fn book_keeps_to_the_words_of_the_style_guide() {
    let (mut words, mut examples, mut dialect) = (0, 0, Vec::new());
    let pages: Vec<String> = pages()
        .into_iter()
        .filter(|page| !is_generated(page))
        .collect();
    for page in &pages {
        // Names in code are no prose, and marks of tables are no words.
        let prose = prose(&text(page)).to_lowercase();
        let spoken: Vec<&str> = prose.split('`').step_by(2).collect();
        let spoken = spoken.join("`");
        let plain = spoken.split_whitespace();
        let plain: Vec<&str> = plain
            .filter(|w| w.contains(char::is_alphanumeric))
            .collect();
        let plain = plain.join(" ");
        let rows_apart = prose.lines().filter(|line| !line.starts_with('|'));
        let rows_apart = rows_apart.flat_map(str::split_whitespace);
        words += rows_apart
            .filter(|w| w.contains(char::is_alphanumeric))
            .count();
        examples += count_words(&plain, "for example");
        for phrase in DIALECT {
            let count = count_words(&plain, phrase);
            dialect.extend(vec![format!("{page}: {phrase}"); count]);
        }
    }
    println!(
        "{words} words, {examples} for example, {} of the list",
        dialect.len()
    );
    assert!(dialect.len() <= MOST_DIALECT, "{dialect:#?}");
    assert!(words <= MOST_WORDS, "{words} words");
    assert!(
        examples * 10_000 >= words * LEAST_EXAMPLES,
        "{examples} in {words}"
    );
}

/// A line without regard to numbers and spaces.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for c in line.trim_end_matches("...").chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        let follows_number = shape.ends_with('0') && (c == '0' || c == '.');
        if !follows_number && !c.is_whitespace() {
            shape.push(c);
        }
    }
    shape
}

/// Returns why the output of a command is not the one that is shown.
fn difference(shown: &str, printed: &str, is_exact: bool) -> Option<String> {
    let shown = shown.lines().filter(|line| !line.trim().is_empty());
    let mut shown = shown.filter(|line| line.trim() != "...");
    if !is_exact {
        let first = shown.next()?;
        let mut printed = printed.lines().map(shape);
        let is_there = printed.any(|line| line.contains(&shape(first)));
        return (!is_there).then(|| format!("no line like: {first}"));
    }
    let mut printed = printed.lines();
    for line in shown {
        if !printed.any(|other| other.trim_end() == line.trim_end()) {
            return Some(format!("no line: {line}"));
        }
    }
    None
}

struct Step {
    command: String,
    shown: String,
    attributes: Vec<String>,
}

/// Writes a page's files, runs its commands, and returns what is wrong.
fn faults_of_page(page: &str, blocks: Vec<Block>) -> Vec<String> {
    let folder = common::folder();
    let home = folder.path();
    let mut steps: Vec<Step> = Vec::new();
    for block in blocks {
        if let Some(name) = &block.title {
            let path = home.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &block.text).unwrap();
        }
        let is_run = !block.attributes.iter().any(|a| a.starts_with("needs="));
        if block.language == "console" && is_run {
            steps.extend(
                page::session(&block.text)
                    .into_iter()
                    .map(|(command, shown)| Step {
                        command,
                        shown,
                        attributes: block.attributes.clone(),
                    }),
            );
        }
    }
    if steps.is_empty() {
        return Vec::new();
    }
    let printed = run_in_one_shell(&steps, home);
    let mut faults = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let begin = format!("\n@begin {at}@\n");
        let end = format!("\n@end {at} ");
        let Some((_, rest)) = printed.split_once(&begin) else {
            faults.push(format!("{page}: not reached: {}", step.command));
            break;
        };
        let (output, status) = rest.split_once(&end).unwrap_or((rest, "none@"));
        let status = status.split('@').next().unwrap();
        let next = steps.get(at + 1).map(|next| next.command.as_str());
        let has = |attribute: &str| step.attributes.iter().any(|a| a == attribute);
        let fault = if status != "0" && next != Some("echo $?") {
            Some(format!("status {status}"))
        } else if has("sample") {
            None
        } else {
            difference(&step.shown, output, has("exact"))
        };
        if let Some(fault) = fault {
            faults.push(format!("{page}: {}: {fault}\n{output}", step.command));
        }
    }
    faults
}

/// What a shell prints that runs the steps as a reader would, with marks around each.
fn run_in_one_shell(steps: &[Step], home: &Path) -> String {
    let mut script = String::from("trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\ns=0\n");
    for (at, step) in steps.iter().enumerate() {
        let command = &step.command;
        script += &format!("printf '\\n@begin {at}@\\n'; (exit $s)\n{command}\n");
        script += &format!("s=$?; printf '\\n@end {at} %s@\\n' $s\n");
    }
    for name in ["docs", "packaging", "traces", "tests"] {
        std::os::unix::fs::symlink(root().join(name), home.join(name)).unwrap();
    }
    let runtime = home.join("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::write(home.join(".script"), script).unwrap();
    let printed = std::fs::File::create(home.join(".printed")).unwrap();
    let binaries = common::demo();
    let path = format!(
        "{}:{}",
        binaries.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut shell = Command::new("timeout");
    shell.args(["-k", "5", "300", "bash", "--norc", ".script"]);
    shell.current_dir(home).env("HOME", home).env("PATH", path);
    shell.env("XDG_RUNTIME_DIR", &runtime);
    shell.env_remove("XDG_CONFIG_HOME").env_remove("COLUMNS");
    shell
        .stdin(Stdio::null())
        .stdout(printed.try_clone().unwrap())
        .stderr(printed);
    shell.status().unwrap();
    String::from_utf8_lossy(&std::fs::read(home.join(".printed")).unwrap()).into_owned()
}

/// Runs the commands of pages whose path begins with one of these.
fn check_commands(beginnings: &[&str]) {
    let only = std::env::var("BOOK_PAGE").ok();
    let all = pages().into_iter().chain(["../README.md".to_owned()]);
    let chosen = all.filter(|page| beginnings.iter().any(|b| page.starts_with(b)));
    let chosen = chosen.filter(|page| only.as_ref().is_none_or(|only| only == page));
    let faults = chosen.flat_map(|page| faults_of_page(&page, page::blocks(&page)));
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn commands_of_readme_and_introduction_run() {
    check_commands(&["../README.md", "introduction.md"]);
}

#[test]
fn commands_of_use_run() {
    check_commands(&["use/"]);
}

#[test]
fn commands_of_understand_run() {
    check_commands(&["understand/"]);
}

#[test]
fn commands_of_research_run() {
    check_commands(&["research/"]);
}

#[test]
fn commands_of_the_other_parts_run() {
    check_commands(&["concepts/", "reference/", "contributing/"]);
}

/// Arguments of each call of Consort in a line, without what the shell takes.
fn calls(line: &str) -> Vec<Vec<String>> {
    let words = shell_words::split(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let commands = words.split(|word| ["|", "||", "&&", ";", "&"].contains(&word.as_str()));
    let mut calls = Vec::new();
    for command in commands {
        let is_consort = |word: &String| word == "consort" || word.ends_with("/consort");
        let Some(at) = command.iter().position(is_consort) else {
            continue;
        };
        let is_prefix = |word: &String| word == "sudo" || word.contains('=');
        if !command[..at].iter().all(is_prefix) {
            continue;
        }
        let arguments = command[at + 1..].iter();
        let arguments = arguments.take_while(|word| !word.starts_with(['>', '<']) && *word != "2>");
        // A variable that the page sets is the number of a process.
        let arguments = arguments.map(|word| match word.starts_with('$') {
            true => "4711".to_owned(),
            false => word.clone(),
        });
        calls.push(arguments.collect());
    }
    calls
}

#[test]
fn commands_that_need_more_have_valid_arguments() {
    let mut faults = Vec::new();
    for page in pages().into_iter().chain(["../README.md".to_owned()]) {
        let blocks = page::blocks(&page).into_iter();
        let blocks = blocks.filter(|block| {
            let mut attributes = block.attributes.iter();
            block.language == "console" && attributes.any(|a| a.starts_with("needs="))
        });
        let lines = blocks.flat_map(|block| page::session(&block.text));
        for mut call in lines.flat_map(|(line, _)| calls(&line.replace("\\\n", " "))) {
            if call.first().is_none_or(|verb| verb == "help") {
                continue;
            }
            // Help is printed once the arguments before it are found to be valid.
            let end = call.iter().position(|word| word == "--");
            call.insert(end.unwrap_or(call.len()), "--help".to_owned());
            let output = common::run(common::consort().args(&call));
            if !output.status.success() {
                faults.push(format!("{page}: {call:?}: {}", common::stderr(&output)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn shapes_and_calls_are_found() {
    assert_eq!(shape("took 12.5 s ..."), shape("took  3 s"));
    assert!(difference("a\n...\nc\n", "a\nb\nc\n", true).is_none());
    assert!(difference("c\na\n", "a\nb\nc\n", true).is_some());
    assert!(difference("took 12 s ...\nx", "it took 3.4 s here", false).is_none());
    let line = "sudo consort attach $PID --policy none | head -n 1; true";
    assert_eq!(calls(line), [["attach", "4711", "--policy", "none"]]);
    assert_eq!(count_words("told us; untold", "told"), 1);
}
