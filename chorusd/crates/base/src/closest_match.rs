//! "Did you mean" for mistyped names.

/// Returns the name of `known` that is most similar to `given`, if any is similar enough to suggest it.
#[must_use]
pub fn closest_match<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(given, name), name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
