//! From expressions to programs that can run.

use super::file::{EntrySpec, WorkloadFile};
use super::{LoadError, MAX_INSTANCES, WorkloadError, WorkloadExpr, WorkloadItem, WorkloadTerm};
use crate::input::is_path;
use crate::program::ProgramSpec;
use consort_core::hint;
use rand::SeedableRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The programs of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The expression that it came from, or the file's.
    pub text: String,
    /// One per copy of a program, in the order of the text.
    pub entries: Vec<ProgramInstance>,
}

/// One copy of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramInstance {
    /// The program's name, with `#1`, `#2`, ... if the workload has several of that name.
    pub name: String,
    /// The program.
    pub program: Arc<ProgramSpec>,
    /// Threads, at least 1.
    pub threads: u32,
    /// Time at which it starts, ms after the run's start.
    pub start_ms: f64,
}

impl Workload {
    /// Parses an expression and looks its programs up.
    ///
    /// # Errors
    /// See [`WorkloadError`].
    pub fn resolve(text: &str, source: &dyn ProgramSource) -> Result<Self, WorkloadError> {
        WorkloadExpr::parse(text, &|path| source.is_file(path))?.resolve(source)
    }
}

impl WorkloadExpr {
    /// Looks the programs up.
    ///
    /// # Errors
    /// Unknown programs and suites, thread counts that a program cannot use, files that cannot be
    /// read, more than [`MAX_INSTANCES`] instances.
    pub fn resolve(&self, source: &dyn ProgramSource) -> Result<Workload, WorkloadError> {
        let mut cast = InstanceCollector {
            source,
            is_split: self.to_string().contains(['+', '*', '@']),
            entries: Vec::new(),
        };
        for term in &self.terms {
            cast.add_term(term)?;
        }
        number_instances(&mut cast.entries);
        Ok(Workload {
            text: self.to_string(),
            entries: cast.entries,
        })
    }
}

/// The instances found so far.
struct InstanceCollector<'a> {
    source: &'a dyn ProgramSource,
    /// True if the expression contains signs that may have been meant as parts of a path.
    is_split: bool,
    entries: Vec<ProgramInstance>,
}

