//! What the documents show is what the server takes: every workflow in them and below `examples/` parses.

use std::path::{Path, PathBuf};

use sandkeep::workflow;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below `folder` with this ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || matches!(name, "target" | "dist" | "node_modules") {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found
}

#[track_caller]
fn check(what: &str, text: &str) {
    if let Err(problems) = workflow::parse(text.as_bytes()) {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{what}: {problems:#?}");
    }
}

#[test]
fn workflows_in_documents_are_good() {
    let mut checked = 0;
    for path in files(root(), ".md") {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, block) in text.split("```json workflow\n").enumerate().skip(1) {
            let block = block.split("\n```").next().unwrap();
            check(&format!("{} block {at}", path.display()), block);
            checked += 1;
        }
    }
    assert!(checked >= 2, "the documents show workflows");
}

#[test]
fn workflows_in_examples_are_good() {
    let mut checked = 0;
    for path in files(&root().join("examples"), ".json") {
        let text = std::fs::read_to_string(&path).unwrap();
        if text.contains("\"ir_version\"") {
            check(&path.display().to_string(), &text);
            checked += 1;
        }
    }
    assert!(checked >= 1, "the examples have workflows");
}
