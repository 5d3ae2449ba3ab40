//! Processors for which no code is known: `supported` refuses before any of
//! this is called.

use super::Body;

pub(super) const KNOWN: bool = false;

pub(super) fn encode(_body: Body) -> Vec<u8> {
    Vec::new()
}

pub(super) fn patch_factor(_code: &mut [u8], _factor: u8) {}

pub(super) fn publish(_code: &[u8]) {}