impl InstanceCollector<'_> {
    fn add_term(&mut self, term: &WorkloadTerm) -> Result<(), WorkloadError> {
        match &term.item {
            WorkloadItem::Program { name, threads } => match self.source.find(name)? {
                Some(program) => self.add(&program, term.count, *threads, 0.0),
                None if self.source.is_file(name) => self.add_file(name, term.count, *threads),
                None => Err(self.unknown_program(name)),
            },
            WorkloadItem::File { path, threads } => self.add_file(path, term.count, *threads),
            WorkloadItem::Mix { suite, draw, seed } => {
                self.add_mix(suite, *draw, seed.unwrap_or(0), term.count)
            }
        }
    }

    fn add_file(
        &mut self,
        path: &str,
        count: u32,
        threads: Option<u32>,
    ) -> Result<(), WorkloadError> {
        match self.load(path)? {
            DescriptionFile::Program(program) => self.add(&program, count, threads, 0.0),
            DescriptionFile::Workload(_) if threads.is_some() => Err(WorkloadError::NotAProgram {
                path: path.to_owned(),
                expected: "give thread counts inside it",
            }),
            DescriptionFile::Workload(file) => {
                for _ in 0..count {
                    for (index, entry) in file.spec().entries.iter().enumerate() {
                        self.add_entry(&file, entry)
                            .map_err(|error| file.entry_error(index, &error))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Reads a file; the error for one that does not exist names quotes, since `./a+b` may mean
    /// one file.
    fn load(&self, path: &str) -> Result<DescriptionFile, WorkloadError> {
        self.source.load(path).map_err(|LoadError(why)| {
            let missing = self.is_split && !self.source.is_file(path);
            let quotes = "; quotes let a path contain '+', '*' and '@'";
            LoadError(format!("{why}{}", if missing { quotes } else { "" })).into()
        })
    }

    fn add_mix(&mut self, suite: &str, n: u32, seed: u64, count: u32) -> Result<(), WorkloadError> {
        self.check_room(u64::from(n) * u64::from(count))?;
        let mut members = self.source.suite(suite)?;
        if members.is_empty() {
            let suites = self.source.suites();
            return Err(WorkloadError::UnknownSuite {
                name: suite.to_owned(),
                hint: hint(suite, suites.iter().map(String::as_str)),
            });
        }
        // A source may have any order, but a seed must give the same draw.
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let drawn = draw(&members, n as usize, seed);
        let mut copies = (0..count).flat_map(|_| drawn.iter());
        copies.try_for_each(|program| self.add(program, 1, None, 0.0))
    }

    fn add_entry(&mut self, file: &WorkloadFile, entry: &EntrySpec) -> Result<(), WorkloadError> {
        let path = file.resolve_path(&entry.program);
        let named = match is_path(&entry.program) {
            true => None,
            false => self.source.find(&entry.program)?,
        };
        let program = match named {
            Some(program) => program,
            None if is_path(&entry.program) || self.source.is_file(&path) => {
                match self.source.load(&path)? {
                    DescriptionFile::Program(program) => program,
                    DescriptionFile::Workload(_) => {
                        return Err(WorkloadError::NotAProgram {
                            path,
                            expected: "the entries of a workload file are programs",
                        });
                    }
                }
            }
            None => return Err(self.unknown_program(&entry.program)),
        };
        self.add(&program, entry.count, entry.threads, entry.start_ms)
    }

    fn unknown_program(&self, name: &str) -> WorkloadError {
        let known = self.source.programs();
        WorkloadError::UnknownProgram {
            name: name.to_owned(),
            hint: hint(name, known.iter().map(String::as_str)),
        }
    }

    fn add(
        &mut self,
        program: &Arc<ProgramSpec>,
        count: u32,
        threads: Option<u32>,
        start_ms: f64,
    ) -> Result<(), WorkloadError> {
        self.check_room(u64::from(count))?;
        let instance = ProgramInstance {
            name: program.name.clone(),
            program: Arc::clone(program),
            threads: thread_count(program, threads)?,
            start_ms,
        };
        self.entries.extend((0..count).map(|_| instance.clone()));
        Ok(())
    }

    fn check_room(&self, more: u64) -> Result<(), WorkloadError> {
        let count = self.entries.len() as u64 + more;
        if count > u64::from(MAX_INSTANCES) {
            return Err(WorkloadError::TooMany { count });
        }
        Ok(())
    }
}

/// Threads of an instance: the requested number, or the program's default.
fn thread_count(program: &ProgramSpec, requested: Option<u32>) -> Result<u32, WorkloadError> {
    let (default, max) = program
        .threads
        .as_ref()
        .map_or((1, 1), |t| (t.default, t.max));
    let threads = requested.unwrap_or(default);
    let min = if max > default { 1 } else { max };
    if (min..=max).contains(&threads) {
        return Ok(threads);
    }
    let valid = match (min, max) {
        (1, 1) => "a single thread".to_owned(),
        (1, max) => format!("1 to {max} threads"),
        _ => format!("exactly {max} threads"),
    };
    Err(WorkloadError::Threads {
        program: program.name.clone(),
        threads,
        valid,
    })
}

/// Numbers instances that have the same name.
fn number_instances(entries: &mut [ProgramInstance]) {
    let mut seen: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for entry in entries.iter() {
        seen.entry(entry.name.clone()).or_default().0 += 1;
    }
    for entry in entries {
        let Some((total, done)) = seen.get_mut(&entry.name) else {
            continue;
        };
        *done += 1;
        if *total > 1 {
            entry.name = format!("{}#{done}", entry.name);
        }
    }
}

/// Draws `count` of `members`: without replacement until every one has been
/// drawn, then with. A longer draw with the same seed begins with the shorter.
fn draw<T: Clone>(members: &[T], count: usize, seed: u64) -> Vec<T> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut drawn = members.to_vec();
    drawn.shuffle(&mut rng);
    drawn.truncate(count);
    while drawn.len() < count {
        match members.choose(&mut rng) {
            Some(member) => drawn.push(member.clone()),
            None => break,
        }
    }
    drawn
}

/// Presets, folders of the user, or whatever else knows programs.
pub trait ProgramSource {
    /// The program of that name, if there is one.
    ///
    /// # Errors
    /// When there is one and it cannot be read.
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError>;

    /// The programs of a suite, in any order; empty if there is no such suite.
    ///
    /// # Errors
    /// If one of them cannot be read.
    fn suite(&self, name: &str) -> Result<Vec<Arc<ProgramSpec>>, LoadError>;

    /// True if there is a file of this name, no folder.
    fn is_file(&self, path: &str) -> bool;

    /// Reads a file; see [`is_meant_by`](super::WorkloadSpec::is_workload_text) for telling the two kinds apart.
    ///
    /// # Errors
    /// When it cannot be read.
    fn load(&self, path: &str) -> Result<DescriptionFile, LoadError>;

    /// Names of all programs.
    fn programs(&self) -> Vec<String>;

    /// Names of all suites.
    fn suites(&self) -> Vec<String>;
}

/// Thing that a file describes.
#[derive(Clone, Debug, PartialEq)]
pub enum DescriptionFile {
    /// A program.
    Program(Arc<ProgramSpec>),
    /// A workload.
    Workload(WorkloadFile),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn draws_repeat_no_member_before_all(
            members in 1usize..40,
            count in 1usize..80,
            seed: u64,
        ) {
            let all: Vec<usize> = (0..members).collect();
            let drawn = draw(&all, count, seed);
            prop_assert_eq!(drawn.len(), count);
            let mut first: Vec<usize> = drawn[..count.min(members)].to_vec();
            first.sort_unstable();
            first.dedup();
            prop_assert_eq!(first.len(), count.min(members));
            prop_assert_eq!(&draw(&all, count + 1, seed)[..count], &drawn[..]);
        }
    }

    #[test]
    fn seeds_differ_and_nothing_comes_of_nothing() {
        let all: Vec<u32> = (0..20).collect();
        assert_ne!(draw(&all, 10, 1), draw(&all, 10, 2));
        assert!(draw::<u32>(&[], 3, 1).is_empty());
    }
}
