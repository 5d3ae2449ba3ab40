//! Placement in a guest: the story that is told there, and what to check in its masks.

mod checks;
mod scenario;
mod thread_mask;

pub use checks::{check_fp_paired_with_light, check_fp_spread, check_same_masks};
pub use scenario::{LoadShare, Scenario, ScenarioKind};
pub use thread_mask::{ThreadMask, thread_masks};
