//! The page of verbs: the help of each, as the program prints it.

use super::consort;
use std::collections::BTreeSet;

/// Words of the arguments that name each verb: those that have a man page, which leaves out hidden
/// ones. Verbs of two words, such as `machine probe`, have a page as `consort-machine-probe.1`.
fn verbs() -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    consort(&["man", folder.path().to_str().unwrap()]);
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let names: BTreeSet<String> = entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let name = name.strip_prefix("consort-")?.strip_suffix(".1")?;
            Some(name.to_owned())
        })
        .filter(|name| name != "help" && !name.contains("-help"))
        .collect();
    let words = |name: &String| {
        let parent = names
            .iter()
            .filter(|other| name.starts_with(&format!("{other}-")))
            .max_by_key(|other| other.len());
        match parent {
            Some(parent) => vec![parent.clone(), name[parent.len() + 1..].to_owned()],
            None => vec![name.clone()],
        }
    };
    names.iter().map(words).collect()
}

pub fn page() -> String {
    let mut text = "# Verbs\n\nThe help of every verb, for anyone who looks for an option. For example, \
                    `consort run --help` prints the part on `run`. `consort help` lists all verbs.\n\n\
                    ```text\n"
        .to_owned();
    text += consort(&["--help"]).trim_end();
    text += "\n```\n";
    for verb in verbs() {
        let mut arguments: Vec<&str> = verb.iter().map(String::as_str).collect();
        let name = arguments.join(" ");
        arguments.push("--help");
        let help = consort(&arguments);
        text += &format!("\n## consort {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    text
}
