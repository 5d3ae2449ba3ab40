//! A unit as a program that Verilator made.

use crate::cycle::{CycleInputs, CycleOutputs};
use crate::error::RtlError;
use crate::unit_parameters::UnitParameters;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The sources of the units, `rtl/` of this repository.
pub const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rtl");

/// Looks for Verilator: its version, or the reason why it cannot be had.
///
/// # Errors
/// The reason, as `skipped: ...` has it.
pub fn find_verilator() -> Result<String, String> {
    let output = Command::new("verilator").arg("--version").output();
    let output = output.map_err(|error| format!("verilator cannot be started ({error})"))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(format!("verilator --version failed: {said}"))
}

/// Operation that fails when the model is gone.
const TALKING: &str = "talking to the model";

/// A running model of a chip's units.
#[derive(Debug)]
pub struct RtlModel {
    setting: UnitParameters,
    child: Child,
    /// Closed to end the program.
    input: Option<BufWriter<ChildStdin>>,
    output: ChildStdout,
    frame: Vec<u8>,
}

impl RtlModel {
    /// Lets Verilator build the model below `folder` from the units of [`SOURCES`], unless it is
    /// there and up to date, and starts it. With `trace`, all signals are written to that file.
    ///
    /// # Errors
    /// A setting that cannot be, and what Verilator or the compiler said.
    pub fn build(
        setting: &UnitParameters,
        folder: &Path,
        trace: Option<&Path>,
    ) -> Result<Self, RtlError> {
        Self::build_from(Path::new(SOURCES), setting, folder, trace)
    }

    /// Builds the model, as [`RtlModel::build`] does, from the units of another folder.
    ///
    /// # Errors
    /// As [`RtlModel::build`].
    pub fn build_from(
        sources: &Path,
        setting: &UnitParameters,
        folder: &Path,
        trace: Option<&Path>,
    ) -> Result<Self, RtlError> {
        setting.check()?;
        let program = compile(sources, setting, folder, trace.is_some())?;
        let mut command = Command::new(&program);
        command
            .args(trace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let started = command.spawn();
        let mut child = started.map_err(RtlError::io_error(&format!(
            "starting {}",
            program.display()
        )))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            let cause = std::io::Error::other("its pipes are missing");
            return Err(RtlError::io_error("starting the model")(cause));
        };
        Ok(Self {
            setting: *setting,
            child,
            input: Some(BufWriter::new(input)),
            output,
            frame: vec![0; CycleOutputs::bytes(setting)],
        })
    }

    /// Lets cycles pass.
    pub(crate) fn step(&mut self, inputs: &CycleInputs) -> Result<CycleOutputs, RtlError> {
        self.send(inputs)?;
        self.receive()
    }

    /// Sends the inputs of some cycles; their outputs are to be received in the same order, before
    /// pipes are full.
    pub(crate) fn send(&mut self, inputs: &CycleInputs) -> Result<(), RtlError> {
        let sent = self.input.as_mut().map(|i| i.write_all(&inputs.to_frame()));
        sent.unwrap_or(Ok(())).map_err(RtlError::io_error(TALKING))
    }

    /// Outputs after the next of the cycles that were sent.
    pub(crate) fn receive(&mut self) -> Result<CycleOutputs, RtlError> {
        let flushed = self.input.as_mut().map(Write::flush);
        flushed
            .unwrap_or(Ok(()))
            .map_err(RtlError::io_error(TALKING))?;
        let read = self.output.read_exact(&mut self.frame);
        read.map_err(RtlError::io_error(TALKING))?;
        Ok(CycleOutputs::read(&self.setting, &self.frame))
    }
}

impl Drop for RtlModel {
    fn drop(&mut self) {
        self.input = None;
        // It ends with its input; if it does not, there is nobody left to tell.
        let _ = self.child.wait();
    }
}

/// Runs Verilator and make; both do nothing for what is up to date.
fn compile(
    sources: &Path,
    setting: &UnitParameters,
    folder: &Path,
    traced: bool,
) -> Result<PathBuf, RtlError> {
    let name = if traced { "trace" } else { "plain" };
    let folder = folder.join(format!("{setting}-{name}"));
    std::fs::create_dir_all(&folder)
        .map_err(RtlError::io_error(&format!("making {}", folder.display())))?;
    let mut verilator = Command::new("verilator");
    verilator
        .args(["--cc", "--exe", "--build", "-O3", "--x-assign", "fast"])
        .args(["--top-module", "chip", "-CFLAGS", "-O2 -std=c++17"])
        .args(traced.then_some("--trace"))
        .args(setting.parameters())
        .arg("-y")
        .arg(sources)
        .arg("--Mdir")
        .arg(&folder)
        .arg(sources.join("chip.sv"))
        .arg(Path::new(SOURCES).join("sim/drive.cpp"));
    let output = verilator
        .output()
        .map_err(RtlError::io_error("starting verilator"))?;
    if output.status.success() {
        return Ok(folder.join("Vchip"));
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last: Vec<&str> = said.lines().rev().take(8).collect();
    Err(RtlError::Build {
        setting: setting.to_string(),
        folder,
        said: last.into_iter().rev().collect::<Vec<_>>().join(" | "),
    })
}
