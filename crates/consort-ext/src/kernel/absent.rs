//! Builds without the scheduler: there is no value of this type, so nothing can be asked of one.

use crate::config::Config;
use crate::encode::Encoded;
use crate::error::ExtError;
use crate::layout::Layout;
use crate::probe::Obstacle;
use crate::stats::{Stats, Times};
use std::io;
use std::time::Duration;

/// A scheduler that cannot be.
#[derive(Debug)]
pub(crate) enum Kernel {}

impl Kernel {
    pub(crate) fn start(_: &Layout, _: &Config) -> Result<Self, ExtError> {
        Err(Obstacle::NotBuilt.into())
    }

    pub(crate) fn adopt(&self, _: [u8; 4]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &Encoded, _: u64) -> Result<(), ExtError> {
        match *self {}
    }

    pub(crate) fn beat(&mut self) {
        match *self {}
    }

    pub(crate) fn times(&self, _: [u8; 4]) -> io::Result<Option<Times>> {
        match *self {}
    }

    pub(crate) fn together(&self, _: u32, _: u32) -> Result<Duration, ExtError> {
        match *self {}
    }

    pub(crate) fn stats(&self, _: usize) -> Stats {
        match *self {}
    }

    pub(crate) fn ending(&self) -> Option<String> {
        match *self {}
    }
}
