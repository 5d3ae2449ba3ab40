//! The file `/proc/<pid>/maps` (`proc_pid_maps(5)`).

use super::images::Image;

const READ: u32 = 1;
const WRITE: u32 = 2;
const EXECUTE: u32 = 4;

/// The executable mappings of a list, without lines of another form.
pub(in crate::sampling) fn executable_images(list: &[u8]) -> impl Iterator<Item = Image> {
    let lines = list.split(|&byte| byte == b'\n');
    let images = lines.filter_map(|line| image(&String::from_utf8_lossy(line)));
    images.filter(|image| image.prot & EXECUTE != 0)
}

/// Parses `start-end perms offset dev inode   path`; the path may hold spaces.
fn image(line: &str) -> Option<Image> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let prot = prot(fields.next()?);
    let file_offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let device = device(fields.next()?)?;
    let inode = fields.next()?.parse().ok()?;
    Some(Image {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        file_offset,
        device,
        inode,
        generation: 0,
        mapped_ns: 0,
        prot,
        path: fields.next().unwrap_or_default().trim_start().into(),
    })
}

/// Major and minor number, hexadecimal.
fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    let number = |digits| u32::from_str_radix(digits, 16).ok();
    Some((number(major)?, number(minor)?))
}

fn prot(letters: &str) -> u32 {
    let bit = |letter: char, bit| if letters.contains(letter) { bit } else { 0 };
    bit('r', READ) | bit('w', WRITE) | bit('x', EXECUTE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn executable_mappings_are_read_with_spaces_in_paths() {
        let text = "\
55d0-55e0 r--p 00000000 fe:00 12                         /bin/a b
55e0-55f0 r-xp 00001000 fe:00 12                         /bin/a b
6000-7000 rwxp 00000000 00:00 0 
7fff-8fff r-xp 00000000 00:00 0                          [vdso]
";
        let images: Vec<Image> = executable_images(text.as_bytes()).collect();
        let paths: Vec<&str> = images.iter().map(|i| &*i.path).collect();
        assert_eq!(paths, ["/bin/a b", "", "[vdso]"]);
        let code = &images[0];
        assert_eq!(code.device, (0xfe, 0));
        let range = (code.start, code.end, code.file_offset, code.inode);
        assert_eq!(range, (0x55e0, 0x55f0, 0x1000, 12));
        assert_eq!(images[1].prot, READ | WRITE | EXECUTE);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,80}") {
            executable_images(text.as_bytes()).count();
        }
    }
}
