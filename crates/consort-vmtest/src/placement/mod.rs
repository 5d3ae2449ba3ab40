//! Placement in a guest: the story that is told there, and what to check in its masks.

mod checks;
mod scenario;
mod thread_mask;

pub use checks::{each_fp_paired_with_light, fp_threads_on_different_cores, same_masks};
pub use scenario::{Scenario, Share, Story};
pub use thread_mask::{ThreadMask, thread_masks};
