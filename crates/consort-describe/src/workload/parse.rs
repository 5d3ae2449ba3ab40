//! Text to workload expression.

use super::{
    MAX_INSTANCES, MIX, WorkloadError, WorkloadExpr, WorkloadItem, WorkloadTerm, is_name_char,
};
use crate::input::is_path;
use consort_core::{parse_count, unquote};
use std::cell::Cell;
use std::str::FromStr;

/// Prefix of a draw's seed.
const SEED: &str = "?seed=";

/// Looks for files that one expression may cost: some 0.1 s.
const LOOKS: u32 = 100_000;
/// Bytes of the longest path that Linux takes.
const LONGEST_PATH: usize = 4096;
/// Signs of the notation that a path without quotes cannot contain, unless it exists.
const QUOTED: &str = "quotes let a path contain '+', '*' and '@'";

impl FromStr for WorkloadExpr {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        Self::parse(text, &|_| false)
    }
}

impl WorkloadExpr {
    /// Reads an expression. `is_file` returns true for the name of a file that exists: of several
    /// ways to read a text, the one with the longest existing file wins, so that `./c++.toml` and
    /// `./job@2/a.toml` need no quotes.
    ///
    /// # Errors
    /// [`WorkloadError::Syntax`].
    pub fn parse(text: &str, is_file: &dyn Fn(&str) -> bool) -> Result<Self, WorkloadError> {
        // Every `+` and `@` is a possible end of a path, so a long text could cost a look per pair.
        let left = Cell::new(LOOKS);
        let is_file = |path: &str| {
            left.set(left.get().saturating_sub(1));
            left.get() > 0 && is_file(path)
        };
        let terms = parse_terms(ExprPart { text, at: 0 }, &is_file);
        let terms = terms.map_err(|fault| {
            let before = text.char_indices().take_while(|(byte, _)| *byte < fault.at);
            WorkloadError::Syntax {
                text: text.to_owned(),
                position: 1 + before.count(),
                message: fault.message,
            }
        })?;
        Ok(Self { terms })
    }
}

/// A syntax error and the byte at which it is.
struct ParseFault {
    at: usize,
    message: String,
}

/// A part of the expression and the byte at which it begins.
#[derive(Clone, Copy)]
struct ExprPart<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ExprPart<'a> {
    /// The part from a byte of it on.
    fn skip_bytes(self, byte: usize) -> Self {
        Self {
            text: &self.text[byte..],
            at: self.at + byte,
        }
    }

    /// The part before a byte of it.
    fn up_to(self, byte: usize) -> Self {
        let text = &self.text[..byte];
        Self { text, at: self.at }
    }

    fn trim(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        let part = self.skip_bytes(start);
        part.up_to(part.text.trim_end().len())
    }

    /// The part before the first of these signs, and the part from it on.
    fn split_before(self, signs: &[char]) -> (Self, Self) {
        let byte = self.text.find(signs).unwrap_or(self.text.len());
        (self.up_to(byte), self.skip_bytes(byte))
    }

    /// The part behind a sign at the beginning, if that is there.
    fn strip_sign(self, sign: char) -> Option<Self> {
        let byte = self.text.starts_with(sign).then_some(sign.len_utf8())?;
        Some(self.skip_bytes(byte))
    }

    fn fault<T>(self, message: impl Into<String>) -> Result<T, ParseFault> {
        Err(ParseFault {
            at: self.at,
            message: message.into(),
        })
    }

    /// A whole number, as [`parse_count`] reads it, within these bounds.
    fn parse_number(self, what: &str, min: u64, max: u64) -> Result<u64, ParseFault> {
        match parse_count(self.text).filter(|n| (min..=max).contains(n)) {
            Some(number) => Ok(number),
            None => {
                let hint = if self.text.contains('/') { QUOTED } else { "" };
                let semicolon = if hint.is_empty() { "" } else { "; " };
                self.fault(format!(
                    "{what} is '{}'; expected a whole number from {min} to {max}{semicolon}{hint}",
                    self.text.escape_debug()
                ))
            }
        }
    }

    /// A number of copies, threads or programs.
    fn parse_instances(self, what: &str) -> Result<u32, ParseFault> {
        let number = self.parse_number(what, 1, u64::from(MAX_INSTANCES))?;
        Ok(u32::try_from(number).unwrap_or(MAX_INSTANCES))
    }

    /// The quoted text at the beginning, and the part behind it; `None` if no quote opens here.
    fn parse_quoted(self) -> Option<Result<(String, Self), ParseFault>> {
        self.strip_sign('"')?;
        Some(match unquote(self.text) {
            Some((plain, _)) if plain.is_empty() => self.fault("the quotes are empty"),
            Some((plain, length)) => Ok((plain, self.skip_bytes(length))),
            None => self.fault("the quote is not closed; expected another '\"'"),
        })
    }

    /// A name: letters, digits, `.`, `_` and `-`.
    fn parse_name(self, what: &str) -> Result<String, ParseFault> {
        if self.text.is_empty() {
            return self.fault(format!("expected {what}"));
        }
        match self.text.char_indices().find(|&(_, c)| !is_name_char(c)) {
            None => Ok(self.text.to_owned()),
            Some((byte, c)) => self.skip_bytes(byte).fault(format!(
                "'{}' is not part of {what}; expected letters, digits, '.', '_' or '-'",
                c.escape_debug()
            )),
        }
    }
}

