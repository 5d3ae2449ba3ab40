//! The description of a sweep.

use consort_sim::describe::{self, DescribeError, Problems};
use schemars::JsonSchema;
use serde::Deserialize;

/// Extent of a sweep: every workload on every machine with every point of the parameters, under
/// every policy, with every seed; or studies.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepSpec {
    /// Machines, as `consort simulate --machine` takes them; paths are relative to the folder in
    /// which Consort runs.
    #[serde(default)]
    pub machines: Vec<String>,
    /// Workloads, as `consort simulate --workload` takes them.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// Policies with options.
    #[serde(default)]
    pub policies: Vec<String>,
    /// Studies by id, in place of machines, workloads and policies.
    #[serde(default)]
    pub studies: Vec<String>,
    /// True to run studies at the quick scale.
    #[serde(default)]
    pub quick: bool,
    /// Seed of the first run; of studies the seed in place of their own, where it is given.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Runs of each case and policy, with successive seeds.
    #[serde(default = "one")]
    pub runs: u32,
    /// Time that each program's work takes alone, s.
    #[serde(default = "usual_alone")]
    pub alone_s: f64,
    /// Quantum between decisions, ms; each policy's own if not given.
    #[serde(default)]
    pub quantum_ms: Option<f64>,
    /// Model of the operating system beneath the policies.
    #[serde(default = "linux")]
    pub os: String,
    /// Values of machines that are varied.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// Sampling of the parameters that have bounds.
    #[serde(default)]
    pub samples: Option<Samples>,
    /// Estimated host time that a shard takes at least, s; less than the usual half a minute only to
    /// try things out.
    #[serde(default = "half_a_minute")]
    pub shard_s: f64,
    /// Host time per second that a simulated thread runs, s, where the usual estimate is far off.
    #[serde(default)]
    pub host_s_per_thread_s: Option<f64>,
}

/// A value of every machine that is varied: a list, a range, or bounds within which it is sampled.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Dotted name of a key of machine files, for example `llc.size_kib`.
    pub key: String,
    /// All values.
    #[serde(default)]
    pub values: Vec<Literal>,
    /// First value of a range.
    #[serde(default)]
    pub from: Option<f64>,
    /// Last value of a range, at most.
    #[serde(default)]
    pub to: Option<f64>,
    /// Distance of a range's values.
    #[serde(default)]
    pub step: Option<f64>,
    /// Smallest value that is sampled.
    #[serde(default)]
    pub least: Option<f64>,
    /// Largest value that is sampled.
    #[serde(default)]
    pub most: Option<f64>,
    /// Scale on which it is sampled.
    #[serde(default)]
    pub scale: Scaling,
    /// True where sampled values and those of a range are whole numbers.
    #[serde(default)]
    pub whole: bool,
}

/// A value in a list.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Literal {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

/// The scale on which a parameter is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// Equal distances are equally likely.
    #[default]
    Linear,
    /// Equal ratios are equally likely.
    Log,
}

/// Sampling of the parameters that have bounds, together.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// The method.
    pub method: Method,
    /// Number of samples.
    pub count: u32,
    /// Seed of the samples.
    #[serde(default)]
    pub seed: u32,
}

/// A method of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A Latin hypercube (McKay et al. 1979).
    Latin,
    /// A Sobol sequence, scrambled (Burley 2020); fills evenly however many are taken, powers of two
    /// best.
    Sobol,
}

/// Parameters that a Sobol sequence can have.
const DIMENSIONS: usize = 256;

const fn one() -> u32 {
    1
}

const fn usual_alone() -> f64 {
    30.0
}

const fn half_a_minute() -> f64 {
    30.0
}

fn linux() -> String {
    "linux".to_owned()
}

impl SweepSpec {
    /// Reads and checks a description; `file` is its name for messages.
    ///
    /// # Errors
    /// The first thing wrong with it, by line and key.
    pub fn parse(file: &str, text: &str) -> Result<Self, DescribeError> {
        describe::parse(file, text, check)
    }

    /// The format as JSON Schema.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self);
        schema.insert("title".to_owned(), "Consort sweep".into());
        schema.to_value()
    }

    /// Seed of the first run.
    pub(super) fn first_seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

