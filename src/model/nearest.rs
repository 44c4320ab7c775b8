//! Which known name somebody may have meant.

/// Names closer than this, on a scale from 0 to 1, are worth a guess.
const NEAR: f64 = 0.6;

/// Returns the known name nearest to `name`, where one is near.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = |candidate: &str| strsim::normalized_damerau_levenshtein(name, candidate);
    let nearest = known.iter().max_by(|one, other| near(one).total_cmp(&near(other)));
    nearest.copied().filter(|nearest| near(nearest) >= NEAR)
}
