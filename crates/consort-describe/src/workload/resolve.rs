//! From expressions to programs that can run.

use super::MAX_INSTANCES;
use super::draw::draw;
use super::error::{LoadError, WorkloadError};
use super::expr::{WorkloadExpr, WorkloadItem, WorkloadTerm};
use super::file::WorkloadFile;
use super::source::{DescriptionFile, ProgramSource};
use super::spec::EntrySpec;
use crate::input::is_path;
use crate::program::ProgramSpec;
use consort_core::hint;
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
    /// The program's name, with `#1`, `#2`, ... where the workload has several of that name.
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
        let mut cast = InstanceCollector::new(source);
        cast.is_split = self.to_string().contains(['+', '*', '@']);
        for term in &self.terms {
            cast.add_term(term)?;
        }
        Ok(cast.into_workload(self.to_string()))
    }
}

/// The instances found so far.
struct InstanceCollector<'a> {
    source: &'a dyn ProgramSource,
    /// True if the expression contains signs that may have been meant as parts of a path.
    is_split: bool,
    entries: Vec<ProgramInstance>,
}

impl<'a> InstanceCollector<'a> {
    fn new(source: &'a dyn ProgramSource) -> Self {
        Self {
            source,
            is_split: false,
            entries: Vec::new(),
        }
    }

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
            DescriptionFile::Workload(file) => (0..count).try_for_each(|_| self.add_entries(&file)),
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
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let drawn = draw(&members, n as usize, seed);
        let mut copies = (0..count).flat_map(|_| drawn.iter());
        copies.try_for_each(|program| self.add(program, 1, None, 0.0))
    }

    fn add_entries(&mut self, file: &WorkloadFile) -> Result<(), WorkloadError> {
        let entries = file.spec().entries.iter().enumerate();
        let mut entries = entries.map(|(index, entry)| (index, self.add_entry(file, entry)));
        entries.try_for_each(|(index, done)| done.map_err(|error| file.entry_error(index, &error)))
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
                self.program_file(&path)?
            }
            None => return Err(self.unknown_program(&entry.program)),
        };
        self.add(&program, entry.count, entry.threads, entry.start_ms)
    }

    fn program_file(&self, path: &str) -> Result<Arc<ProgramSpec>, WorkloadError> {
        match self.source.load(path)? {
            DescriptionFile::Program(program) => Ok(program),
            DescriptionFile::Workload(_) => Err(WorkloadError::NotAProgram {
                path: path.to_owned(),
                expected: "the entries of a workload file are programs",
            }),
        }
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

    fn into_workload(mut self, text: String) -> Workload {
        number_instances(&mut self.entries);
        Workload {
            text,
            entries: self.entries,
        }
    }
}

/// Returns the number of threads of an instance for which `asked` were asked for.
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

/// Tells instances of the same name apart.
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
