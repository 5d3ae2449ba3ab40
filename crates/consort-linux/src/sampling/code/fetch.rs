//! Reading of one page of code, from memory or from the file behind it.

use super::Miss;
use super::images::Image;
use super::opening::open;
use super::pages::Page;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::fs::File;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A page to read, with the thread and the mapping that lead to it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Address of the page.
    pub(super) start: u64,
    /// The mapping that the page lies in, as far as is known.
    pub(super) image: Option<Image>,
    /// True if the process has become another program, so that its memory would mislead.
    pub(super) replaced: bool,
}

impl Place {
    /// The page with these bytes. Without a known mapping the code may change at any time.
    pub(super) fn to_page(&self, bytes: Vec<u8>) -> Page {
        let image = self.image.as_ref();
        Page {
            bytes: bytes.into(),
            changeable: image.is_none_or(Image::is_changeable),
        }
    }
}

/// Origin of a page's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Memory,
    File,
}

/// Reads a page.
pub(super) fn page(root: &Path, place: &Place, len: usize) -> Result<(Vec<u8>, Source), Miss> {
    if !place.replaced
        && let Some(bytes) = from_memory(root, place, len)
    {
        return Ok((bytes, Source::Memory));
    }
    let image = place.image.as_ref().ok_or(Miss::Unmapped)?;
    let bytes = from_file(root, image, place.start, len).ok_or(Miss::Unreadable)?;
    Ok((bytes, Source::File))
}

/// Reads from the memory of the thread before that of the process: a leader that has ended has no
/// memory any more though its threads live on.
fn from_memory(root: &Path, place: &Place, len: usize) -> Option<Vec<u8>> {
    let ask = |id| vm_read(id, place.start, len);
    let asked = ask(place.tid).or_else(|| ask(place.pid));
    asked.or_else(|| mem_read(root, place.pid, place.start, len))
}

fn vm_read(id: u32, start: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let remote = RemoteIoVec {
        base: usize::try_from(start).ok()?,
        len,
    };
    let pid = Pid::from_raw(i32::try_from(id).ok().filter(|&id| id > 0)?);
    let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &[remote]);
    (read == Ok(len)).then_some(bytes)
}

fn mem_read(root: &Path, pid: u32, start: u64, len: usize) -> Option<Vec<u8>> {
    let file = File::open(root.join(format!("proc/{pid}/mem"))).ok()?;
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

/// The page as the file has it; the last page of a file may be short.
fn from_file(root: &Path, image: &Image, start: u64, len: usize) -> Option<Vec<u8>> {
    let file = open(root, image)?;
    let offset = image
        .file_offset
        .checked_add(start.checked_sub(image.start)?)?;
    let mut bytes = vec![0; len];
    let read = file.read_at(&mut bytes, offset).ok()?;
    bytes.truncate(read);
    (read > 0).then_some(bytes)
}
