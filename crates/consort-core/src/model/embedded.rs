//! Models that come with the program.

/// Name and text of every embedded model.
///
/// `power8-simulated` is what `consort train --machine power8 --ways 2,4 --out
/// power8-simulated.toml` writes; it is to be made anew when the simulation changes.
const EMBEDDED: &[(&str, &str)] = &[
    (
        "power8-paper",
        include_str!("../../models/power8-paper.toml"),
    ),
    (
        "power8-simulated",
        include_str!("../../models/power8-simulated.toml"),
    ),
];

/// The text of an embedded model, for [`InterferenceModel::parse`](super::InterferenceModel::parse).
pub fn embedded_model(name: &str) -> Option<&'static str> {
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The names of the embedded models.
pub fn embedded_model_names() -> impl Iterator<Item = &'static str> + Clone {
    EMBEDDED.iter().map(|(name, _)| *name)
}