fn check(spec: &SweepSpec, problems: &mut Problems) {
    let lists = [
        ("machines", spec.machines.is_empty()),
        ("workloads", spec.workloads.is_empty()),
        ("policies", spec.policies.is_empty()),
    ];
    let wanted = spec.studies.is_empty();
    let message = match wanted {
        true => "has none; expected at least one, or studies instead",
        false => "is given in addition to studies; expected one or the other",
    };
    for (key, is_empty) in lists {
        problems.require(is_empty != wanted, key, message);
    }
    let right = wanted || spec.parameters.is_empty();
    let message = "are for machines; studies have their own";
    problems.require(right, "parameters", message);
    let rate = spec.host_s_per_thread_s.unwrap_or(1.0);
    for (key, value, min, max) in [
        ("runs", f64::from(spec.runs), 1.0, 10_000.0),
        ("alone_s", spec.alone_s, 1e-4, 3600.0),
        ("quantum_ms", spec.quantum_ms.unwrap_or(1.0), 0.1, 3.6e6),
        ("shard_s", spec.shard_s, 0.001, 86_400.0),
        ("host_s_per_thread_s", rate, 1e-9, 1e6),
    ] {
        problems.check_range(key, value, min, max);
    }
    for (n, parameter) in spec.parameters.iter().enumerate() {
        check_parameter(&format!("parameters[{n}]"), parameter, problems);
    }
    let bounded = spec.parameters.iter().filter(|p| p.least.is_some());
    let bounded = bounded.count();
    if let Some(samples) = &spec.samples {
        let message = "are too many to sample; expected at most 256";
        problems.require(bounded <= DIMENSIONS, "parameters", message);
        problems.check_range("samples.count", f64::from(samples.count), 1.0, 65_536.0);
        let message = "have nothing to sample; expected a parameter with least and most";
        problems.require(bounded > 0, "samples", message);
    } else {
        let message = "are sampled; expected [samples] with method and count";
        problems.require(bounded == 0, "parameters", message);
    }
}

fn check_parameter(key: &str, parameter: &Parameter, problems: &mut Problems) {
    let Parameter {
        from,
        to,
        step,
        least,
        most,
        ..
    } = *parameter;
    let is_range = from.is_some() || to.is_some() || step.is_some();
    let is_bounded = least.is_some() || most.is_some();
    let kinds = [!parameter.values.is_empty(), is_range, is_bounded];
    let one = kinds.iter().filter(|kind| **kind).count() == 1;
    let message = "needs one of: values; from, to and step; least and most";
    problems.require(one, format!("{key}.key"), message);
    if let (Some(from), Some(to), Some(step)) = (from, to, step) {
        let fits = step > 0.0 && from <= to && (to - from) / step <= 1e6;
        let message =
            "leads nowhere; expected from below to, a step above 0, a million values at most";
        problems.require(fits, format!("{key}.step"), message);
    } else {
        let message = "has part of a range; expected from, to and step";
        problems.require(!is_range, format!("{key}.key"), message);
    }
    if let (Some(least), Some(most)) = (least, most) {
        let positive = parameter.scale == Scaling::Linear || least > 0.0;
        let message = "cannot be sampled; expected least below most, above 0 on a log scale";
        problems.require(least < most && positive, format!("{key}.least"), message);
    } else {
        let message = "has one bound; expected least and most";
        problems.require(!is_bounded, format!("{key}.key"), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "machines = [\"power8\"]\nworkloads = [\"mcf\"]\npolicies = [\"linux\"]\n";

    fn error(more: &str) -> String {
        let text = format!("{LEAST}{more}");
        SweepSpec::parse("s.toml", &text)
            .err()
            .map_or_else(String::new, |e| e.to_string())
    }

    #[test]
    fn short_description_is_enough() {
        let spec = SweepSpec::parse("s.toml", LEAST).unwrap();
        assert_eq!((spec.runs, spec.first_seed(), spec.shard_s), (1, 1, 30.0));
        assert!(SweepSpec::parse("s.toml", "studies = [\"W1\"]\nquick = true\n").is_ok());
    }

    #[test]
    fn errors_name_line_and_key() {
        assert_eq!(
            error("runs = 0\n"),
            "s.toml:4: runs: is 0; expected 1 to 10000"
        );
        assert_eq!(
            error("machine = 1\n"),
            "s.toml:4: machine: is not a known key; did you mean 'machines'?"
        );
        let both = error("studies = [\"W1\"]\n");
        assert!(
            both.starts_with("s.toml:1: machines: is given in addition to studies"),
            "{both}"
        );
        let half = error("[[parameters]]\nkey = \"llc.size_kib\"\nfrom = 3\n");
        assert!(
            half.starts_with("s.toml:5: parameters[0].key: has part of a range"),
            "{half}"
        );
        let unsampled = error("[[parameters]]\nkey = \"a\"\nleast = 1\nmost = 2\n");
        assert!(unsampled.contains("expected [samples]"), "{unsampled}");
        let nothing = error("[samples]\nmethod = \"sobol\"\ncount = 4\n");
        assert!(nothing.contains("have nothing to sample"), "{nothing}");
        let log = error(
            "[samples]\nmethod = \"latin\"\ncount = 4\n[[parameters]]\nkey = \"a\"\nleast = 0\nmost = 2\nscale = \"log\"\n",
        );
        assert!(log.contains("above 0 on a log scale"), "{log}");
    }
}
