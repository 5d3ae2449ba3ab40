//! The configuration: defaults for `consort run` and `consort daemon`, and what a daemon manages.
//!
//! ```toml
//! [run]
//! policy = "workover:margin=0.1"
//! interval = "500ms"
//! seed = 1
//! topology = "/etc/consort/cores.toml"
//! enact = "nudge"
//! cookies = true
//! watch = "light"
//! back-off = true
//!
//! [daemon]                          # the same keys, and:
//! policy = "auto"
//! trial = "5 %"                     # share of the time without management, to measure its effect
//!
//! [[manage]]
//! cgroup = "batch.slice/**"         # or: unit = "postgresql.service"
//! policy = "spread"
//! priority = 10
//!
//! [[exclude]]                       # wins over everything
//! unit = "sshd.service"
//!
//! [metrics]
//! listen = "127.0.0.1:9464"
//! ```
//!
//! Later layers win key by key, and add their entries: `/usr/lib/consort`, `/etc/consort`, then the
//! user's `~/.config/consort`; in each `config.toml`, then `config.d/*.toml` by name.

use crate::failure::{bad_input, error_chain};
use crate::options::{parse_interval, parse_percent};
use anyhow::{Context, Result};
use consort_core::policy::published_name;
pub(crate) use consort_lab::descriptions::folders;
use consort_linux::cgroup::{CgroupPattern, CgroupRule, CgroupRules};
use consort_linux::enforce::EnactChoice;
use consort_linux::live::WatchRate;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsortConfig {
    #[serde(default)]
    pub(crate) run: RunConfig,
    #[serde(default)]
    pub(crate) daemon: RunConfig,
    /// Control groups that a daemon manages.
    #[serde(default)]
    pub(crate) manage: Vec<ManageEntry>,
    /// Control groups that no daemon manages.
    #[serde(default)]
    pub(crate) exclude: Vec<CgroupName>,
    /// Metrics that a daemon serves.
    #[serde(default)]
    pub(crate) metrics: MetricsConfig,
    /// Files that were read, in this order.
    #[serde(skip_deserializing)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsConfig {
    /// Loopback address at which `/metrics` is served; nowhere if missing.
    pub(crate) listen: Option<SocketAddr>,
}

/// A control group, or a unit that has one.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CgroupName {
    /// Path below the root of control groups, or a pattern with `*` and `**`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cgroup: Option<String>,
    /// Unit of systemd that has the control group, instead of `cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<String>,
}

/// Control groups to manage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManageEntry {
    /// Path below the root of control groups, or a pattern with `*` and `**`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cgroup: Option<String>,
    /// Unit of systemd that has the control group, instead of `cgroup`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<String>,
    /// Policy with options; the daemon's if it is missing.
    #[serde(
        default,
        deserialize_with = "published_policy",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) policy: Option<String>,
    /// Priority; of several entries that match, the highest counts.
    #[serde(default)]
    pub(crate) priority: i64,
}

/// Defaults for managing; the command line wins.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RunConfig {
    /// Policy with options; `auto` if it is missing.
    #[serde(default, deserialize_with = "published_policy")]
    pub(crate) policy: Option<String>,
    /// Quantum between decisions; the policy's own if it is missing.
    #[serde(
        default,
        deserialize_with = "interval",
        serialize_with = "interval_text"
    )]
    pub(crate) interval: Option<Duration>,
    /// Seed of the policy's randomness.
    pub(crate) seed: Option<u64>,
    /// File with the cores and caches that CPUs share, instead of the kernel's account.
    pub(crate) topology: Option<PathBuf>,
    /// Enactors that may keep threads in their places.
    #[serde(default, deserialize_with = "named", serialize_with = "name_text")]
    pub(crate) enact: Option<EnactChoice>,
    /// True if cores are kept to the threads that plans seat on them.
    pub(crate) cookies: Option<bool>,
    /// Rate at which programs are watched.
    #[serde(default, deserialize_with = "named", serialize_with = "name_text")]
    pub(crate) watch: Option<WatchRate>,
    /// True if plans are undone when progress falls after them.
    pub(crate) back_off: Option<bool>,
    /// Share of a daemon's time without management, by which it measures its effect.
    #[serde(
        default,
        deserialize_with = "percent",
        serialize_with = "percent_text",
        skip_serializing_if = "Option::is_none"
    )]
    pub(crate) trial: Option<f64>,
    /// Origin of the last layer that set any of it.
    #[serde(skip)]
    origin: TableOrigin,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct TableOrigin {
    file: PathBuf,
    table: &'static str,
}

impl RunConfig {
    /// The error with the file and the key that caused it.
    pub(crate) fn locate_error(&self, key: &str, error: &anyhow::Error) -> anyhow::Error {
        let TableOrigin { file, table } = &self.origin;
        let file = file.display();
        bad_input(format!(
            "configuration {file}, {table}.{key}: {}",
            error_chain(error)
        ))
    }

