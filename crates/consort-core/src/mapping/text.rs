//! Mappings as text: `0.0.1.1/2.2.3.3`, the PUs of one program's threads after the other's.

use super::Mapping;
use crate::ids::PuId;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A text that is no mapping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no mapping; write the PUs of each program's threads, for example 0.0.1.1/2.2.3.3"
)]
pub struct MalformedMapping(String);

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pus) in self.programs.iter().enumerate() {
            let pus: Vec<String> = pus.iter().map(ToString::to_string).collect();
            let slash = if i > 0 { "/" } else { "" };
            write!(f, "{slash}{}", pus.join("."))?;
        }
        Ok(())
    }
}

impl FromStr for Mapping {
    type Err = MalformedMapping;

    fn from_str(text: &str) -> Result<Self, MalformedMapping> {
        let pu = |number: &str| number.parse().ok().map(PuId);
        let program = |pus: &str| pus.split('.').map(pu).collect::<Option<Vec<PuId>>>();
        let programs = text.split('/').map(program).collect::<Option<_>>();
        let programs = programs.ok_or_else(|| MalformedMapping(text.to_owned()))?;
        Ok(Self { programs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        for text in ["0.0.1.1/2.2.3.3", "7", "0/1/2.3"] {
            assert_eq!(text.parse::<Mapping>().unwrap().to_string(), text);
        }
        for text in ["", "0..1", "a", "0/", "-1"] {
            let error = text.parse::<Mapping>().unwrap_err();
            assert!(error.to_string().contains("0.0.1.1/2.2.3.3"), "{text}");
        }
    }
}
