//! Compares the names of imports and exports with the world of modules, and says every difference at once.

use super::{super::inert, Rejected, shape::Shape};

/// The interfaces that a module may import.
const IMPORTS: [&str; 4] = ["attempt", "log", "secrets", "types"];
/// The package of them, and the versions of it that mean the same.
const PACKAGE: &str = "sandkeep:task/";
const VERSIONS: &str = "0.1.";
/// The functions that a module must export.
pub(super) const EXPORTS: [&str; 2] = ["describe", "run"];

/// How many differences are listed.
const LISTED_MAX: usize = 20;
/// How much of a name is shown, in bytes.
const NAME_BYTES_MAX: usize = 160;

/// Refuses a component that asks for what is not there, or has not what is asked of it.
pub(super) fn check(shape: &Shape) -> Result<(), Rejected> {
    let unknown = shape.imports.iter().filter(|name| !is_offered(name));
    let imports = unknown.map(|name| format!("it imports `{}`, which is not offered{}", shown(name), hint(name)));
    let exports = EXPORTS.iter().filter_map(|wanted| match shape.exports.iter().find(|(name, _)| name == wanted) {
        Some((_, true)) => None,
        Some((_, false)) => Some(format!("its export `{wanted}` is not a function")),
        None => Some(format!("it does not export `{wanted}`")),
    });
    let mut differences: Vec<String> = imports.chain(exports).collect();
    if differences.is_empty() {
        return Ok(());
    }
    if differences.len() > LISTED_MAX {
        let more = differences.len() - LISTED_MAX;
        differences.truncate(LISTED_MAX);
        differences.push(format!("and {more} more"));
    }
    Err(Rejected::World { differences })
}

fn is_offered(name: &str) -> bool {
    let Some((interface, version)) = name.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('@')) else {
        return false;
    };
    IMPORTS.contains(&interface) && version.starts_with(VERSIONS)
}

fn hint(name: &str) -> &'static str {
    if name.starts_with(PACKAGE) {
        " in this version (`sandkeep:task@0.1.0` is)"
    } else if name.starts_with("wasi:") {
        " (no WASI here: build Rust for `wasm32-unknown-unknown`)"
    } else {
        ""
    }
}

fn shown(name: &str) -> String {
    inert::line(name.to_owned(), NAME_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_contract_is_offered() {
        for (name, offered) in [
            ("sandkeep:task/log@0.1.0", true),
            ("sandkeep:task/attempt@0.1.7", true),
            ("sandkeep:task/log@0.2.0", false),
            ("sandkeep:task/log", false),
            ("sandkeep:task/other@0.1.0", false),
            ("wasi:cli/environment@0.2.3", false),
            ("log", false),
        ] {
            assert_eq!(is_offered(name), offered, "{name}");
        }
    }

    #[test]
    fn every_difference_is_said_up_to_a_limit() {
        let mut shape = Shape::default();
        shape.imports = (0..30).map(|number| format!("wasi:x/y{number}")).collect();
        shape.exports = vec![("run".to_owned(), false)];
        let Err(Rejected::World { differences }) = check(&shape) else { panic!("it should be refused") };
        assert_eq!(differences.len(), LISTED_MAX + 1);
        assert_eq!(differences[LISTED_MAX], "and 12 more");
    }
}
