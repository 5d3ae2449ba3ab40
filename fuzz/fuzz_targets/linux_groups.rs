//! What members and leaders of groups say, in pieces of any bytes; names of groups.

#![no_main]

use consort_linux::group::{
    GroupName, Language, LeaderMessage, LineBuffer, MAX_LINE_BYTES, MemberMessage,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (usize, &[u8])| {
    let (cut, bytes) = input;
    let mut lines = LineBuffer::new(Language::Groups, MAX_LINE_BYTES);
    for piece in bytes.chunks(cut % 64 + 1) {
        let Ok(whole) = lines.push(piece) else {
            return;
        };
        for line in whole {
            assert!(line.len() < MAX_LINE_BYTES && !line.contains(&b'\n'));
            let _ = MemberMessage::parse(&line);
            let _ = LeaderMessage::parse(&line);
        }
    }
    if let Some(name) = std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse::<GroupName>().ok())
    {
        assert!(!name.as_str().contains('/') && !name.as_str().starts_with('.'));
    }
});