    /// Replaces keys that a later layer has.
    fn merge(self, later: Self) -> Self {
        let is_set = later
            != Self {
                origin: later.origin.clone(),
                ..Self::default()
            };
        Self {
            policy: later.policy.or(self.policy),
            interval: later.interval.or(self.interval),
            seed: later.seed.or(self.seed),
            topology: later.topology.or(self.topology),
            enact: later.enact.or(self.enact),
            cookies: later.cookies.or(self.cookies),
            watch: later.watch.or(self.watch),
            back_off: later.back_off.or(self.back_off),
            trial: later.trial.or(self.trial),
            origin: if is_set { later.origin } else { self.origin },
        }
    }
}

impl ConsortConfig {
    /// Replaces keys that a later layer has, and adds its entries.
    fn merge(self, later: Self) -> Self {
        Self {
            run: self.run.merge(later.run),
            daemon: self.daemon.merge(later.daemon),
            manage: self.manage.into_iter().chain(later.manage).collect(),
            exclude: self.exclude.into_iter().chain(later.exclude).collect(),
            metrics: MetricsConfig {
                listen: later.metrics.listen.or(self.metrics.listen),
            },
            files: self.files.into_iter().chain(later.files).collect(),
        }
    }

    /// Keys of a daemon that differ and take effect only after a restart.
    pub(crate) fn keys_for_restart(&self, later: &Self) -> Vec<String> {
        let (old, new) = (&self.daemon, &later.daemon);
        let daemon = [
            ("interval", old.interval != new.interval),
            ("seed", old.seed != new.seed),
            ("topology", old.topology != new.topology),
            ("enact", old.enact != new.enact),
            ("cookies", old.cookies != new.cookies),
            ("back-off", old.back_off != new.back_off),
            ("watch", old.watch != new.watch),
            ("trial", old.trial != new.trial),
        ];
        let daemon = daemon.into_iter().filter(|(_, differs)| *differs);
        let daemon = daemon.map(|(key, _)| format!("[daemon] {key}"));
        let differs = self.metrics.listen != later.metrics.listen;
        let metrics = differs.then(|| "[metrics] listen".to_owned());
        daemon.chain(metrics).collect()
    }

    /// Returns the rules for control groups that a daemon manages, and for those that it never does.
    pub(crate) fn rules(&self) -> Result<CgroupRules> {
        let manage = self.manage.iter().map(|entry| {
            let cgroup = pattern(entry.cgroup.as_deref(), entry.unit.as_deref());
            Ok(CgroupRule {
                cgroup: cgroup.context("[[manage]]")?,
                policy: entry.policy.as_deref().map(Arc::from),
                priority: entry.priority,
            })
        });
        let exclude = self.exclude.iter().map(|entry| {
            let cgroup = pattern(entry.cgroup.as_deref(), entry.unit.as_deref());
            cgroup.context("[[exclude]]")
        });
        Ok(CgroupRules {
            manage: manage.collect::<Result<_>>()?,
            exclude: exclude.collect::<Result<_>>()?,
        })
    }
}

pub(crate) fn pattern(cgroup: Option<&str>, unit: Option<&str>) -> Result<CgroupPattern> {
    match (cgroup, unit) {
        (Some(cgroup), None) => Ok(cgroup.parse()?),
        (None, Some(unit)) => Ok(CgroupPattern::of_unit(unit)?),
        _ => Err(anyhow::anyhow!("name either cgroup or unit")),
    }
}

/// Reads a value by its name, as the command line takes it.
fn named<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn name_text<S: Serializer>(value: &Option<impl Display>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(to)
}

fn interval_text<S: Serializer>(interval: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    interval
        .map(|time| format!("{}ms", time.as_millis()))
        .serialize(to)
}

fn percent_text<S: Serializer>(share: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    share
        .map(|share| format!("{} %", 100.0 * share))
        .serialize(to)
}

fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let share = parse_percent(&text).filter(|share| (0.001..=0.5).contains(share));
    let share = share.ok_or_else(|| {
        serde::de::Error::custom("expected a share from 0.1 % to 50 %, for example \"5 %\"")
    })?;
    Ok(Some(share))
}

fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_interval(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// A policy by its published name, whichever name the file has.
fn published_policy<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.map(|text| published_name(&text).into_owned()))
}

/// Loads the file that was named, or all layers of the usual places.
pub(crate) fn load(named: Option<&Path>) -> Result<ConsortConfig> {
    let files = named.map_or_else(layers, |path| vec![path.to_owned()]);
    let mut all = ConsortConfig::default();
    for file in files {
        all = all.merge(read(&file)?);
    }
    Ok(all)
}

/// Existing files of the usual places, the strongest last.
fn layers() -> Vec<PathBuf> {
    let mut folders = folders();
    folders.push(PathBuf::from("/usr/lib/consort"));
    let layers = folders.iter().rev().flat_map(|folder| {
        let file = folder.join("config.toml");
        let first = file.is_file().then_some(file);
        first
            .into_iter()
            .chain(toml_files(&folder.join("config.d")))
    });
    layers.collect()
}