type FileTest<'a> = &'a dyn Fn(&str) -> bool;

fn parse_terms(
    mut rest: ExprPart<'_>,
    is_file: FileTest<'_>,
) -> Result<Vec<WorkloadTerm>, ParseFault> {
    let mut terms = Vec::new();
    loop {
        let (next, after) = parse_term(rest.trim(), is_file)?;
        terms.push(next);
        let after = after.trim();
        match after.strip_sign('+') {
            Some(behind) => rest = behind,
            None if after.text.is_empty() => return Ok(terms),
            None => return after.fault("expected '+' and another program, or nothing more"),
        }
    }
}

/// The first term, and the part behind it.
fn parse_term<'a>(
    part: ExprPart<'a>,
    is_file: FileTest<'_>,
) -> Result<(WorkloadTerm, ExprPart<'a>), ParseFault> {
    let (before, rest) = part.split_before(&['*', '+', '"']);
    let (count, rest) = match rest.strip_sign('*') {
        // A file `3*x` is one file, not three of `x`.
        Some(rest) if longest_file(part, is_file).is_none() => {
            (before.trim().parse_instances("the count")?, rest.trim())
        }
        _ => (1, part),
    };
    let (item, rest) = parse_item(rest, is_file)?;
    Ok((WorkloadTerm { count, item }, rest))
}

fn parse_item<'a>(
    part: ExprPart<'a>,
    is_file: FileTest<'_>,
) -> Result<(WorkloadItem, ExprPart<'a>), ParseFault> {
    if part.text.starts_with(MIX) {
        return parse_mix(part.skip_bytes(MIX.len()));
    }
    let (name, rest) = match part.parse_quoted() {
        Some(quoted) => quoted?,
        None => parse_unquoted(part, is_file)?,
    };
    let (threads, rest) = match rest.trim().strip_sign('@') {
        Some(behind) => {
            let (threads, rest) = behind.split_before(&['+']);
            (
                Some(threads.trim().parse_instances("the thread count")?),
                rest,
            )
        }
        None => (None, rest),
    };
    let item = if is_path(&name) {
        let path = name;
        WorkloadItem::File { path, threads }
    } else {
        WorkloadItem::Program { name, threads }
    };
    Ok((item, rest))
}

/// A name or path without quotes, and the part behind it.
fn parse_unquoted<'a>(
    part: ExprPart<'a>,
    is_file: FileTest<'_>,
) -> Result<(String, ExprPart<'a>), ParseFault> {
    if let Some(length) = longest_file(part, is_file) {
        let path = part.up_to(length).text.trim_end();
        return Ok((path.to_owned(), part.skip_bytes(length)));
    }
    let (name, rest) = part.split_before(&['+', '@']);
    let name = name.trim();
    if name.text.is_empty() {
        return name.fault("expected a program, a path or mix:SUITE/COUNT");
    }
    if !is_path(name.text) {
        return Ok((name.parse_name("a program's name")?, rest));
    }
    if name.text.contains('*') {
        return name.fault(format!("there is no such file; {QUOTED}"));
    }
    Ok((name.text.to_owned(), rest))
}

/// Bytes of the longest text at the beginning that names a file and ends where a path can end.
fn longest_file(part: ExprPart<'_>, is_file: FileTest<'_>) -> Option<usize> {
    let ends = part.text.match_indices(['+', '@']).map(|(byte, _)| byte);
    let ends = ends.chain([part.text.len()]);
    let ends: Vec<usize> = ends.take_while(|&end| end < LONGEST_PATH).collect();
    let names_file = |end: &usize| is_file(part.up_to(*end).text.trim_end());
    ends.into_iter().rev().find(names_file)
}

