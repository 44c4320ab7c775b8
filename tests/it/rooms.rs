//! The map of rooms in ARCHITECTURE.md, held against the sources: arrows point inward, the inner rooms are pure, and
//! one place alone is unsafe.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Which rooms each room may name, besides itself.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("workflow", &["model"]),
    ("engine", &["workflow", "model"]),
    ("store", &["model"]),
    ("sandbox", &["model"]),
    ("tenancy", &["model", "store"]),
    ("clock", &["model"]),
    ("telemetry", &["config"]),
    ("config", &["app", "sandbox", "model"]),
    ("app", &["engine", "workflow", "store", "sandbox", "tenancy", "model", "clock"]),
    ("http", &["app", "model"]),
    ("grpc", &["app", "model"]),
    ("cli", &["app", "workflow", "sandbox", "model", "clock", "config", "telemetry", "server"]),
    ("server", &["app", "store", "sandbox", "http", "grpc", "model", "clock", "config"]),
];

/// Rooms whose answers depend on their arguments alone.
const PURE: &[&str] = &["model", "workflow", "engine"];

/// What a pure room does not name: time, chance, files, networks, and what belongs to edges. (Schemas are checked on a
/// thread for the sake of its stack; what they answer does not depend on it.)
const IMPURE: &[&str] = &[
    "tokio::",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "SystemTime",
    "Instant::now",
    "Timestamp::now",
    "Zoned::now",
    "getrandom",
    " rand::",
    "Uuid::",
    "rusqlite",
    "wasmtime",
    "axum",
    "hyper::",
    "tonic",
    "reqwest",
    "async fn",
];

/// A source file without comments and without its tests.
struct Source {
    room: String,
    path: PathBuf,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    gather(&root, &mut found);
    assert!(found.len() > 100, "the sources are read");
    let sources = found.into_iter().map(|path| {
        let below = path.strip_prefix(&root).unwrap();
        let room = below.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        Source { room, code: bare(&text), path: below.to_owned() }
    });
    sources.filter(|source| !matches!(source.room.as_str(), "lib" | "main")).collect()
}

/// Finds the files of a folder, less those that only tests compile.
fn gather(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        match path.is_dir() {
            _ if matches!(name, "tests" | "suite") => {}
            true => gather(&path, found),
            false => found.push(path),
        }
    }
}

/// Cuts comments and what begins with `#[cfg(test)]` at the end of a file.
fn bare(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(|line| match line.trim_start() {
        line if line.starts_with("//") => "",
        _ => line.split(" // ").next().unwrap(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The rooms that a source names by `crate::ROOM` or `crate::{ROOM…, ROOM…}`.
fn named(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => rooms.extend([word(after)]),
            Some(tree) => {
                let (mut depth, mut first) = (1, true);
                for (at, character) in tree.char_indices() {
                    match character {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 1 => first = true,
                        letter if depth == 1 && first && letter.is_ascii_lowercase() => {
                            rooms.insert(word(&tree[at..]));
                            first = false;
                        }
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
            }
        }
    }
    rooms
}

fn word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
}

#[test]
fn arrows_point_inward() {
    let mut outward = Vec::new();
    for source in sources() {
        let arrows = ARROWS.iter().find(|(room, _)| *room == source.room);
        let (_, allowed) = arrows.unwrap_or_else(|| panic!("the room `{}` is not on the map", source.room));
        for room in named(&source.code) {
            let known = ARROWS.iter().any(|(name, _)| *name == room);
            if known && room != source.room && !allowed.contains(&room.as_str()) {
                outward.push(format!("{} names `{room}`", source.path.display()));
            }
        }
    }
    assert!(outward.is_empty(), "{outward:#?}");
}

#[test]
fn the_inner_rooms_are_pure() {
    let sources = sources().into_iter().filter(|source| PURE.contains(&source.room.as_str()));
    let impure: Vec<_> = sources
        .flat_map(|source| {
            let named = IMPURE.iter().filter(|word| source.code.contains(**word));
            named.map(|word| format!("{} names `{word}`", source.path.display())).collect::<Vec<_>>()
        })
        .collect();
    assert!(impure.is_empty(), "{impure:#?}");
}

/// Where machine code is loaded that this server compiled.
const UNSAFE: &str = "sandbox/compile/artefact.rs";

#[test]
fn one_place_alone_is_unsafe() {
    let counts =
        [("expect(unsafe_code", 1), ("allow(unsafe_code", 0), ("unsafe {", 1), ("unsafe fn", 0), ("unsafe impl", 0)];
    for source in sources() {
        for (allowance, once) in counts {
            let allowed = if source.path.ends_with(UNSAFE) { once } else { 0 };
            let found = source.code.matches(allowance).count();
            assert_eq!(found, allowed, "{}: `{allowance}`", source.path.display());
        }
    }
    let library = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    assert!(library.contains("#![deny(unsafe_code)]"));
}

#[test]
fn trees_of_uses_are_read() {
    let code = "use crate::{\n    app::{App, store::X},\n    model::Payload,\n};\nlet x = crate::engine::decide;";
    assert_eq!(named(code), ["app", "engine", "model"].map(str::to_owned).into());
    assert_eq!(bare("a\n  // crate::app\nb // crate::app\n#[cfg(test)]\nmod tests {\nc"), "a\n\nb");
}
