//! Rules for the control groups to manage, and for those never to touch.

use super::cpuset::CgroupVersion;
use super::directory::Hierarchy;
use super::escape_for_display;
use super::walk::{GroupMembers, GroupWalk, MOST_GROUPS, PatternStep, steps};
use crate::proc::ProcError;
use glob::{MatchOptions, Pattern, PatternError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// Longest pattern, bytes.
const MOST_BYTES: usize = 1_024;
/// Most `**` in a pattern: each more multiplies the time that it takes to find out that a path does
/// not match.
const MOST_SPANS: usize = 4;

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
    /// The way to groups that may match.
    steps: Vec<PatternStep>,
}

/// Fault of a text that is no pattern of control groups.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CgroupPatternError {
    /// The pattern would take too long to be compared.
    #[error(
        "a pattern of control groups has at most {MOST_BYTES} bytes and {MOST_SPANS} times '**'; \
         write a shorter one"
    )]
    TooLarge,
    /// The path is empty, or has a part that is empty, `.` or `..`.
    #[error("'{0}' is no control group; write a path such as user.slice/**")]
    Path(String),
    /// The text is not a pattern.
    #[error("'{0}' is no pattern of control groups: {1}")]
    Pattern(String, &'static str),
}

/// An entry of a configuration: control groups to manage, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupRule {
    /// The groups.
    pub cgroup: CgroupPattern,
    /// Their policy, as text, where it is not the usual one.
    pub policy: Option<Arc<str>>,
    /// Rank among entries that match the same group: the highest counts; then the first.
    pub priority: i64,
}

/// The control groups of a host that are managed, and the groups that never are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupRules {
    /// Entries for groups to manage.
    pub manage: Vec<CgroupRule>,
    /// Groups that are never managed, whatever entry matches them.
    pub exclude: Vec<CgroupPattern>,
}

/// A control group that is one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramGroup {
    /// Path of the group from the top of the hierarchy.
    pub(crate) path: String,
    /// The policy that its entry gives it, if any.
    pub(crate) policy: Option<Arc<str>>,
    /// Processes of the group, those of groups below included.
    pub(crate) pids: BTreeSet<u32>,
    /// Those of them that have threads in other groups.
    pub(crate) parts: BTreeSet<u32>,
}

/// The control groups that were found, and the groups that were not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupSearch {
    pub(crate) found: Vec<ProgramGroup>,
    /// Warning about groups that were not looked at, if there are any.
    pub(crate) warning: Option<String>,
    /// Groups that could not be read although they may be there, by path; the empty path stands for
    /// all.
    pub(crate) unseen: BTreeMap<String, ProcError>,
}

impl GroupSearch {
    /// Error that hides the content of a group or of one below it.
    pub(crate) fn error_of(&self, path: &str) -> Option<&ProcError> {
        let is_within = |inner: &str, outer: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with('/'))
        };
        let mut unseen = self.unseen.iter();
        let found = unseen.find(|(group, _)| is_within(path, group) || is_within(group, path));
        found.map(|(_, error)| error)
    }
}

impl FromStr for CgroupPattern {
    type Err = CgroupPatternError;

