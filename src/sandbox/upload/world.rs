//! Compares the names of imports and exports with the world of modules, and says every difference at once.

use super::{super::inert, Rejected, shape::Shape};

/// The interfaces that a module may import.
const IMPORTS: [&str; 4] = ["attempt", "log", "secrets", "types"];
/// The package of them, and the versions of it that mean the same.
const PACKAGE: &str = "sandkeep:task/";
const VERSIONS: &str = "0.1.";
/// What of WASI it may import. Files and sockets are for language runtimes to link with: none can be opened.
const WASI: &[(&str, &[&str])] = &[
    ("wasi:io/", &["error", "poll", "streams"]),
    ("wasi:clocks/", &["monotonic-clock", "wall-clock"]),
    ("wasi:random/", &["insecure", "insecure-seed", "random"]),
    (
        "wasi:cli/",
        &[
            "environment",
            "exit",
            "stderr",
            "stdin",
            "stdout",
            "terminal-input",
            "terminal-output",
            "terminal-stderr",
            "terminal-stdin",
            "terminal-stdout",
        ],
    ),
    ("wasi:http/", &["outgoing-handler", "types"]),
    ("wasi:config/", &["store"]),
    ("wasi:filesystem/", &["preopens", "types"]),
    (
        "wasi:sockets/",
        &["instance-network", "ip-name-lookup", "network", "tcp", "tcp-create-socket", "udp", "udp-create-socket"],
    ),
];
/// The versions of WASI that are offered. What a later one of them adds is found missing when the module is linked.
const WASI_VERSIONS: &str = "0.2.";
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
    let offered = [(PACKAGE, &IMPORTS[..], VERSIONS)];
    let wasi = WASI.iter().map(|(package, interfaces)| (*package, *interfaces, WASI_VERSIONS));
    offered.into_iter().chain(wasi).any(|(package, interfaces, versions)| {
        let named = name.strip_prefix(package).and_then(|rest| rest.split_once('@'));
        named.is_some_and(|(interface, version)| interfaces.contains(&interface) && version.starts_with(versions))
    })
}

/// Whether an interface of WASI is offered in another version than `name` asks for.
fn is_offered_otherwise(name: &str) -> bool {
    let name = name.split('@').next().unwrap_or(name);
    WASI.iter().any(|(package, interfaces)| name.strip_prefix(package).is_some_and(|rest| interfaces.contains(&rest)))
}

fn hint(name: &str) -> &'static str {
    if name.starts_with(PACKAGE) {
        " in this version (`sandkeep:task@0.1.0` is)"
    } else if name.starts_with("wasi:http/incoming-handler") {
        " (a module sends requests and is sent none)"
    } else if name.starts_with("wasi:keyvalue/") {
        " yet (keep what must outlive an attempt in the workflow)"
    } else if is_offered_otherwise(name) {
        " in this version (WASI 0.2 is: build for `wasm32-wasip2`)"
    } else if name.starts_with("wasi:") {
        " (of WASI 0.2, these are: io, clocks, random, cli, http/outgoing-handler and types, config/store; filesystem \
         and sockets without anything to open)"
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
            ("wasi:cli/environment@0.2.3", true),
            ("wasi:http/outgoing-handler@0.2.12", true),
            ("wasi:config/store@0.2.0-rc.1", true),
            ("wasi:http/incoming-handler@0.2.0", false),
            ("wasi:keyvalue/store@0.2.0-draft", false),
            ("wasi:cli/environment@0.3.0", false),
            ("wasi:cli/environment", false),
            ("wasi:clocks/timezone@0.2.0", false),
            ("log", false),
        ] {
            assert_eq!(is_offered(name), offered, "{name}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (name, remedy) in [
            ("wasi:http/incoming-handler@0.2.0", "is sent none"),
            ("wasi:keyvalue/store@0.2.0-draft", "not offered yet"),
            ("wasi:cli/stdout@0.3.0", "wasm32-wasip2"),
            ("wasi:nn/tensor@0.2.0", "config/store"),
            ("sandkeep:task/log@0.2.0", "`sandkeep:task@0.1.0` is"),
        ] {
            let mut shape = Shape::default();
            shape.imports = vec![name.to_owned()];
            let Err(Rejected::World { differences }) = check(&shape) else { panic!("C073 {name}") };
            assert!(differences[0].contains(name) && differences[0].contains(remedy), "C073 {}", differences[0]);
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
