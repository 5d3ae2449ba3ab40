//! The studies, one per file.
//!
//! To add one: a file here that implements [`crate::Study`], and a line in
//! [`REGISTRY`].

mod a1;
mod a10;
mod a11;
mod a12;
mod a13;
mod a14;
mod a2;
mod a3;
mod a4;
mod a5;
mod a6;
mod a7;
mod a8;
mod a9;
mod alone;
pub(crate) mod asymmetry;
mod coscheduling;
mod h1;
mod h2;
mod h3;
mod h4;
mod h5;
mod h6;
mod load;
mod m1;
mod m10;
mod m11;
mod m12;
mod m13;
mod m14;
mod m15;
mod m2;
mod m3;
mod m4;
mod m5;
mod m6;
mod m7;
mod m8;
mod m9;
mod mapping;
mod occupancy;
mod optimality;
mod s1;
mod s2;
mod s3;
mod s4;
mod s5;
mod s6;
mod s7;
mod s8;
mod sensitivity;
mod symbiosis;
mod umbrella;
mod w1;
mod w2;
mod w3;
mod w4;
mod w5;
mod w6;
mod x1;
mod x3;
mod x5;

pub use asymmetry::ideal::IdealRoundRobin;

use crate::registry::Registry;

/// Every study, in the order of the list.
pub const REGISTRY: Registry<'static> = Registry::new(&[
    &w1::W1,
    &w2::W2,
    &w3::W3,
    &w4::W4,
    &w5::W5,
    &w6::W6,
    &s1::S1,
    &s2::S2,
    &s3::S3,
    &s4::S4,
    &s5::S5,
    &s6::S6,
    &s7::S7,
    &s8::S8,
    &a1::A1,
    &a2::A2,
    &a3::A3,
    &a4::A4,
    &a5::A5,
    &a6::A6,
    &a7::A7,
    &a8::A8,
    &a9::A9,
    &a10::A10,
    &a11::A11,
    &a12::A12,
    &a13::A13,
    &a14::A14,
    &h1::H1,
    &h2::H2,
    &h3::H3,
    &h4::H4,
    &h5::H5,
    &h6::H6,
    &m1::M1,
    &m2::M2,
    &m3::M3,
    &m4::M4,
    &m5::M5,
    &m6::M6,
    &m7::M7,
    &m8::M8,
    &m9::M9,
    &m10::M10,
    &m11::M11,
    &m12::M12,
    &m13::M13,
    &m14::M14,
    &m15::M15,
    &x1::X1,
    &x3::X3,
    &x5::X5,
]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What must hold for ids: they are typed by people and become file names.
    fn are_usable(registry: Registry<'_>) -> bool {
        let ids: Vec<&str> = registry.list().map(|info| info.id).collect();
        let lower: BTreeSet<String> = ids.iter().map(|id| id.to_lowercase()).collect();
        let plain = |id: &&str| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        lower.len() == ids.len() && ids.iter().all(|id| plain(id) && *id != "all")
    }

    #[test]
    fn ids_are_unique_and_plain() {
        use crate::testing::Sums;
        assert!(are_usable(REGISTRY));
        let (one, same, all) = (Sums::named("A1"), Sums::named("a1"), Sums::named("all"));
        assert!(!are_usable(Registry::new(&[&one, &same])));
        assert!(!are_usable(Registry::new(&[&all])));
    }
}
