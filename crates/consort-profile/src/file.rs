//! A profile as a program file that the simulator takes.

use consort_ops::trace::TraceSampling;

use crate::figures::ExecutionFigures;
use crate::profile::ProgramProfile;
use crate::threads::ThreadRelations;

/// Contents of a program file that are not measured.
#[derive(Debug, Clone, Copy)]
pub struct ProgramFileHeader<'a> {
    /// Name of the program; characters that a file name cannot have are replaced.
    pub name: &'a str,
    /// The command, for the title.
    pub command: &'a str,
    /// Instructions that it executed.
    pub executed: u64,
    /// Remark on the end of a program that failed, as a sentence without its full stop.
    pub end: Option<&'a str>,
}

impl ProgramProfile {
    /// The program file.
    #[must_use]
    pub fn to_program_file(&self, reported: &ProgramFileHeader) -> String {
        let mut out = header_text(reported, self.sampling, &self.error_text());
        let whole = std::slice::from_ref(&self.figures);
        let phases = if self.phases.is_empty() {
            whole
        } else {
            &self.phases
        };
        let length = self.length(reported.executed);
        for (number, phase) in phases.iter().enumerate() {
            let share = self.phase_shares.get(number).unwrap_or(&1.0);
            // Writing to a string does not fail.
            let _ = phase.write_phase(&mut out, length * share);
        }
        out += &format!(
            "\n# System calls: {}, {:.3} per 10^6 instructions; what the kernel does in them is not seen.\n",
            self.system_calls,
            self.system_calls_per_million(reported.executed)
        );
        if let Some(end) = reported.end {
            out += &format!("# Note: {end}.\n");
        }
        out += &self
            .threads
            .as_ref()
            .map_or_else(String::new, ThreadRelations::to_text);
        out
    }

    /// System calls per million of `executed` instructions.
    #[must_use]
    pub fn system_calls_per_million(&self, executed: u64) -> f64 {
        1e6 * self.system_calls as f64 / executed.max(1) as f64
    }

    /// Instructions of one thread in a run in which all threads execute `executed`.
    fn length(&self, executed: u64) -> f64 {
        let several = self.threads.as_ref().filter(|t| t.at_once >= 2);
        several.map_or(executed as f64, ThreadRelations::length)
    }

    /// Text of the uncertainty that sampling leaves, as part of a sentence.
    fn error_text(&self) -> String {
        let main = |figures: &ExecutionFigures| {
            let (shares, data) = (figures.shares(), &figures.memory.data.misses);
            let misses = |size: usize| figures.per_kilo(data[size]);
            let branch = figures.misprediction_mpki();
            vec![
                shares.load,
                shares.branch,
                figures.ilp[3],
                branch,
                misses(3),
                misses(8),
            ]
        };
        let Some(errors) = self.errors(main) else {
            return String::new();
        };
        format!(
            "; 95 percent intervals over {} windows: loads ±{:.4}, branches ±{:.4}, ILP in 128 ±{:.3}, mispredictions ±{:.3}, data misses at 32 KiB ±{:.3} and at 1 MiB ±{:.3} per 1000",
            self.intervals.len(),
            errors[0],
            errors[1],
            errors[2],
            errors[3],
            errors[4],
            errors[5]
        )
    }
}

fn header_text(
    reported: &ProgramFileHeader,
    sampling: Option<TraceSampling>,
    errors: &str,
) -> String {
    let how = match sampling {
        None => "every instruction; data flow and use distances in one stretch of 65,536 of 16"
            .to_owned(),
        Some(s) => format!(
            "windows of {} instructions every {}, each behind {} that warm caches; figures beyond what these fill are low",
            s.window, s.every, s.warm
        ),
    };
    format!(
        "name = {}\ntitle = {}\nsuite = \"profiled\"\n\n[sources]\nprofile = {}\n",
        quote_toml(&sanitize_name(reported.name)),
        quote_toml(reported.command),
        quote_toml(&format!(
            "consort profile, user mode, all threads: {how}{errors}"
        )),
    )
}

/// The name with all characters replaced that workloads cannot have.
#[must_use]
pub fn sanitize_name(name: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let plain: String = name
        .chars()
        .map(|c| if kept(c) { c } else { '_' })
        .collect();
    if plain.is_empty() {
        "program".to_owned()
    } else {
        plain
    }
}

