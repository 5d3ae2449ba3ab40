//! Names and owners of processes.

use super::status::Status;
use crate::read;
use std::path::Path;

/// The name of a process, as the kernel has it; none when it is gone.
pub(crate) fn name_of(root: &Path, pid: u32) -> Option<String> {
    let path = root.join("proc").join(pid.to_string()).join("comm");
    let name = read::bytes(&path).ok()?;
    let name = String::from_utf8_lossy(&name);
    Some(name.trim_end_matches('\n').to_owned())
}

/// Id of the real user of a process; none when the process is gone.
pub(crate) fn uid_of(root: &Path, pid: u32) -> Option<u32> {
    let path = root.join("proc").join(pid.to_string()).join("status");
    let status = Status::read(&path).ok()?;
    status
        .field("Uid")?
        .split_ascii_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_name_and_an_owner() {
        let root = Path::new("/");
        let own = std::process::id();
        assert!(name_of(root, own).is_some_and(|name| !name.is_empty()));
        assert_eq!(uid_of(root, own), Some(nix::unistd::getuid().as_raw()));
        assert_eq!(uid_of(root, u32::MAX), None);
    }
}
