//! Looks for the built-in component, which is compiled from `guests/builtin` before the server is, and lists the files
//! that `sandkeep module new` writes.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// For each language: which folders of this repository become which folders of a new project. Outside of this
/// repository there is no SDK to depend on, so that a project carries its own.
const TEMPLATES: &[(&str, &[(&str, &str)])] = &[
    ("RUST", &[("guests/templates/rust", ""), ("guests/sdk", "sdk/rust"), ("wit", "wit")]),
    ("JAVASCRIPT", &[("guests/templates/js", ""), ("guests/sdk-js", "sdk/js"), ("wit", "wit")]),
    ("PYTHON", &[("guests/templates/python", ""), ("guests/sdk-python", "sdk/python"), ("wit", "wit")]),
];

fn main() -> io::Result<()> {
    let path = "guests/dist/builtin.wasm";
    println!("cargo::rerun-if-changed={path}");
    println!("cargo::rerun-if-changed=build.rs");
    assert!(
        Path::new(path).is_file(),
        "\n\n`{path}` is missing: run `scripts/setup`, which compiles it (and finds or installs what that takes)\n"
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where"));
    fs::write(out.join("templates.rs"), templates()?)
}

/// Returns a static for each language: the paths in a new project with their contents.
fn templates() -> io::Result<String> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where"));
    let mut code = String::new();
    for (language, folders) in TEMPLATES {
        let mut files = Vec::new();
        for (from, to) in *folders {
            println!("cargo::rerun-if-changed={from}");
            gather(&root.join(from), Path::new(to), from.starts_with("guests/sdk-"), &mut files)?;
        }
        files.sort();
        // Writing to a string cannot fail.
        let _ = writeln!(code, "static {language}: &[(&str, &str)] = &[");
        for (to, from) in files {
            let _ = writeln!(code, "    ({to:?}, include_str!({from:?})),");
        }
        code.push_str("];\n");
    }
    Ok(code)
}

/// Lists the files below `from` as files below `to`. The tests of an SDK stay here, as does what is built.
fn gather(from: &Path, to: &Path, is_sdk: bool, files: &mut Vec<(PathBuf, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            let is_built = matches!(&*name, "target" | "dist" | "node_modules" | "__pycache__");
            let is_test = is_sdk && name.starts_with("test");
            if !is_built && !is_test {
                gather(&path, &to.join(name), is_sdk, files)?;
            }
        } else {
            // Under its real name it would be obeyed here.
            let name = name.strip_prefix("dot-").map_or(name.clone(), |rest| format!(".{rest}"));
            files.push((to.join(name), path));
        }
    }
    Ok(())
}
