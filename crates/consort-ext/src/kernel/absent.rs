//! Kernel part of builds without the scheduler. The type has no values, so its methods are never
//! called.

use crate::encode::EncodedPlan;
use crate::error::ExtError;
use crate::layout::MachineLayout;
use crate::plan::ExtConfig;
use crate::probe::Obstacle;
use crate::stats::{ExtStats, RunningTimes};
use std::io;
use std::time::Duration;

#[derive(Debug)]
pub(crate) enum Kernel {}

impl Kernel {
    pub(crate) fn start(_: &MachineLayout, _: &ExtConfig) -> Result<Self, ExtError> {
        Err(Obstacle::NotBuilt.into())
    }

    pub(crate) fn adopt(&self, _: [u8; 4]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &EncodedPlan, _: u64) -> Result<(), ExtError> {
        match *self {}
    }

    pub(crate) fn send_heartbeat(&mut self) {
        match *self {}
    }

    pub(crate) fn times(&self, _: [u8; 4]) -> io::Result<Option<RunningTimes>> {
        match *self {}
    }

    pub(crate) fn time_together(&self, _: u32, _: u32) -> Result<Duration, ExtError> {
        match *self {}
    }

    pub(crate) fn stats(&self, _: usize) -> ExtStats {
        match *self {}
    }

    pub(crate) fn ending(&self) -> Option<String> {
        match *self {}
    }
}
