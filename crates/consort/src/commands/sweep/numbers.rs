//! Numbers of shards as people write them.

use crate::failure::bad_input;
use anyhow::Result;
use std::collections::BTreeSet;

/// The word for all of them.
const ALL: &str = "all";

/// Reads `7`, `0-9`, `0-9,12` or `all`, of so many; ascending, each once.
pub(super) fn read(texts: &[String], count: usize) -> Result<Vec<usize>> {
    let mut numbers = BTreeSet::new();
    for part in texts.iter().flat_map(|text| text.split(',')) {
        if part == ALL {
            numbers.extend(0..count);
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let span = first.parse().ok().zip(last.parse().ok());
        let span = span.filter(|(first, last): &(usize, usize)| first <= last);
        let (first, last) = span.ok_or_else(|| {
            bad_input(format!(
                "shard '{part}'; expected numbers such as 7, 0-9 or 0-9,12, or all"
            ))
        })?;
        if last >= count {
            let most = count.saturating_sub(1);
            return Err(bad_input(format!(
                "there is no shard {last}; the plan has 0 to {most}"
            )));
        }
        numbers.extend(first..=last);
    }
    Ok(numbers.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_lab::sweep::ranges;
    use proptest::prelude::*;

    fn of(texts: &[&str]) -> Result<Vec<usize>> {
        read(
            &texts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            20,
        )
    }

    #[test]
    fn numbers_spans_and_all_are_read() {
        assert_eq!(of(&["7", "0-2,2"]).unwrap(), [0, 1, 2, 7]);
        assert_eq!(of(&["all"]).unwrap().len(), 20);
        for (text, expected) in [
            (
                "x",
                "shard 'x'; expected numbers such as 7, 0-9 or 0-9,12, or all",
            ),
            (
                "5-3",
                "shard '5-3'; expected numbers such as 7, 0-9 or 0-9,12, or all",
            ),
            ("3-20", "there is no shard 20; the plan has 0 to 19"),
        ] {
            assert_eq!(of(&[text]).unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(numbers in prop::collection::btree_set(0usize..20, 1..20)) {
            let numbers: Vec<usize> = numbers.into_iter().collect();
            prop_assert_eq!(of(&[&ranges(&numbers)]).unwrap(), numbers);
        }
    }
}
