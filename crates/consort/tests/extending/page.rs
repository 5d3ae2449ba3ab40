//! The fenced blocks of a documentation page.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test file uses its own part of this"
)]

use std::path::Path;

/// A fenced block: ```` ```language,attribute title="file" ````.
pub struct Block {
    pub language: String,
    /// What follows the language after commas, such as `exact` or `needs=root`.
    pub attributes: Vec<String>,
    pub title: Option<String>,
    pub text: String,
}

/// The blocks of a page of `docs/`, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let text = std::fs::read_to_string(path.join(page)).unwrap();
    let fenced = text.split("\n```").skip(1).step_by(2);
    fenced.map(block).collect()
}

fn block(fenced: &str) -> Block {
    let (info, text) = fenced.split_once('\n').unwrap();
    let (info, title) = info.split_once(" title=\"").unwrap_or((info, ""));
    let mut parts = info.split(',').map(str::to_owned);
    Block {
        language: parts.next().unwrap(),
        attributes: parts.collect(),
        title: title.strip_suffix('"').map(str::to_owned),
        text: format!("{text}\n"),
    }
}

/// Commands with what they print, of a block of `$ command` lines with output below. A line that
/// ends in a backslash continues in the next one.
pub fn session(text: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), String::new())),
            (None, Some((command, _))) if continues => command.extend(["\n", line]),
            (None, Some((_, output))) => output.extend([line, "\n"]),
            (None, None) => panic!("output before the first command: {line}"),
        }
        let is_command = continues || line.starts_with("$ ");
        continues = is_command && line.ends_with('\\');
    }
    steps
}