/// A TOML basic string.
fn quote_toml(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => " ".to_owned(),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProgramProfiler;
    use crate::recorder::{ExecutionSink, RecordedPart};
    use consort_ops::{Access, FusedPair, LatencyClass, Op, OpKind, Register};

    /// A loop that adds up an array of `bytes` bytes again and again.
    fn sums(bytes: u64) -> ProgramProfile {
        let mut profiler = ProgramProfiler::new(RecordedPart::default(), false);
        for i in 0..200_000 {
            let mut load = Op::new(OpKind::Load, 0x1000);
            load.targets[0] = Some(Register::general(1));
            load.data = Some(Access {
                address: 0x10_0000 + i * 64 % bytes,
                bytes: 8,
                is_vector: false,
            });
            let mut add = Op::new(OpKind::Integer, 0x1004);
            add.sources = [
                Some(Register::general(1)),
                Some(Register::general(2)),
                None,
                None,
            ];
            add.targets[0] = Some(Register::general(2));
            profiler.record_op(0, &load);
            profiler.record_op(0, &add);
        }
        profiler.finish_profile()
    }

    #[test]
    fn figures_of_a_known_program_are_right() {
        let profile = sums(1 << 18).figures;
        let shares = profile.shares();
        assert_eq!((shares.load, shares.int), (0.5, 0.5));
        // One line per two instructions, again after 256 KiB.
        assert!((profile.per_kilo(profile.memory.data.misses[5]) - 500.0).abs() < 1.0);
        assert!(profile.per_kilo(profile.memory.data.misses[6]) < 11.0);
        // The sum is a chain; each step adds two instructions.
        assert!(
            profile.ilp.iter().all(|ilp| (ilp - 2.0).abs() < 0.01),
            "{:?}",
            profile.ilp
        );
        assert!((profile.use_distance - 1.5).abs() < 1e-3);
    }

    #[test]
    fn chains_have_the_classes_of_program_files() {
        let known = consort_sim::program::ChainSpec::default().classes();
        let known = known.map(|(key, _, cycles)| (key, cycles as u64));
        let here = LatencyClass::ALL.map(|class| (class.key(), class.reference_cycles()));
        assert_eq!(here, known);
    }

    #[test]
    fn counts_have_the_places_of_program_files() {
        use crate::measure::{FETCH_WIDTHS, PAGE_COUNTS, SET_CAPACITIES};
        use consort_sim::program;
        assert_eq!(
            FETCH_WIDTHS.map(|width| width as f64),
            program::FETCH_WIDTHS
        );
        assert_eq!(PAGE_COUNTS.map(|pages| pages as f64), program::PAGES);
        let kib = SET_CAPACITIES.map(|bytes| bytes as f64 / 1024.0);
        assert_eq!(kib, program::SET_KIB);
    }

    #[test]
    fn pairs_have_the_keys_of_program_files() {
        let known = consort_sim::program::PairsSpec::default().pairs();
        let keys = FusedPair::ALL.map(FusedPair::key);
        assert_eq!(keys, known.map(|(_, key, _)| key));
    }

    /// Instructions that each load four lines of new memory.
    fn string_moves() -> ProgramProfile {
        let mut profiler = ProgramProfiler::new(RecordedPart::default(), false);
        for i in 0..200_000 {
            let mut load = Op::new(OpKind::Load, 0x1000);
            load.first = i % 4 == 0;
            load.data = Some(Access {
                address: i * 64,
                bytes: 8,
                is_vector: false,
            });
            profiler.record_op(0, &load);
        }
        profiler.finish_profile()
    }

    #[test]
    fn simulator_accepts_the_file() {
        let reported = ProgramFileHeader {
            name: "a program*",
            command: "a \"b\" \\c\n",
            executed: 400_000,
            end: Some("the program ended with status 3"),
        };
        for profile in [
            sums(1 << 18),
            string_moves(),
            ProgramProfiler::new(RecordedPart::default(), false).finish_profile(),
        ] {
            let text = profile.to_program_file(&reported);
            let spec = consort_sim::program::parse("x.toml", &text);
            assert!(spec.is_ok(), "{spec:?}\n{text}");
            assert!(text.contains("# Note: the program ended with status 3.\n"));
            assert_eq!(spec.unwrap().name, "a_program_");
        }
    }
}
