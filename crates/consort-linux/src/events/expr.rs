//! The formulas of event files: `+ - * /`, parentheses, numbers and event names.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A parsed formula: parse it once with `str::parse`, evaluate it in each interval with
/// [`Expr::eval`].
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub enum Expr {
    /// A constant.
    Number(f64),
    /// The count of an event.
    Name(String),
    /// Two operands.
    Binary(Operator, Box<Expr>, Box<Expr>),
}

/// An operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
}

/// Fault of a formula's text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExprError {
    /// There is no number, name or `(` where an operand belongs.
    #[error("expected a number, an event name or ( at column {column}")]
    Operand {
        /// Column, from 1.
        column: usize,
    },
    /// There is text after the end of the formula, or an operator is missing.
    #[error("expected an operator or the end at column {column}")]
    Operator {
        /// Column, from 1.
        column: usize,
    },
    /// A parenthesis is opened and not closed.
    #[error("expected ) at column {column}")]
    Unclosed {
        /// Column, from 1.
        column: usize,
    },
    /// Parentheses are nested deeper than any formula needs.
    #[error("more than {MAX_DEPTH} parentheses inside each other at column {column}")]
    TooDeep {
        /// Column, from 1.
        column: usize,
    },
}

/// The deepest nesting that is accepted; bounds the parser's stack.
const MAX_DEPTH: usize = 32;

impl Expr {
    /// Returns the formula's value; `None` if a name has no value or the result is not finite, as
    /// in an idle interval, in which formulas divide by zero.
    pub fn eval(&self, value_of: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(n) => *n,
            Self::Name(name) => value_of(name)?,
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.eval(value_of)?, right.eval(value_of)?);
                match operator {
                    Operator::Add => left + right,
                    Operator::Sub => left - right,
                    Operator::Mul => left * right,
                    Operator::Div => left / right,
                }
            }
        };
        value.is_finite().then_some(value)
    }

    /// Returns the names of the events in the formula.
    pub fn names(&self) -> BTreeSet<&str> {
        match self {
            Self::Number(_) => BTreeSet::new(),
            Self::Name(name) => BTreeSet::from([name.as_str()]),
            Self::Binary(_, left, right) => &left.names() | &right.names(),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Name(name) => f.write_str(name),
            Self::Binary(operator, left, right) => {
                let symbol = match operator {
                    Operator::Add => '+',
                    Operator::Sub => '-',
                    Operator::Mul => '*',
                    Operator::Div => '/',
                };
                write!(f, "({left} {symbol} {right})")
            }
        }
    }
}

impl TryFrom<String> for Expr {
    type Error = ExprError;

    fn try_from(text: String) -> Result<Self, ExprError> {
        text.parse()
    }
}

impl FromStr for Expr {
    type Err = ExprError;

    fn from_str(text: &str) -> Result<Self, ExprError> {
        let mut parser = Parser {
            text: text.as_bytes(),
            at: 0,
            depth: 0,
        };
        let expr = parser.sum()?;
        match parser.peek() {
            None => Ok(expr),
            Some(_) => Err(ExprError::Operator {
                column: parser.at + 1,
            }),
        }
    }
}

/// Recursive descent over the bytes of a formula. Operators of one precedence group from the left.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// The next byte that is not a space.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some(b'+') => Operator::Add,
                Some(b'-') => Operator::Sub,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expr::Binary(operator, left.into(), self.product()?.into());
        }
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let mut left = self.operand()?;
        loop {
            let operator = match self.peek() {
                Some(b'*') => Operator::Mul,
                Some(b'/') => Operator::Div,
                _ => return Ok(left),
            };
            self.at += 1;
            left = Expr::Binary(operator, left.into(), self.operand()?.into());
        }
    }

    fn operand(&mut self) -> Result<Expr, ExprError> {
        let first = self.peek();
        let column = self.at + 1;
        match first {
            Some(b'(') => self.parenthesis(),
            Some(b'0'..=b'9') => {
                let digits = self.take(|b| b.is_ascii_digit() || b == b'.');
                let number = digits.parse().map_err(|_| ExprError::Operand { column })?;
                Ok(Expr::Number(number))
            }
            Some(b'a'..=b'z') => {
                let is_name = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
                Ok(Expr::Name(self.take(is_name)))
            }
            _ => Err(ExprError::Operand { column }),
        }
    }

    fn parenthesis(&mut self) -> Result<Expr, ExprError> {
        if self.depth == MAX_DEPTH {
            return Err(ExprError::TooDeep {
                column: self.at + 1,
            });
        }
        self.at += 1;
        self.depth += 1;
        let inner = self.sum()?;
        self.depth -= 1;
        if self.peek() != Some(b')') {
            return Err(ExprError::Unclosed {
                column: self.at + 1,
            });
        }
        self.at += 1;
        Ok(inner)
    }

    /// Takes ASCII bytes while they fit.
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> String {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|&&b| fits(b)).count();
        self.at += length;
        rest[..length].iter().copied().map(char::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: Option<f64>) {
        let value = |name: &str| match name {
            "cycles" => Some(8.0),
            "empty" => Some(2.0),
            "zero" => Some(0.0),
            _ => None,
        };
        let expr: Expr = text.parse().unwrap();
        assert_eq!(expr.eval(&value), expect, "{text}");
    }

    #[test]
    fn golden() {
        check("1 - empty / cycles", Some(0.75));
        check("(1 - empty) / cycles", Some(-0.125));
        check("8 - 4 - 2", Some(2.0));
        check("8 / 4 / 2", Some(1.0));
        check("2*cycles+empty", Some(18.0));
        check(" 0.5 * ( cycles ) ", Some(4.0));
        check("cycles / zero", None);
        check("zero / zero", None);
        check("unknown + 1", None);
    }

    #[test]
    fn errors_name_the_column() {
        let error = |text: &str| text.parse::<Expr>().unwrap_err();
        assert_eq!(error(""), ExprError::Operand { column: 1 });
        assert_eq!(error("1 +"), ExprError::Operand { column: 4 });
        assert_eq!(error("a b"), ExprError::Operator { column: 3 });
        assert_eq!(error("(a"), ExprError::Unclosed { column: 3 });
        assert_eq!(error("1.2.3"), ExprError::Operand { column: 1 });
        assert_eq!(error("a $ b"), ExprError::Operator { column: 3 });
        let deep = "(".repeat(100_000);
        assert!(matches!(error(&deep), ExprError::TooDeep { .. }));
    }

    fn any_expr() -> impl Strategy<Value = Expr> {
        let leaf = prop_oneof![
            (0_u32..1000).prop_map(|n| Expr::Number(f64::from(n) / 8.0)),
            "[a-z][a-z0-9_]{0,5}".prop_map(Expr::Name),
        ];
        leaf.prop_recursive(4, 32, 2, |inner| {
            let op = prop_oneof![
                Just(Operator::Add),
                Just(Operator::Sub),
                Just(Operator::Mul),
                Just(Operator::Div)
            ];
            (op, inner.clone(), inner).prop_map(|(op, l, r)| Expr::Binary(op, l.into(), r.into()))
        })
    }

    proptest! {
        #[test]
        fn printed_formula_is_parsed_to_itself(expr in any_expr()) {
            prop_assert_eq!(expr.to_string().parse::<Expr>(), Ok(expr));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = text.parse::<Expr>();
        }

        #[test]
        fn no_formula_like_text_panics(text in "[-+*/()0-9a-c. ]{0,60}") {
            if let Ok(expr) = text.parse::<Expr>() {
                prop_assert!(expr.eval(&|_| Some(1.0)).is_none_or(f64::is_finite));
            }
        }
    }
}