    fn from_str(text: &str) -> Result<Self, CgroupPatternError> {
        let path = text.trim_matches('/');
        let climbs = path.split('/').any(|name| matches!(name, "" | "." | ".."));
        if text.len() > MOST_BYTES || path.matches("**").count() > MOST_SPANS {
            return Err(CgroupPatternError::TooLarge);
        }
        if climbs {
            return Err(CgroupPatternError::Path(text.to_owned()));
        }
        let each = path.ends_with("/**") || path == "**";
        let refused = |error: PatternError| CgroupPatternError::Pattern(text.to_owned(), error.msg);
        let pattern = Pattern::new(path).map_err(refused)?;
        let steps = steps(path);
        Ok(Self {
            pattern,
            each,
            steps,
        })
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

    /// Returns true if groups that the pattern matches may lie below a group.
    pub(crate) fn may_lie_below(&self, path: &str) -> bool {
        let rest = self.as_str().strip_prefix(path);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
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

impl CgroupRules {
    /// Returns true if any group may be managed.
    pub fn manages(&self) -> bool {
        !self.manage.is_empty()
    }

    /// The groups that are programs now, with their processes.
    pub(crate) fn find(&self, root: &Path) -> GroupSearch {
        let mut search = GroupSearch::default();
        let mut left: Vec<&CgroupRule> = self.manage.iter().collect();
        let mut taken = BTreeSet::new();
        let tops = Hierarchy::all_tops(root).unwrap_or_else(|error| {
            search.unseen.insert(String::new(), error);
            Vec::new()
        });
        for (top, version) in tops {
            // For what is not seen for the moment, the next hierarchy is no second choice.
            if left.is_empty() || search.unseen.values().any(ProcError::is_transient) {
                break;
            }
            // Most groups are in several hierarchies. The first one in which a rule finds processes
            // counts.
            let mut successful = BTreeSet::new();
            for (mut found, rule) in self.find_below(root, (&top, version), &left, &mut search) {
                // No process belongs to two programs.
                found.pids.retain(|pid| taken.insert(*pid));
                if !found.pids.is_empty() {
                    search.found.push(found);
                    successful.insert(rule);
                }
            }
            let mut index = 0..;
            left.retain(|_| index.next().is_none_or(|rule| !successful.contains(&rule)));
        }
        search
    }

    /// Path of the excluded group that a thread with these memberships, the text of its `cgroup`
    /// file, is in; `None` if it may be touched.
    pub(crate) fn excluded_by(&self, cgroup: &str) -> Option<String> {
        let paths = super::memberships(cgroup).into_iter();
        let mut paths = paths.map(|m| m.path.trim_matches('/').to_owned());
        paths.find(|path| self.is_excluded(path))
    }

    /// Returns true if a thread with these memberships is in a group to manage.
    pub(crate) fn covers(&self, cgroup: &str) -> bool {
        let all: Vec<&CgroupRule> = self.manage.iter().collect();
        let paths = super::memberships(cgroup).into_iter();
        let mut paths = paths.map(|m| m.path.trim_matches('/').to_owned());
        paths.any(|path| self.program_of(&path, &all).is_some())
    }

    /// Returns true if a group must be left alone.
    pub(crate) fn is_excluded(&self, path: &str) -> bool {
        self.exclude.iter().any(|pattern| pattern.covers(path))
    }

    /// Programs of one hierarchy by some of the rules, each with the position of its rule.
    fn find_below(
        &self,
        root: &Path,
        (top, version): (&Path, CgroupVersion),
        rules: &[&CgroupRule],
        search: &mut GroupSearch,
    ) -> Vec<(ProgramGroup, usize)> {
        let is_excluded = |path: &str| self.is_excluded(path);
        let mut walk = GroupWalk::new(top, &is_excluded);
        for rule in rules {
            walk.follow(&rule.cgroup.steps);
        }
        if walk.is_cut {
            search.warning = Some(format!(
                "{} has more than {MOST_GROUPS} control groups that a pattern may match, and the rest \
                 is not managed; begin patterns with names, as in system.slice/**",
                top.display()
            ));
        }
        let mut programs: BTreeMap<String, (usize, GroupMembers)> = BTreeMap::new();
        for (path, dir) in &walk.groups {
            let Some((of, rule)) = self.program_of(path, rules) else {
                continue;
            };
            let program = programs.entry(of.to_owned());
            let (_, members) = program.or_insert_with(|| (rule, GroupMembers::default()));
            if let Err(error) = members.add(dir, version) {
                search.unseen.insert(path.clone(), error);
            }
        }
        search.unseen.append(&mut walk.unseen);
        let mut all = Vec::new();
        for (path, (rule, members)) in programs {
            match members.processes(root) {
                Ok((pids, parts)) => {
                    let policy = rules[rule].policy.clone();
                    let found = ProgramGroup {
                        path,
                        policy,
                        pids,
                        parts,
                    };
                    all.push((found, rule));
                }
                Err(error) => drop(search.unseen.insert(path, error)),
            }
        }
        all
    }

    /// The program to which a group belongs by some of the rules, as the path of its topmost group,
    /// and the position of the rule that counts.
    fn program_of<'a>(&self, path: &'a str, rules: &[&CgroupRule]) -> Option<(&'a str, usize)> {
        if self.is_excluded(path) {
            return None;
        }
        let ends = path.match_indices('/').map(|(at, _)| at);
        let above: Vec<&str> = ends.chain([path.len()]).map(|end| &path[..end]).collect();
        let matching = rules.iter().enumerate().filter_map(|(position, rule)| {
            let of = match rule.cgroup.each {
                true => rule.cgroup.matches(path).then_some(path),
                false => above.iter().copied().find(|path| rule.cgroup.matches(path)),
            };
            Some((position, of?))
        });
        // The first of equals: `max_by_key` would give the last.
        let priority = |position: usize| rules[position].priority;
        let best = matching.reduce(|best, other| match priority(other.0) > priority(best.0) {
            true => other,
            false => best,
        });
        best.map(|(rule, of)| (of, rule))
    }
}

impl ProgramGroup {
    /// Path of the group for people.
    pub(crate) fn name(&self) -> String {
        escape_for_display(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(pattern: &str, policy: &str, priority: i64) -> CgroupRule {
        CgroupRule {
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

    fn found(rules: &CgroupRules, host: &tempfile::TempDir) -> Vec<(String, String, usize)> {
        let found = rules.find(host.path()).found.into_iter();
        found
            .map(|f| (f.path, f.policy.unwrap().to_string(), f.pids.len()))
            .collect()
    }

    #[test]
    fn group_is_one_program_unless_pattern_says_each() {
        let host = host(&[
            ("a.slice", ""),
            ("a.slice/x.service", "1\n2\n"),
            ("a.slice/x.service/inner", "3\n"),
            ("a.slice/y.scope", "4\n"),
            ("b.slice", "5\n"),
        ]);
        let whole = CgroupRules {
            manage: vec![rule("a.slice", "p", 0)],
            ..CgroupRules::default()
        };
        assert_eq!(found(&whole, &host), [("a.slice".into(), "p".into(), 4)]);
        let each = CgroupRules {
            manage: vec![rule("a.slice/**", "p", 0)],
            ..CgroupRules::default()
        };
        let paths: Vec<String> = found(&each, &host).into_iter().map(|f| f.0).collect();
        let all = [
            "a.slice/x.service",
            "a.slice/x.service/inner",
            "a.slice/y.scope",
        ];
        assert_eq!(paths, all);
        let unit = CgroupRules {
            manage: vec![CgroupRule {
                cgroup: CgroupPattern::of_unit("x.service").unwrap(),
                ..rule("z", "q", 0)
            }],
            ..CgroupRules::default()
        };
        let expect = [("a.slice/x.service".into(), "q".into(), 3)];
        assert_eq!(found(&unit, &host), expect);
    }

    #[test]
    fn exclusion_wins_then_priority_then_order() {
        let host = host(&[("a/x", "1\n"), ("a/y", "2\n"), ("a/z", "3\n")]);
        let mut rules = CgroupRules {
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
        let excluded = rules.excluded_by("3:cpu:/\n0::/a/z/deep\n");
        assert_eq!(excluded.as_deref(), Some("a/z/deep"));
        assert_eq!(rules.excluded_by("0::/a/zz\n"), None);
        rules.exclude.push("a".parse().unwrap());
        assert_eq!(found(&rules, &host), []);
    }

    #[test]
    fn group_that_cannot_be_read_is_not_empty() {
        let host = host(&[("a/x", "1\n"), ("a/y", "2\n"), ("a/z/in", "3\n")]);
        let group = |path: &str| host.path().join("sys/fs/cgroup").join(path);
        let rules = CgroupRules {
            manage: vec![rule("a/*", "p", 0)],
            ..CgroupRules::default()
        };
        let is_unseen = |path: &str| rules.find(host.path()).error_of(path).is_some();
        assert!(!is_unseen("a/x"));
        // A folder in place of a file answers EISDIR to every user.
        for path in ["a/x/cgroup.procs", "a/z/in/cgroup.procs"] {
            std::fs::remove_file(group(path)).unwrap();
            std::fs::create_dir(group(path)).unwrap();
        }
        let expected = [
            ("a/x", true),
            ("a/y", false),
            ("a/z", true),
            ("a", true),
            ("b", false),
        ];
        for (path, unseen) in expected {
            assert_eq!(is_unseen(path), unseen, "{path}");
        }
        std::fs::remove_dir_all(group("a/x")).unwrap();
        assert!(!is_unseen("a/x"));
        std::fs::remove_file(host.path().join("proc/self/mountinfo")).unwrap();
        std::fs::create_dir(host.path().join("proc/self/mountinfo")).unwrap();
        assert!(is_unseen("a/y") && is_unseen("b"));
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

    #[test]
    fn pattern_that_takes_long_to_compare_is_refused() {
        for text in ["**/".repeat(600) + "a", "x".repeat(MOST_BYTES + 1)] {
            let error = text.parse::<CgroupPattern>().unwrap_err();
            assert_eq!(error, CgroupPatternError::TooLarge);
        }
        assert!("**/a/**/b/**/c/**".parse::<CgroupPattern>().is_ok());
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
