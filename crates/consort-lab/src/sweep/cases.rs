//! Cases of a sweep: a workload on a machine with values of the parameters.

use std::sync::Arc;
use std::time::Duration;

use crate::Descriptions;
use crate::studies::hypercube;
use consort_experiment::{Experiment, long};
use consort_sim::chip::Chip;
use consort_sim::machine::KeyChange;
use consort_sim::workload::Workload;
use toml::Value;

use super::SweepError;
use super::spec::{Literal, Method, Parameter, Samples, Scaling, SweepSpec};

pub(super) struct SweepCase {
    /// Its name in tables.
    pub(super) key: String,
    /// The machine, as in the description.
    pub(super) machine: String,
    /// Values of the parameters.
    pub(super) point: ParameterPoint,
    pub(super) experiment: Experiment,
}

/// Cases, made on demand, because a sweep may have more than fit into memory.
pub(super) struct SweepCases {
    machines: Vec<String>,
    points: Vec<ParameterPoint>,
    workloads: Vec<Workload>,
    alone_s: f64,
    quantum: Option<Duration>,
}

impl SweepCases {
    /// The cases of a description. Resolves its workloads.
    pub(super) fn new(spec: &SweepSpec) -> Result<Self, SweepError> {
        let workloads = spec
            .workloads
            .iter()
            .map(|text| Descriptions::resolve_workload(text));
        Ok(Self {
            machines: spec.machines.clone(),
            points: points(spec),
            workloads: workloads.collect::<Result<_, _>>()?,
            alone_s: spec.alone_s,
            quantum: spec.quantum_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)),
        })
    }

    /// Number of cases: every workload with every point on every machine.
    pub(super) fn len(&self) -> usize {
        self.machines.len() * self.points.len() * self.workloads.len()
    }

    /// The case of a number; workloads vary fastest, machines slowest.
    pub(super) fn get(&self, number: usize) -> Result<SweepCase, SweepError> {
        let workload = &self.workloads[number % self.workloads.len()];
        let number = number / self.workloads.len();
        let point = &self.points[number % self.points.len()];
        let machine = &self.machines[number / self.points.len()];
        let loaded = Descriptions::load_machine_with_changes(machine, point)?;
        let chip = Chip::new(&loaded.spec, loaded.smt)?;
        let changes = point.iter().map(|(key, value)| format!(" {key}={value}"));
        let label = machine.clone() + &changes.collect::<String>();
        Ok(SweepCase {
            key: long::case_name(&workload.text, &label),
            machine: machine.clone(),
            point: point.clone(),
            experiment: Experiment {
                quantum: self.quantum,
                ..Experiment::new(&Arc::new(chip), workload.clone(), self.alone_s)
            },
        })
    }
}

/// A value for each parameter.
pub(super) type ParameterPoint = Vec<KeyChange>;

/// All points, in the order of the description: the last parameter varies fastest, samples of
/// parameters with bounds vary slowest. One empty point if there are no parameters.
pub(super) fn points(spec: &SweepSpec) -> Vec<ParameterPoint> {
    let (bounded, listed): (Vec<&Parameter>, Vec<&Parameter>) = spec
        .parameters
        .iter()
        .partition(|parameter| parameter.least.is_some());
    let mut points = sampled_points(&bounded, spec.samples.as_ref());
    for parameter in listed {
        let values = values(parameter);
        let with = |point: &ParameterPoint| {
            let each = values
                .iter()
                .map(|value| (parameter.key.clone(), value.clone()));
            each.map(|change| [point.as_slice(), &[change]].concat())
                .collect::<Vec<ParameterPoint>>()
        };
        points = points.iter().flat_map(with).collect();
    }
    points
}

