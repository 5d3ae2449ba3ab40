use super::*;
use crate::GuestTopology;
use crate::placement::thread_masks;
use proptest::prelude::*;

fn four_by_two() -> Topology {
    GuestTopology::smt(4, 2).topology().unwrap()
}

/// Threads from `(comm, mask)`, numbered from 1.
fn masks(threads: &[(&str, &str)]) -> Vec<ThreadMask> {
    let lines: Vec<String> = threads
        .iter()
        .zip(1..)
        .map(|((comm, mask), tid)| format!("thread {tid} {tid} {mask} {comm}"))
        .collect();
    thread_masks(&lines.join("\n")).unwrap()
}

fn spread(threads: &[(&str, &str)]) -> Result<(), String> {
    check_fp_spread(&masks(threads), &four_by_two())
}

fn paired(threads: &[(&str, &str)]) -> Result<(), String> {
    check_fp_paired_with_light(&masks(threads), &four_by_two())
}

#[test]
fn a_core_each_is_a_spread() {
    assert_eq!(
        spread(&[("fp-0", "0"), ("fp-0", "2-3"), ("fp-0", "5")]),
        Ok(())
    );
}

#[test]
fn two_on_one_core_are_named() {
    let error = spread(&[("fp-0", "0"), ("fp-0", "1"), ("int-0", "0-7")]).unwrap_err();
    assert_eq!(
        error,
        "core 0 has fp-0 (1) on PUs 0 and fp-0 (2) on PUs 1, more than 1"
    );
}

#[test]
fn free_threads_and_no_threads_are_no_spread() {
    assert!(
        spread(&[("fp-0", "0-7")])
            .unwrap_err()
            .contains("not confined")
    );
    assert!(
        spread(&[("fp-0", "9")])
            .unwrap_err()
            .contains("not confined")
    );
    assert!(
        spread(&[("int-0", "0")])
            .unwrap_err()
            .contains("no fp thread")
    );
}

#[test]
fn more_fp_threads_than_cores_share_evenly() {
    let mut threads = vec![
        ("fp-0", "0"),
        ("fp-0", "2"),
        ("fp-0", "4"),
        ("fp-0", "6"),
        ("fp-0", "7"),
    ];
    assert_eq!(spread(&threads), Ok(()));
    threads.push(("fp-0", "6-7"));
    assert!(spread(&threads).is_err());
}

#[test]
fn pairs_need_a_light_thread_each() {
    assert_eq!(
        paired(&[("fp-0", "0"), ("fp-0", "2"), ("int-0", "1"), ("int-0", "3")]),
        Ok(())
    );
    assert_eq!(paired(&[("fp-0", "0-1"), ("int-0", "0-7")]), Ok(()));
    let error = paired(&[("fp-0", "0"), ("fp-0", "2"), ("int-0", "1"), ("int-0", "1")]);
    assert_eq!(
        error.unwrap_err(),
        "no light thread is left that may run beside fp on PUs 3 of core 1"
    );
}

#[test]
fn a_core_full_of_fp_has_no_pair() {
    assert!(paired(&[("fp-0", "0"), ("fp-0", "0-1"), ("int-0", "0-7")]).is_err());
}

#[test]
fn light_threads_are_moved_up_where_that_helps() {
    assert_eq!(
        paired(&[
            ("fp-0", "0"),
            ("fp-0", "2"),
            ("int-0", "1,3"),
            ("int-0", "1")
        ]),
        Ok(())
    );
}

#[test]
fn sightings_are_compared_thread_by_thread() {
    let old = masks(&[("fp-0", "0-7"), ("int-0", "0-7")]);
    assert_eq!(check_same_masks(&old, &old), Ok(()));
    let moved = masks(&[("fp-0", "0-7"), ("int-0", "3")]);
    assert_eq!(
        check_same_masks(&old, &moved).unwrap_err(),
        "int-0 (2) on PUs 3 had PUs 0-7"
    );
    assert!(
        check_same_masks(&old, &old[..1])
            .unwrap_err()
            .ends_with("is gone")
    );
    assert!(
        check_same_masks(&old[..1], &old)
            .unwrap_err()
            .ends_with("is new")
    );
}

proptest! {
    /// One fp thread on any way of each of some cores passes; moving one beside another fails.
    #[test]
    fn spreads_pass_until_two_meet(cores in 2u32..9, ways in 2u32..9, way: prop::sample::Index, used in 2usize..9) {
        let topology = GuestTopology::smt(cores, ways).topology().unwrap();
        let way = way.index(ways as usize);
        let used = used.min(cores as usize);
        let on = |core: usize, way: usize| topology.cores()[core].pus[way].to_string();
        let mut pus: Vec<String> = (0..used).map(|core| on(core, way)).collect();
        let check = |pus: &[String]| {
            let threads: Vec<(&str, &str)> = pus.iter().map(|pu| ("fp-0", pu.as_str())).collect();
            check_fp_spread(&masks(&threads), &topology)
        };
        prop_assert_eq!(check(&pus), Ok(()));
        pus[1] = on(0, (way + 1) % ways as usize);
        prop_assert!(check(&pus).is_err());
    }
}
