//! Text to workload expression.

use super::error::WorkloadError;
use super::expr::{Item, Term, WorkloadExpr};
use super::{MAX_INSTANCES, is_path};
use std::str::FromStr;

/// Prefix of a seeded draw.
const MIX: &str = "mix:";
/// Prefix of a draw's seed.
const SEED: &str = "?seed=";

impl FromStr for WorkloadExpr {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let whole = Part { text, at: 0 };
        let terms = whole.split('+').into_iter().map(term);
        let terms: Result<Vec<Term>, Fault> = terms.collect();
        match terms {
            Ok(terms) => Ok(Self { terms }),
            Err(fault) => Err(fault.in_text(text)),
        }
    }
}

/// A syntax error and the byte at which it is.
struct Fault {
    at: usize,
    message: String,
}

impl Fault {
    fn in_text(self, text: &str) -> WorkloadError {
        let before = text.char_indices().take_while(|(byte, _)| *byte < self.at);
        WorkloadError::Syntax {
            text: text.to_owned(),
            position: 1 + before.count(),
            message: self.message,
        }
    }
}

/// A part of the expression and the byte at which it begins.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Part<'a> {
    /// The part from a byte of it on.
    fn from(self, byte: usize) -> Self {
        Self {
            text: &self.text[byte..],
            at: self.at + byte,
        }
    }

    /// The part before a byte of it.
    fn until(self, byte: usize) -> Self {
        let text = &self.text[..byte];
        Self { text, at: self.at }
    }

    fn trim(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        let part = self.from(start);
        part.until(part.text.trim_end().len())
    }

    fn split(self, separator: char) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut rest = self;
        while let Some((head, tail)) = rest.cut(separator) {
            parts.push(head);
            rest = tail;
        }
        parts.push(rest);
        parts
    }

    /// Splits the part at the first separator into what is before and what is after it.
    fn cut(self, separator: char) -> Option<(Self, Self)> {
        let byte = self.text.find(separator)?;
        Some((self.until(byte), self.from(byte + separator.len_utf8())))
    }

    fn fault<T>(self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault {
            at: self.at,
            message: message.into(),
        })
    }

    /// A whole number from `min` on, written in digits alone.
    fn number<N>(self, what: &str, min: N, max: N) -> Result<N, Fault>
    where
        N: Copy + FromStr + PartialOrd + std::fmt::Display,
    {
        let digits = self.text.bytes().all(|byte| byte.is_ascii_digit());
        let number = self.text.parse().ok().filter(|_| digits);
        match number.filter(|n| (&min..=&max).contains(&n)) {
            Some(number) => Ok(number),
            None => self.fault(format!(
                "{what} is '{}'; expected a whole number from {min} to {max}",
                self.text.escape_debug()
            )),
        }
    }

    /// A name: letters, digits, `.`, `_` and `-`.
    fn name(self, what: &str) -> Result<String, Fault> {
        if self.text.is_empty() {
            return self.fault(format!("expected {what}"));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        match self.text.char_indices().find(|&(_, c)| !fits(c)) {
            None => Ok(self.text.to_owned()),
            Some((byte, c)) => self.from(byte).fault(format!(
                "'{}' is not part of {what}; expected letters, digits, '.', '_' or '-'",
                c.escape_debug()
            )),
        }
    }
}

fn term(part: Part<'_>) -> Result<Term, Fault> {
    let part = part.trim();
    let (count, rest) = match part.cut('*') {
        Some((count, rest)) => {
            let count = count.trim().number("the count", 1, MAX_INSTANCES)?;
            (count, rest.trim())
        }
        None => (1, part),
    };
    let item = item(rest)?;
    Ok(Term { count, item })
}

fn item(part: Part<'_>) -> Result<Item, Fault> {
    if part.text.is_empty() {
        return part.fault("expected a program, a path or mix:SUITE/COUNT");
    }
    if part.text.starts_with(MIX) {
        return mix(part.from(MIX.len()));
    }
    let (name, threads) = match part.cut('@') {
        Some((name, n)) => (name, Some(n.number("the thread count", 1, MAX_INSTANCES)?)),
        None => (part, None),
    };
    if is_path(name.text) {
        let path = path(name)?;
        return Ok(Item::File { path, threads });
    }
    let name = name.name("a program's name")?;
    Ok(Item::Program { name, threads })
}

