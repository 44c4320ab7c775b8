//! The files of a new project. `build.rs` lists them from `guests/templates`, the SDKs and the contract.

use super::manifest::Language;

include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// Returns the files of a project: path and content.
pub(super) fn files(language: Language, name: &str) -> impl Iterator<Item = (&'static str, String)> {
    let files = match language {
        Language::Rust => RUST,
        Language::Js => JAVASCRIPT,
        Language::Python => PYTHON,
    };
    let task = task_prefix(name);
    files.iter().map(move |(path, content)| {
        // The SDK is the same for everybody.
        let is_shared = path.starts_with("sdk/") || path.starts_with("wit/");
        let content = if is_shared {
            (*content).to_owned()
        } else {
            content.replace("{{name}}", name).replace("{{task}}", &task)
        };
        (*path, content)
    })
}

/// Returns what the names of a module's tasks begin with: they begin with a letter, names of modules need not.
fn task_prefix(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("m{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_project_has_what_its_build_reads() {
        for (language, needed) in [
            (Language::Rust, &["Cargo.toml", "src/lib.rs", "sdk/rust/Cargo.toml", "sdk/rust/src/lib.rs"][..]),
            (Language::Js, &["package.json", "package-lock.json", "src/module.js", "sdk/js/index.js"]),
            (Language::Python, &["requirements.txt", "app/module.py", "sdk/python/sandkeep/module.py"]),
        ] {
            let files: Vec<_> = files(language, "7-greeter").collect();
            for path in needed.iter().chain(&["sandkeep.toml", "README.md", ".gitignore", "wit/task.wit"]) {
                assert!(files.iter().any(|(found, _)| found == path), "{language:?} has no {path}");
            }
            for (path, content) in &files {
                assert!(
                    !content.contains("{{name") && !content.contains("{{task"),
                    "{language:?} {path} is not filled in"
                );
                assert!(!path.contains("test") || !path.starts_with("sdk/js"), "{path} is nobody's test");
            }
        }
    }

    #[test]
    fn tasks_begin_with_a_letter() {
        assert_eq!(task_prefix("7-a"), "m7-a");
        assert_eq!(task_prefix("a-7"), "a-7");
    }
}
