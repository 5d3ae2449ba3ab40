//! Whole numbers on the command line: one grammar and one error text for every option.

use consort_core::parse_count;
use std::ops::RangeInclusive;

/// A parser of whole numbers within a range, with units: `20000`, `20_000`, `20k`, `1.5M`, `2e6`.
///
/// The range must fit into `T`; a number outside it is refused.
pub(super) fn count_parser<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = parse_count(text).filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let most = match most {
                &u64::MAX => "2^64 - 1".to_owned(),
                most => most.to_string(),
            };
            format!(
                "expected a whole number from {least} to {most}, for example 20000, 20_000, 20k, \
                 1.5M, 2G or 2e6"
            )
        })
    }
}

/// A parser of seeds: any number of 64 bits.
pub(super) fn seed_parser() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static
{
    count_parser(0..=u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_range_are_refused_with_the_range() {
        let parse = count_parser::<u32>(1..=10_000);
        assert_eq!(parse("10k"), Ok(10_000));
        for text in ["0", "10001", "1.5", "", "4294967297"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("from 1 to 10000"), "{error}");
        }
        assert_eq!(seed_parser()("18446744073709551615"), Ok(u64::MAX));
    }
}
