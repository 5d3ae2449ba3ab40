//! The enactor as cookies use it.

use super::groups::Owner;
use crate::enact::{Enactor, Health, Record};
use consort_core::ThreadId;

impl Owner for Enactor {
    fn is_there(&self, thread: ThreadId) -> Option<bool> {
        self.is_same(thread)
    }

    fn is_guarded(&mut self) -> bool {
        !matches!(self.ensure_guardian(), Health::Missing(_))
    }

    fn announce(&mut self, cookie: u64) -> Result<(), String> {
        let noted = self.record(&[Record::Cookie(cookie)]);
        noted.map_err(|error| error.to_string())
    }
}