fn path(part: Part<'_>) -> Result<String, Fault> {
    if part.text.contains('*') {
        return part.fault("a path cannot hold '*'; name the file in a workload file");
    }
    Ok(part.trim().text.to_owned())
}

fn mix(part: Part<'_>) -> Result<Item, Fault> {
    let Some((suite, rest)) = part.cut('/') else {
        return part.fault("expected mix:SUITE/COUNT or mix:SUITE/COUNT?seed=SEED");
    };
    let suite = suite.name("a suite's name")?;
    let (draw, seed) = match rest.text.find('?') {
        Some(byte) => (rest.until(byte), Some(seed(rest.from(byte))?)),
        None => (rest, None),
    };
    let draw = draw.number("the count of programs to draw", 1, MAX_INSTANCES)?;
    Ok(Item::Mix { suite, draw, seed })
}

fn seed(part: Part<'_>) -> Result<u64, Fault> {
    if !part.text.starts_with(SEED) {
        return part.fault("the only option of a mix is ?seed=SEED");
    }
    part.from(SEED.len()).number("the seed", 0, u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &str) {
        let error = text.parse::<WorkloadExpr>().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("workload '{}': {expect}", text.escape_debug())
        );
    }

    #[test]
    fn the_examples_of_the_command_line_parse() {
        for text in [
            "4*hmmer+4*povray",
            "streamcluster@4+blackscholes@4",
            "mix:spec2006/10?seed=7",
            "4*./my.toml+2*mix:spec2006/3+mcf",
        ] {
            let expr: WorkloadExpr = text.parse().unwrap();
            assert_eq!(expr.to_string(), text);
        }
        let spaced: WorkloadExpr = " 4 * hmmer + povray ".parse().unwrap();
        assert_eq!(spaced.to_string(), "4*hmmer+povray");
    }

    #[test]
    fn errors_name_the_place_and_what_would_be_right() {
        check(
            "",
            "position 1: expected a program, a path or mix:SUITE/COUNT",
        );
        check(
            "4*hmmer+",
            "position 9: expected a program, a path or mix:SUITE/COUNT",
        );
        check(
            "mcf+0*hmmer",
            "position 5: the count is '0'; expected a whole number from 1 to 65536",
        );
        check(
            "mcf@+1",
            "position 5: the thread count is ''; expected a whole number from 1 to 65536",
        );
        check(
            "mcf@2@3",
            "position 5: the thread count is '2@3'; expected a whole number from 1 to 65536",
        );
        check(
            "hm\u{e9}er",
            "position 3: 'é' is not part of a program's name; expected letters, digits, '.', '_' or '-'",
        );
        check(
            "mix:spec2006",
            "position 5: expected mix:SUITE/COUNT or mix:SUITE/COUNT?seed=SEED",
        );
        check(
            "mix:spec2006/4?sed=7",
            "position 15: the only option of a mix is ?seed=SEED",
        );
    }

    fn items() -> impl Strategy<Value = Item> {
        let name = "[a-ln-z0-9][A-Za-z0-9_-]{0,8}";
        let threads = || prop::option::of(1..=MAX_INSTANCES);
        prop_oneof![
            (name, threads()).prop_map(|(name, threads)| Item::Program { name, threads }),
            ("(\\./)?[a-l][a-z ?é]{0,6}\\.toml", threads())
                .prop_map(|(path, threads)| Item::File { path, threads }),
            (name, 1..=MAX_INSTANCES, prop::option::of(any::<u64>()))
                .prop_map(|(suite, draw, seed)| Item::Mix { suite, draw, seed }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_out_parses_to_the_same(
            terms in prop::collection::vec((1..=MAX_INSTANCES, items()), 1..6),
        ) {
            let terms = terms.into_iter().map(|(count, item)| Term { count, item });
            let expr = WorkloadExpr { terms: terms.collect() };
            prop_assert_eq!(expr.to_string().parse::<WorkloadExpr>(), Ok(expr));
        }

        #[test]
        fn errors_are_one_line_whatever_the_text(text in "\\PC*|[0-9*+@:/?=mix\n\t .a]{0,20}") {
            match text.parse::<WorkloadExpr>() {
                Ok(expr) => prop_assert_eq!(expr.to_string().parse::<WorkloadExpr>(), Ok(expr)),
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
            }
        }
    }
}
