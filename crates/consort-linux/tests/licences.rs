//! Promise: everything that is built into Consort may be given on under its own
//! licence: each dependency offers a licence that `deny.toml` allows.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod skip;

use serde_json::Value;
use skip::skipped;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("crates lie two folders down")
}

fn allowed() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let file: toml::Table = text.parse().unwrap();
    let list = file["licenses"]["allow"].as_array().unwrap();
    list.iter()
        .map(|l| l.as_str().unwrap().to_owned())
        .collect()
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|e| e.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The dependencies of a build for this host, from the files that the build has fetched already.
fn packages() -> Result<Vec<Value>, String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|l| l.strip_prefix("host: "));
    let host = host.ok_or("rustc does not tell its host")?;
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version=1", "--offline"]);
    metadata
        .args(["--filter-platform", host])
        .current_dir(root());
    let metadata: Value = serde_json::from_str(&output(&mut metadata)?).unwrap();
    Ok(metadata["packages"].as_array().unwrap().clone())
}

/// Returns true if an SPDX expression can be met by allowed licences alone. An older form has `/`
/// for `OR`.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ");
    let spaced = spaced.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = either(&words, allowed);
    assert!(rest.is_empty(), "not understood: {expression}");
    met
}

fn either<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (met, rest) = both(words, allowed);
    match rest {
        ["OR", rest @ ..] => {
            let (other, rest) = either(rest, allowed);
            (met || other, rest)
        }
        _ => (met, rest),
    }
}

fn both<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (met, rest) = one(words, allowed);
    match rest {
        ["AND", rest @ ..] => {
            let (other, rest) = both(rest, allowed);
            (met && other, rest)
        }
        _ => (met, rest),
    }
}

fn one<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    match words {
        ["(", rest @ ..] => {
            let (met, rest) = either(rest, allowed);
            (
                met,
                rest.strip_prefix(&[")"]).expect("a closing parenthesis"),
            )
        }
        [name, "WITH", exception, rest @ ..] => {
            (allowed.contains(&format!("{name} WITH {exception}")), rest)
        }
        [name, rest @ ..] => (allowed.contains(*name), rest),
        [] => (false, words),
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let packages = match packages() {
        Ok(packages) => packages,
        Err(error) => return skipped(format!("cargo metadata without a network: {error}")),
    };
    assert!(packages.len() > 20, "found only {}", packages.len());
    let allowed = allowed();
    for package in packages {
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_met(licence, &allowed), "{}: {licence}", package["name"]);
    }
}

#[test]
fn expressions_are_understood() {
    let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH X"].map(str::to_owned));
    for met in [
        "MIT",
        "MIT/GPL-2.0",
        "GPL-2.0 OR MIT AND ISC",
        "(GPL OR MIT) AND ISC",
    ] {
        assert!(is_met(met, &allowed), "{met}");
    }
    for unmet in ["GPL-2.0", "MIT AND GPL-2.0", "Apache-2.0", "none"] {
        assert!(!is_met(unmet, &allowed), "{unmet}");
    }
    assert!(is_met("Apache-2.0 WITH X OR GPL-2.0", &allowed));
}
