//! The fenced blocks of a documentation page.

use std::path::Path;

/// A fenced block: ```` ```language title="file" ````.
pub struct Block {
    pub language: String,
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
    let (language, title) = info.split_once(' ').unwrap_or((info, ""));
    let title = title.strip_prefix("title=\"");
    let title = title.and_then(|title| title.strip_suffix('"'));
    Block {
        language: language.to_owned(),
        title: title.map(str::to_owned),
        text: format!("{text}\n"),
    }
}

/// Commands with what they print, of a block of `$ command` lines with output below.
pub fn session(text: &str) -> Vec<(String, String)> {
    let mut steps: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.extend([line, "\n"]),
            (None, None) => panic!("output before the first command: {line}"),
        }
    }
    steps
}