/// The values of a list or a range.
fn values(parameter: &Parameter) -> Vec<Value> {
    let (Some(from), Some(to), Some(step)) = (parameter.from, parameter.to, parameter.step) else {
        let values = parameter.values.iter().map(|literal| match literal {
            Literal::Flag(flag) => (*flag).into(),
            Literal::Whole(whole) => (*whole).into(),
            Literal::Number(number) => (*number).into(),
            Literal::Text(text) => text.as_str().into(),
        });
        return values.collect();
    };
    // Rounding must not lose the last value.
    let count = ((to - from) / step + 1e-9).floor() as usize + 1;
    (0..count)
        .map(|n| number(from + n as f64 * step, parameter.whole))
        .collect()
}

fn number(value: f64, whole: bool) -> Value {
    match whole {
        true => (value.round() as i64).into(),
        false => value.into(),
    }
}

/// Points of the parameters with bounds; one empty point if there are none.
fn sampled_points(bounded: &[&Parameter], samples: Option<&Samples>) -> Vec<ParameterPoint> {
    let Some(samples) = samples.filter(|_| !bounded.is_empty()) else {
        return vec![Vec::new()];
    };
    // Shares from 0 to 1 for each sample, one per parameter.
    let shares: Vec<Vec<f64>> = match samples.method {
        Method::Latin => hypercube(samples.seed.into(), samples.count as usize, bounded.len()),
        Method::Sobol => {
            let share = |n, variable| sobol_burley::sample(n, variable as u32, samples.seed);
            let sample = |n| {
                (0..bounded.len())
                    .map(|at| f64::from(share(n, at)))
                    .collect()
            };
            (0..samples.count).map(sample).collect()
        }
    };
    let points = shares.into_iter().map(|shares| {
        let pairs = bounded.iter().zip(shares);
        let values = pairs.map(|(parameter, share)| {
            let least = parameter.least.unwrap_or(0.0);
            let most = parameter.most.unwrap_or(1.0);
            let value = match parameter.scale {
                Scaling::Linear => least + share * (most - least),
                Scaling::Log => least * libm::pow(most / least, share),
            };
            (parameter.key.clone(), number(value, parameter.whole))
        });
        values.collect()
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_points(parameters: &str) -> Vec<ParameterPoint> {
        let head = "machines = [\"power8\"]\nworkloads = [\"mcf\"]\npolicies = [\"linux\"]\n";
        points(&SweepSpec::parse("s.toml", &format!("{head}{parameters}")).unwrap())
    }

    #[test]
    fn lists_and_ranges_are_crossed_in_order() {
        let points = parse_points(
            "[[parameters]]\nkey = \"a\"\nvalues = [1, 2.5, \"x\"]\n\
                         [[parameters]]\nkey = \"b\"\nfrom = 0.1\nto = 0.3\nstep = 0.1\n",
        );
        assert_eq!(points.len(), 9);
        let second = [("a".to_owned(), 1.into()), ("b".to_owned(), 0.2.into())];
        assert_eq!(points[1], second);
        assert_eq!(points[8][0], ("a".to_owned(), "x".into()));
        assert_eq!(parse_points(""), [Vec::new()]);
    }

    #[test]
    fn samples_fill_their_bounds() {
        for method in ["latin", "sobol"] {
            let points = parse_points(&format!(
                "[samples]\nmethod = \"{method}\"\ncount = 16\nseed = 3\n\
                 [[parameters]]\nkey = \"a\"\nleast = 10\nmost = 1000\nscale = \"log\"\n\
                 [[parameters]]\nkey = \"b\"\nleast = 1\nmost = 16\nwhole = true\n"
            ));
            assert_eq!(points.len(), 16);
            let a = points.iter().map(|point| point[0].1.as_float().unwrap());
            let a: Vec<f64> = a.collect();
            assert!(a.iter().all(|a| (10.0..=1000.0).contains(a)));
            // Half of them below the geometric middle.
            assert_eq!(
                a.iter().filter(|a| **a < 100.0).count(),
                8,
                "{method} {a:?}"
            );
            assert!(points.iter().all(|point| point[1].1.is_integer()));
        }
    }
}