/// `*.toml` of a folder by name; empty if the folder cannot be read.
pub(crate) fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

fn read(path: &Path) -> Result<ConsortConfig> {
    let text = consort_describe::input::read_regular_file(path)
        .with_context(|| format!("cannot read configuration {}", path.display()))?;
    let context = || format!("configuration {}", path.display());
    let mut config = parse(&text).with_context(context)?;
    config.rules().with_context(context)?;
    let origin = |table| TableOrigin {
        file: path.to_owned(),
        table,
    };
    (config.run.origin, config.daemon.origin) = (origin("run"), origin("daemon"));
    config.files.push(path.to_owned());
    Ok(config)
}

/// Errors are one line: the line number, and what is wrong there.
fn parse(text: &str) -> Result<ConsortConfig> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text
            .bytes()
            .take(start)
            .filter(|&byte| byte == b'\n')
            .count();
        anyhow::anyhow!("line {line}: {}", error.message().replace('\n', ", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_policy_name_is_read_as_published() {
        let config = parse("[run]\npolicy = \"pair-fpu:margin=0.1\"\n").unwrap();
        assert_eq!(config.run.policy.as_deref(), Some("workover:margin=0.1"));
    }

    #[test]
    fn every_key_is_read() {
        let text = "[run]\npolicy = \"none\"\ninterval = \"250ms\"\nseed = 7\nenact = \"pin\"\ncookies = true\nwatch = \"light\"\nback-off = false\n";
        let run = parse(text).unwrap().run;
        assert_eq!(run.policy.as_deref(), Some("none"));
        assert_eq!(run.interval, Some(Duration::from_millis(250)));
        assert_eq!((run.seed, run.back_off), (Some(7), Some(false)));
        assert_eq!(run.enact, "pin".parse().ok());
        assert_eq!(run.cookies, Some(true));
        assert_eq!(run.watch, Some(WatchRate::Light));
    }

    #[test]
    fn first_version_of_configuration_is_read() {
        let text = "[run]\npolicy = \"workover:margin=0.1\"\ninterval = \"500ms\"\nseed = 1\n\
                    back-off = true\n";
        let run = parse(text).unwrap().run;
        assert_eq!(run.policy.as_deref(), Some("workover:margin=0.1"));
        assert_eq!(run.interval, Some(Duration::from_millis(500)));
        assert_eq!((run.seed, run.back_off), (Some(1), Some(true)));
    }

    #[test]
    fn later_layers_win_key_by_key() {
        let layer = |text: &str| parse(text).unwrap();
        let vendor = layer("[run]\npolicy = \"none\"\nseed = 1\n[[manage]]\ncgroup = \"a\"\n");
        let user = layer("[run]\nseed = 2\n[[manage]]\nunit = \"b.service\"\npriority = 3\n");
        let both = vendor.merge(user);
        assert_eq!(both.run.policy.as_deref(), Some("none"));
        assert_eq!(both.run.seed, Some(2));
        let rules = both.rules().unwrap();
        let patterns: Vec<&str> = rules.manage.iter().map(|r| r.cgroup.as_str()).collect();
        assert_eq!(patterns, ["a", "**/b.service"]);
    }

    #[test]
    fn keys_that_need_a_restart_are_named() {
        let old = parse("[daemon]\npolicy = \"none\"\nseed = 1\n").unwrap();
        let new = "[daemon]\npolicy = \"spread\"\nseed = 2\n[run]\nseed = 3\n\
                   [metrics]\nlisten = \"127.0.0.1:1\"\n";
        let keys = old.keys_for_restart(&parse(new).unwrap());
        assert_eq!(keys, ["[daemon] seed", "[metrics] listen"]);
        assert!(old.keys_for_restart(&old).is_empty());
    }

    #[test]
    fn drop_ins_come_last_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.toml", "a.toml", "c.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = toml_files(folder.path());
        let names: Vec<_> = found.iter().map(|p| p.file_name().unwrap()).collect();
        assert_eq!(names, ["a.toml", "b.toml"]);
        assert!(toml_files(&folder.path().join("absent")).is_empty());
    }

    #[test]
    fn entry_without_group_is_refused() {
        let config = parse("[[exclude]]\ncgroup = \"a\"\nunit = \"b\"\n").unwrap();
        let error = format!("{:#}", config.rules().unwrap_err());
        assert_eq!(error, "[[exclude]]: name either cgroup or unit");
    }

    #[test]
    fn an_empty_file_changes_nothing() {
        assert_eq!(parse("").unwrap(), ConsortConfig::default());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([\\[\\]={}\"'\n#. ]|run|policy|seed|[0-9a-z-]|\\PC){0,60}") {
            if let Err(error) = parse(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn errors_name_line_and_key() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            error("[run]\n\npolice = \"none\"\n").starts_with("line 3: unknown field `police`")
        );
        assert!(error("[run]\ninterval = \"5\"\n").contains("line 2"));
        assert!(error("[run]\ninterval = \"1us\"\n").contains("from 1ms to 1h"));
    }
}
