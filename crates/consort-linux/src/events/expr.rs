//! The formulas of event files: `+ - * /`, parentheses, numbers and event names.
//!
//! # Usage
//!
//! Parse once with `str::parse`, evaluate per interval with [`Expr::eval`].
//!
//! # Pitfalls
//!
//! Division by zero, which an idle interval gives, yields no value rather than
//! an infinity.

use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;

/// A parsed formula.
#[derive(Clone, Debug, PartialEq)]
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

impl Operator {
    fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Sub => '-',
            Self::Mul => '*',
            Self::Div => '/',
        }
    }

    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Sub => left - right,
            Self::Mul => left * right,
            Self::Div => left / right,
        }
    }
}

/// Fault of a formula's text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExprError {
    /// Anything but a number, a name or `(` stands where an operand belongs.
    #[error("expected a number, an event name or ( at column {column}")]
    Operand {
        /// Column, from 1.
        column: usize,
    },
    /// The formula goes on after its end, or an operator is missing.
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
pub(crate) const MAX_DEPTH: usize = 32;

impl Expr {
    /// The formula's value; `None` when a name has none or the result is not
    /// finite.
    pub fn eval(&self, value_of: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let value = match self {
            Self::Number(n) => *n,
            Self::Name(name) => value_of(name)?,
            Self::Binary(op, left, right) => op.apply(left.eval(value_of)?, right.eval(value_of)?),
        };
        value.is_finite().then_some(value)
    }

    /// Names of the events in the formula.
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
            Self::Binary(op, left, right) => write!(f, "({left} {} {right})", op.symbol()),
        }
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
        fn what_is_printed_is_read_again(expr in any_expr()) {
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