fn parse_mix(part: ExprPart<'_>) -> Result<(WorkloadItem, ExprPart<'_>), ParseFault> {
    let (suite, rest) = match part.parse_quoted() {
        Some(quoted) => quoted?,
        None => {
            let (suite, rest) = part.split_before(&['/', '+']);
            (suite.parse_name("a suite's name")?, rest)
        }
    };
    let Some(rest) = rest.strip_sign('/') else {
        return part.fault("expected mix:SUITE/COUNT or mix:SUITE/COUNT?seed=SEED");
    };
    let (rest, after) = rest.split_before(&['+']);
    let (draw, rest) = rest.trim().split_before(&['?']);
    let seed = match rest.text {
        "" => None,
        text if !text.starts_with(SEED) => {
            return rest.fault("the only option of a mix is ?seed=SEED");
        }
        _ => {
            let seed = rest.skip_bytes(SEED.len());
            Some(seed.parse_number("the seed", 0, u64::MAX)?)
        }
    };
    let draw = draw.parse_instances("the count of programs to draw")?;
    Ok((WorkloadItem::Mix { suite, draw, seed }, after))
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
    fn errors_name_position_and_expectation() {
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

    #[test]
    fn quotes_let_paths_and_names_contain_every_sign() {
        let items = |text: &str| text.parse::<WorkloadExpr>().unwrap().terms;
        let file = |path: &str, threads| WorkloadItem::File {
            path: path.to_owned(),
            threads,
        };
        let found = items(r#"2 * "./c++.toml" @ 4 + "/ws@2/a \"b\".toml" + "c++"@2"#);
        assert_eq!(
            (found[0].count, &found[0].item),
            (2, &file("./c++.toml", Some(4)))
        );
        assert_eq!(found[1].item, file("/ws@2/a \"b\".toml", None));
        let (name, threads) = ("c++".to_owned(), Some(2));
        assert_eq!(found[2].item, WorkloadItem::Program { name, threads });
        let suite = items(r#"mix:"my suite+/x"/3?seed=2+mcf"#);
        assert!(
            matches!(&suite[0].item, WorkloadItem::Mix { suite, .. } if suite == "my suite+/x")
        );
        assert_eq!(suite.len(), 2);
        check(
            "mcf+\"a",
            "position 5: the quote is not closed; expected another '\"'",
        );
        check("\"\"", "position 1: the quotes are empty");
        check(
            "\"a\"b",
            "position 4: expected '+' and another program, or nothing more",
        );
    }

    #[test]
    fn longest_existing_file_wins_over_the_notation() {
        let files = [
            "./c++.toml",
            "./ws@2/a.toml",
            "./3*x.toml",
            "./d",
            "./d+e/a.toml",
            "b@2+c",
        ];
        let read = |text: &str| {
            let expr = WorkloadExpr::parse(text, &|path| files.contains(&path)).unwrap();
            expr.to_string()
        };
        assert_eq!(read("./c++.toml+hmmer"), "\"./c++.toml\"+hmmer");
        assert_eq!(
            read("./ws@2/a.toml@4+./ws@2/a.toml"),
            "\"./ws@2/a.toml\"@4+\"./ws@2/a.toml\""
        );
        assert_eq!(read("./3*x.toml"), "\"./3*x.toml\"");
        assert_eq!(read("2*./3*x.toml @2"), "2*\"./3*x.toml\"@2");
        assert_eq!(read("./d+e/a.toml"), "\"./d+e/a.toml\"");
        assert_eq!(read("./d+mcf"), "./d+mcf");
        assert_eq!(read("b@2+c+mcf@2"), "\"b@2+c\"+mcf@2");
    }

    #[test]
    fn error_about_an_unquoted_path_names_quotes() {
        for text in ["./ws@2/a.toml", "./3*x.toml", "2*./3*x.toml", "./3*x+mcf"] {
            let error = text.parse::<WorkloadExpr>().unwrap_err().to_string();
            assert!(error.ends_with(QUOTED), "{error}");
        }
    }

    #[test]
    fn expression_of_many_terms_looks_for_few_files() {
        let looks = Cell::new(0);
        let text = vec!["mcf"; 20_000].join("+");
        let expr = WorkloadExpr::parse(&text, &|_| {
            looks.set(looks.get() + 1);
            false
        });
        assert_eq!(expr.unwrap().terms.len(), 20_000);
        assert!(looks.get() < LOOKS);
    }

    /// Any path that a text in UTF-8 can name.
    fn path_like() -> impl Strategy<Value = String> {
        let name = "[^\0]{0,8}|[+@*\"\\\\ mix:]{1,6}";
        (prop::sample::select(vec!["./", "/", "~/", ".", ""]), name).prop_map(|(start, name)| {
            let path = format!("{start}{name}");
            if is_path(&path) {
                path
            } else {
                format!("{path}.toml")
            }
        })
    }

    /// Any text that is no path by its form.
    fn other_name() -> impl Strategy<Value = String> {
        let name = "[^\0]{1,8}|[+@*\"\\\\ mix:]{1,6}";
        name.prop_filter("it is a path", |name: &String| !is_path(name))
    }

    fn items() -> impl Strategy<Value = WorkloadItem> {
        let name = "[a-ln-z0-9][A-Za-z0-9_-]{0,8}";
        let threads = || prop::option::of(1..=MAX_INSTANCES);
        prop_oneof![
            (name, threads()).prop_map(|(name, threads)| WorkloadItem::Program { name, threads }),
            (path_like(), threads())
                .prop_map(|(path, threads)| WorkloadItem::File { path, threads }),
            (other_name(), threads())
                .prop_map(|(name, threads)| WorkloadItem::Program { name, threads }),
            (
                prop_oneof![name.prop_map(String::from), other_name()],
                1..=MAX_INSTANCES,
                prop::option::of(any::<u64>())
            )
                .prop_map(|(suite, draw, seed)| WorkloadItem::Mix {
                    suite,
                    draw,
                    seed
                }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_out_parses_to_the_same(
            terms in prop::collection::vec((1..=MAX_INSTANCES, items()), 1..6),
        ) {
            let terms = terms.into_iter().map(|(count, item)| WorkloadTerm { count, item });
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
