//! Whole numbers with units, as every option and notation reads them.

/// Reads a whole number: `20000`, `20_000`, `20k`, `1.5M`, `2G` or `2e6`.
///
/// `None` if the text is no such number, if its value is not whole (`1.5`, `0.5e0`), or if it does
/// not fit. The value is exact, because no step of the computation uses floating point.
///
/// ```
/// assert_eq!(consort_core::parse_count("1.5M"), Some(1_500_000));
/// assert_eq!(consort_core::parse_count("1.5"), None);
/// ```
pub fn parse_count(text: &str) -> Option<u64> {
    let (number, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 3),
        b'M' => (&text[..text.len() - 1], 6),
        b'G' => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
            (mantissa, digits(exponent)?.parse::<u32>().ok()?)
        }
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let whole = digits(whole)?;
    let fraction = digits(fraction)?;
    let fraction = fraction.trim_end_matches('0');
    let shift = exponent
        .checked_add(unit)?
        .checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let value: u64 = format!("{whole}{fraction}").parse().ok()?;
    if value == 0 {
        return Some(0);
    }
    value.checked_mul(10_u64.checked_pow(shift)?)
}

/// The digits of a text without the `_` between them; `None` if there is anything else.
fn digits(text: &str) -> Option<String> {
    let groups = text.split('_');
    let is_number = |group: &str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    groups.clone().all(is_number).then(|| groups.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_scale_and_fractions_must_be_whole() {
        for (text, value) in [
            ("0", 0),
            ("20000", 20_000),
            ("20_000", 20_000),
            ("20k", 20_000),
            ("100K", 100_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("2e6", 2_000_000),
            ("2E+6", 2_000_000),
            ("1.25e2", 125),
            ("0e99999", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Some(value), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_whole_number_are_refused() {
        for text in [
            "",
            "k",
            "-1",
            "+1",
            "1.5",
            "1.",
            ".5M",
            "1__0",
            "_1",
            "1_",
            "3T",
            "\u{e9}",
            "2e",
            "e6",
            "1.5e0",
            "2e-6",
            "0x10",
            " 1",
            "1 k",
            "1e20",
            "18446744073709551616",
            "1kk",
            "1e99999",
        ] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_whole_number_is_read_back(value in any::<u64>()) {
            prop_assert_eq!(parse_count(&value.to_string()), Some(value));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9_.eEkMG+\u{e9}-]{0,12}") {
            let _ = parse_count(&text);
        }
    }
}
