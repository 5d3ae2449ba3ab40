//! Suggestions for a name that is not known.

/// Edits (one letter more, less, other, or two swapped) up to which a name is taken for another.
const NEAR: usize = 2;

/// The known name nearest to `name`, or all of them when none is near.
pub fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let distance = |candidate| (strsim::damerau_levenshtein(name, candidate), candidate);
    match known.clone().map(distance).min() {
        Some((edits, nearest)) if edits <= NEAR => format!("did you mean '{nearest}'?"),
        _ => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expect: &str) {
        assert_eq!(hint(name, ["run", "machine"].into_iter()), expect);
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_listed() {
        check("rnu", "did you mean 'run'?");
        check("machin", "did you mean 'machine'?");
        check("elephant", "known: run, machine");
    }
}
