//! The enactor as cookies use it.

use super::groups::CookieJournal;
use crate::enact::{Enactor, GuardianHealth, JournalRecord};
use consort_core::ThreadId;

impl CookieJournal for Enactor {
    fn is_there(&self, thread: ThreadId) -> Option<bool> {
        self.is_same(thread)
    }

    fn is_guarded(&mut self) -> bool {
        !matches!(self.ensure_guardian(), GuardianHealth::Missing(_))
    }

    fn journal_cookie(&mut self, cookie: u64) -> Result<(), String> {
        let noted = self.record(&[JournalRecord::Cookie(cookie)]);
        noted.map_err(|error| error.to_string())
    }
}
