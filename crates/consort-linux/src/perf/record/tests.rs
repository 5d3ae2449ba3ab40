use super::*;
use proptest::prelude::*;

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(HEADER_BYTES + body.len()).unwrap();
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(body);
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

fn trailer() -> Vec<u8> {
    words(&[1, 2, 77, 0, 3, 0])
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = PerfRecord::parse(&bytes);
    }

    #[test]
    fn any_body_of_any_kind_is_parsed_or_refused(
        kind in 0u32..24, misc: u16, body in prop::collection::vec(any::<u8>(), 0..200)
    ) {
        let bytes = record(kind, misc, &body);
        match PerfRecord::parse(&bytes) {
            Ok(_) => prop_assert_eq!(record_size(&bytes), Ok(bytes.len())),
            Err(e) => prop_assert_eq!(e, PerfRecordError::TooShort { kind, size: bytes.len() }),
        }
    }

    #[test]
    fn samples_are_read_back(ip: u64, pid: u32, tid: u32, time_ns: u64, pu: u32) {
        let mut body = ip.to_ne_bytes().to_vec();
        body.extend(words(&[pid, tid]));
        body.extend(time_ns.to_ne_bytes());
        body.extend(words(&[pu, 0]));
        let stamp = Stamp { pid, tid, time_ns, pu };
        let registers = None;
        let expect = PerfRecord::Sample { ip, arch: None, registers, stamp };
        prop_assert_eq!(PerfRecord::parse(&record(SAMPLE, 2, &body)), Ok(expect));
    }
}

/// A sample with registers, each of which holds the kernel's number of itself.
fn with_registers(abi: u64) -> (Option<Arch>, Option<Box<RegisterValues>>) {
    let mut body = vec![0; 32];
    for word in std::iter::once(abi).chain(0..16) {
        body.extend(word.to_ne_bytes());
    }
    match PerfRecord::parse(&record(SAMPLE, 2, &body)) {
        Ok(PerfRecord::Sample {
            arch, registers, ..
        }) => (arch, registers),
        other => panic!("not a sample: {other:?}"),
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn registers_are_put_into_hardware_order() {
    let (arch, registers) = with_registers(ABI_64);
    assert_eq!(arch, Some(Arch::X86_64));
    let registers = registers.expect("64-bit code");
    // rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi
    assert_eq!(registers.0[..8], [0, 2, 3, 1, 7, 6, 4, 5]);
    assert_eq!(registers.0[8..], [8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(with_registers(ABI_32), (Some(Arch::X86_32), None));
    assert_eq!(with_registers(0), (None, None));
}

#[test]
fn a_record_without_size_is_refused() {
    let error = PerfRecord::parse(&[0; 64]);
    assert_eq!(
        error,
        Err(PerfRecordError::BadSize {
            size: 0,
            available: 64
        })
    );
}

#[test]
fn forks_carry_the_trailer_time() {
    let mut body = words(&[10, 20, 11, 21, 5, 0]);
    body.extend(trailer());
    let expect = TaskRecord {
        pid: 10,
        tid: 11,
        parent_pid: 20,
        parent_tid: 21,
        time_ns: 77,
    };
    assert_eq!(
        PerfRecord::parse(&record(FORK, 0, &body)),
        Ok(PerfRecord::Fork(expect))
    );
}

#[test]
fn names_end_at_their_zero_and_tell_execs() {
    let mut body = words(&[10, 11]);
    body.extend(b"a) b\n\0\0\0");
    body.extend(trailer());
    let expect = PerfRecord::Comm {
        pid: 10,
        tid: 11,
        exec: true,
        name: "a) b\n".into(),
        time_ns: 77,
    };
    assert_eq!(
        PerfRecord::parse(&record(COMM, MISC_COMM_EXEC, &body)),
        Ok(expect)
    );
}

#[test]
fn mappings_tell_file_and_place() {
    let mut body = words(&[10, 11]);
    for word in [0x1000u64, 0x2000, 0x3000] {
        body.extend(word.to_ne_bytes());
    }
    body.extend(words(&[8, 1]));
    for word in [99u64, 3] {
        body.extend(word.to_ne_bytes());
    }
    body.extend(words(&[5, 2]));
    body.extend(b"/bin/x\0\0");
    body.extend(trailer());
    let Ok(PerfRecord::Mmap2(mapping)) = PerfRecord::parse(&record(MMAP2, 0, &body)) else {
        panic!("not a mapping");
    };
    let seen = (mapping.start, mapping.len, mapping.file_offset);
    assert_eq!(seen, (0x1000, 0x2000, 0x3000));
    let file = (mapping.device, mapping.inode, mapping.generation);
    assert_eq!((file, mapping.prot), (((8, 1), 99, 3), 5));
    assert_eq!((mapping.path.as_str(), mapping.time_ns), ("/bin/x", 77));
}
