//! Recursive descent over the text of a formula.

use super::expr::{Expr, ExprError, MAX_DEPTH, Operator};
use std::str::FromStr;

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
        let sign = |byte| match byte {
            b'+' => Some(Operator::Add),
            b'-' => Some(Operator::Sub),
            _ => None,
        };
        self.chain(Self::product, sign)
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let sign = |byte| match byte {
            b'*' => Some(Operator::Mul),
            b'/' => Some(Operator::Div),
            _ => None,
        };
        self.chain(Self::operand, sign)
    }

    /// Operands joined by operators of one precedence, grouped from the left.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Result<Expr, ExprError>,
        operator: impl Fn(u8) -> Option<Operator>,
    ) -> Result<Expr, ExprError> {
        let mut left = operand(self)?;
        while let Some(op) = self.peek().and_then(&operator) {
            self.at += 1;
            left = Expr::Binary(op, left.into(), operand(self)?.into());
        }
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expr, ExprError> {
        match self.peek() {
            Some(b'(') => self.parenthesis(),
            Some(b'0'..=b'9') => self.number(),
            Some(b'a'..=b'z') => {
                let is_name = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_');
                Ok(Expr::Name(self.take(is_name)))
            }
            _ => Err(ExprError::Operand {
                column: self.at + 1,
            }),
        }
    }

    fn parenthesis(&mut self) -> Result<Expr, ExprError> {
        let column = self.at + 1;
        if self.depth == MAX_DEPTH {
            return Err(ExprError::TooDeep { column });
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

    fn number(&mut self) -> Result<Expr, ExprError> {
        let column = self.at + 1;
        let digits = self.take(|b| b.is_ascii_digit() || b == b'.');
        let number = digits.parse().map_err(|_| ExprError::Operand { column })?;
        Ok(Expr::Number(number))
    }

    /// Takes ASCII bytes while they fit.
    fn take(&mut self, fits: impl Fn(u8) -> bool) -> String {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|&&b| fits(b)).count();
        self.at += length;
        rest[..length].iter().copied().map(char::from).collect()
    }
}
