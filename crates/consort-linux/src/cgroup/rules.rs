//! Rules that tell the control groups to manage, and those never to touch.

use super::Hierarchy;
use crate::proc::numbers_in_file;
use glob::{MatchOptions, Pattern, PatternError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// Number of control groups after which the search of a hierarchy ends; the rest of a host with
/// more is not managed by patterns.
const MOST_GROUPS: usize = 20_000;

/// A pattern of control groups, from the top of their hierarchy: `user.slice/**`,
/// `system.slice/docker-*.scope`. `*` stays within one name, `**` spans any number of them.
///
/// A pattern that ends in `/**` makes every group below a program of its own; any other makes a
/// program of each group that it matches, with all that lies below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPattern {
    pattern: Pattern,
    /// True if groups below are programs of their own.
    each: bool,
}

/// Fault of a text that is no pattern of control groups.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CgroupPatternError {
    /// The path is empty, too long, or has a part that is empty, `.` or `..`.
    #[error("'{0}' is no control group; write a path such as user.slice/**")]
    Path(String),
    /// The text is not a pattern.
    #[error("'{0}' is no pattern of control groups: {1}")]
    Pattern(String, &'static str),
}

/// An entry of a configuration: control groups to manage, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The groups.
    pub cgroup: CgroupPattern,
    /// Their policy, as text, where it is not the usual one.
    pub policy: Option<Arc<str>>,
    /// Rank among entries that match the same group: the highest counts; then the first.
    pub priority: i64,
}

/// The control groups of a host that are managed, and those that never are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Entries for groups to manage.
    pub manage: Vec<Rule>,
    /// Groups that are never managed, whatever entry matches them.
    pub exclude: Vec<CgroupPattern>,
}

/// A control group that is one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Path of the group from the top of the hierarchy.
    pub(crate) path: String,
    /// The policy that its entry gives it, if any.
    pub(crate) policy: Option<Arc<str>>,
    /// Processes of the group, those of groups below included.
    pub(crate) pids: Vec<u32>,
}

impl FromStr for CgroupPattern {
    type Err = CgroupPatternError;

    fn from_str(text: &str) -> Result<Self, CgroupPatternError> {
        let path = text.trim_matches('/');
        let climbs = path.split('/').any(|name| matches!(name, "" | "." | ".."));
        if climbs || path.len() > 4_000 {
            return Err(CgroupPatternError::Path(text.to_owned()));
        }
        let each = path.ends_with("/**") || path == "**";
        let refused = |error: PatternError| CgroupPatternError::Pattern(text.to_owned(), error.msg);
        let pattern = Pattern::new(path).map_err(refused)?;
        Ok(Self { pattern, each })
    }
}

impl CgroupPattern {
    /// The pattern of a systemd unit, anywhere in the hierarchy.
    ///
    /// # Errors
    /// When the name has a slash, or is no pattern.
    pub fn of_unit(unit: &str) -> Result<Self, CgroupPatternError> {
        match unit.contains('/') {
            true => Err(CgroupPatternError::Path(unit.to_owned())),
            false => format!("**/{unit}").parse(),
        }
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        self.pattern.as_str()
    }

    fn matches(&self, path: &str) -> bool {
        let options = MatchOptions {
            require_literal_separator: true,
            ..MatchOptions::new()
        };
        self.pattern.matches_with(path, options)
    }

    /// Returns true if the group or one above it matches.
    fn covers(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at);
        let mut above = ends.chain([path.len()]).map(|end| &path[..end]);
        above.any(|path| self.matches(path))
    }
}

impl Rules {
    /// Returns true if any group may be managed.
    pub fn manages(&self) -> bool {
        !self.manage.is_empty()
    }

    /// The groups that are programs now, with their processes.
    pub(crate) fn find(&self, root: &Path) -> Vec<Found> {
        if !self.manages() {
            return Vec::new();
        }
        let hierarchies = hierarchies(root);
        let found = hierarchies.iter().map(|top| self.find_below(top));
        found
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// Returns true if a process with these memberships, the text of its `cgroup` file, must be
    /// left alone.
    pub(crate) fn excludes(&self, cgroup: &str) -> bool {
        let paths = super::membership::memberships(cgroup);
        let mut paths = paths.iter().map(|m| m.path.trim_matches('/'));
        paths.any(|path| self.exclude.iter().any(|pattern| pattern.covers(path)))
    }

    fn find_below(&self, top: &Path) -> Vec<Found> {
        let mut programs: BTreeMap<String, Found> = BTreeMap::new();
        for (path, dir) in groups(top) {
            let Some((of, policy)) = self.program_of(&path) else {
                continue;
            };
            let pids = numbers_in_file(&dir.join("cgroup.procs"));
            let program = programs.entry(of.to_owned()).or_insert_with(|| Found {
                path: of.to_owned(),
                policy,
                pids: Vec::new(),
            });
            program.pids.extend(pids);
        }
        let programs = programs.into_values();
        programs
            .filter(|program| !program.pids.is_empty())
            .collect()
    }

    /// The program to which a group belongs, as the path of its topmost group, and its policy.
    fn program_of<'a>(&self, path: &'a str) -> Option<(&'a str, Option<Arc<str>>)> {
        if self.exclude.iter().any(|pattern| pattern.covers(path)) {
            return None;
        }
        let ends = path.match_indices('/').map(|(at, _)| at);
        let above: Vec<&str> = ends.chain([path.len()]).map(|end| &path[..end]).collect();
        let matching = self.manage.iter().filter_map(|rule| {
            let of = match rule.cgroup.each {
                true => rule.cgroup.matches(path).then_some(path),
                false => above.iter().copied().find(|path| rule.cgroup.matches(path)),
            };
            Some((rule, of?))
        });
        // The first of equals: `max_by_key` would give the last.
        let best = matching.reduce(|best, other| match other.0.priority > best.0.priority {
            true => other,
            false => best,
        });
        best.map(|(rule, of)| (of, rule.policy.clone()))
    }
}

