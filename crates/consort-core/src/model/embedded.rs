//! Models that come with the program.

/// Name and text of every embedded model.
const EMBEDDED: &[(&str, &str)] = &[(
    "power8-paper",
    include_str!("../../models/power8-paper.toml"),
)];

/// The text of an embedded model, for [`Model::parse`](super::Model::parse).
pub fn embedded(name: &str) -> Option<&'static str> {
    let found = EMBEDDED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The names of the embedded models.
pub fn embedded_names() -> impl Iterator<Item = &'static str> + Clone {
    EMBEDDED.iter().map(|(name, _)| *name)
}