/// Tops of the mounted hierarchies in which services and containers may lie: version 2, then
/// systemd's own and those of controllers in version 1.
fn hierarchies(root: &Path) -> Vec<PathBuf> {
    let kinds = [
        None,
        Some("name=systemd"),
        Some("cpu"),
        Some("cpuset"),
        Some("freezer"),
        Some("memory"),
    ];
    let mounted = kinds.iter().filter_map(|kind| Hierarchy::find(root, *kind));
    mounted.map(|hierarchy| hierarchy.top()).collect()
}

/// Every group below the top by its path, and its directory.
fn groups(top: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    let mut left = vec![(String::new(), top.to_owned())];
    while let Some((path, dir)) = left.pop() {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        for entry in entries {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let (true, Ok(name)) = (is_dir, entry.file_name().into_string()) else {
                continue;
            };
            let below = match path.as_str() {
                "" => name,
                path => format!("{path}/{name}"),
            };
            left.push((below.clone(), entry.path()));
            found.push((below, entry.path()));
        }
        if found.len() > MOST_GROUPS {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(pattern: &str, policy: &str, priority: i64) -> Rule {
        Rule {
            cgroup: pattern.parse().unwrap(),
            policy: Some(policy.into()),
            priority,
        }
    }

    fn host(groups: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "proc/self/mountinfo",
            "2 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        for (group, pids) in groups {
            write(&format!("sys/fs/cgroup/{group}/cgroup.procs"), pids);
        }
        dir
    }

    fn found(rules: &Rules, host: &tempfile::TempDir) -> Vec<(String, String, usize)> {
        let found = rules.find(host.path()).into_iter();
        found
            .map(|f| (f.path, f.policy.unwrap().to_string(), f.pids.len()))
            .collect()
    }

    #[test]
    fn a_group_is_a_program_with_all_below_unless_each_is_meant() {
        let host = host(&[
            ("a.slice", ""),
            ("a.slice/x.service", "1\n2\n"),
            ("a.slice/x.service/inner", "3\n"),
            ("a.slice/y.scope", "4\n"),
            ("b.slice", "5\n"),
        ]);
        let whole = Rules {
            manage: vec![rule("a.slice", "p", 0)],
            ..Rules::default()
        };
        assert_eq!(found(&whole, &host), [("a.slice".into(), "p".into(), 4)]);
        let each = Rules {
            manage: vec![rule("a.slice/**", "p", 0)],
            ..Rules::default()
        };
        let paths: Vec<String> = found(&each, &host).into_iter().map(|f| f.0).collect();
        let all = [
            "a.slice/x.service",
            "a.slice/x.service/inner",
            "a.slice/y.scope",
        ];
        assert_eq!(paths, all);
        let unit = Rules {
            manage: vec![Rule {
                cgroup: CgroupPattern::of_unit("x.service").unwrap(),
                ..rule("z", "q", 0)
            }],
            ..Rules::default()
        };
        let expect = [("a.slice/x.service".into(), "q".into(), 3)];
        assert_eq!(found(&unit, &host), expect);
    }

    #[test]
    fn exclusion_wins_then_priority_then_order() {
        let host = host(&[("a/x", "1\n"), ("a/y", "2\n"), ("a/z", "3\n")]);
        let mut rules = Rules {
            manage: vec![
                rule("a/*", "low", 0),
                rule("a/y", "high", 1),
                rule("a/x", "late", 0),
            ],
            exclude: vec!["a/z".parse().unwrap()],
        };
        let expect = [
            ("a/x".to_owned(), "low".to_owned(), 1),
            ("a/y".to_owned(), "high".to_owned(), 1),
        ];
        assert_eq!(found(&rules, &host), expect);
        assert!(rules.excludes("3:cpu:/\n0::/a/z/deep\n"));
        assert!(!rules.excludes("0::/a/zz\n"));
        rules.exclude.push("a".parse().unwrap());
        assert_eq!(found(&rules, &host), []);
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in ["", "/", "a//b", "../a", "a/./b"] {
            assert!(text.parse::<CgroupPattern>().is_err(), "{text}");
        }
        let error = "a/[".parse::<CgroupPattern>().unwrap_err().to_string();
        assert!(error.starts_with("'a/[' is no pattern"), "{error}");
        assert!(CgroupPattern::of_unit("a/b").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_pattern_or_refused(text in "\\PC{0,40}", path in "[a-z/.*]{0,30}") {
            if let Ok(pattern) = text.parse::<CgroupPattern>() {
                let _ = pattern.covers(&path);
            }
        }
    }
}
