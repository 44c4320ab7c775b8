//! Modules as their authors make them: a new project builds outside of this repository, passes its own tests, and runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// A place that stays from run to run: what a build fetches and compiles is kept, the project itself is made anew.
struct Project {
    folder: PathBuf,
    name: String,
}

impl Project {
    /// Makes a project with `module new`; `kept` is the folder in it that stays.
    fn new(language: &str, kept: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("authoring").join(language);
        let fresh = folder.with_extension("new");
        let _ = fs::remove_dir_all(&fresh);
        fs::create_dir_all(&folder).unwrap();
        let name = format!("greeter-{language}");
        let made = sandkeep(&["module", "new", &name, "--lang", language, "--dir", fresh.to_str().unwrap()]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap).filter(|entry| entry.file_name() != kept) {
            remove(&entry.path()).unwrap();
        }
        for entry in fs::read_dir(&fresh).unwrap().map(Result::unwrap) {
            fs::rename(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        Self { folder, name }
    }

    /// Runs the tests that the project came with.
    fn test(&self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).envs(variables.iter().copied());
        // Of the cargo that runs this test.
        for name in ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_TARGET_DIR", "RUSTC", "RUSTFLAGS"] {
            command.env_remove(name);
        }
        let ran = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    }

    fn build(&self) -> Output {
        sandkeep(&["module", "build", self.folder.to_str().unwrap(), "--output", "json"])
    }

    /// Builds it; looks at what is told, and runs the task.
    fn builds_and_runs(&self) {
        let built = self.build();
        assert!(built.status.success(), "{}", text(&built.stderr));
        let found: Value = serde_json::from_slice(&built.stdout).expect("standard output is the findings alone");
        let task = format!("{}.hello", self.name);
        assert_eq!(found["tasks"][0]["name"], *task, "{found}");
        let file = self.folder.join("dist").join(format!("{}.wasm", self.name));
        assert_eq!(found["file"].as_str(), file.to_str());
        assert_eq!(found["size_bytes"].as_u64(), Some(fs::metadata(&file).unwrap().len()));
        let file = file.to_str().unwrap();
        let ran = sandkeep(&["module", "run", file, &task, "--input", r#"{"name":"Ada"}"#, "--output", "jsonl"]);
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        assert_eq!(text(&ran.stdout).trim(), r#"{"text":"Hello, Ada!"}"#);
        assert!(text(&ran.stderr).contains("greeting Ada"), "the log is shown: {}", text(&ran.stderr));
        let refused = sandkeep(&["module", "run", file, &task, "--input", r#"{"name":" "}"#]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("NAME_MISSING"), "{}", text(&refused.stderr));
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn sandkeep(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandkeep"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn rust_project_builds_tests_and_runs() {
    let project = Project::new("rust", "target");
    project.test("cargo", &["test", "--quiet"], &[]);
    project.builds_and_runs();

    // What a mistake leads to, in the same project.
    let library = project.folder.join("src/lib.rs");
    let good = fs::read_to_string(&library).unwrap();
    fs::write(&library, "//! Nothing.\n").unwrap();
    let built = project.build();
    assert_eq!((built.status.code(), built.stdout.is_empty()), (Some(1), true));
    assert!(text(&built.stderr).contains("`tasks!`"), "{}", text(&built.stderr));
    fs::write(&library, good.replace("\"1.0.0\"", "\"one\"")).unwrap();
    let built = project.build();
    assert_eq!(built.status.code(), Some(3), "what a server refuses has its code: {}", text(&built.stderr));
    assert!(text(&built.stderr).contains("greeter-rust.hello"), "{}", text(&built.stderr));
    fs::write(&library, "fn nothing( {").unwrap();
    let built = project.build();
    assert_eq!(built.status.code(), Some(1));
    assert!(text(&built.stderr).contains("`cargo` ended with"), "{}", text(&built.stderr));
}

#[test]
fn javascript_project_builds_tests_and_runs() {
    let project = Project::new("js", "node_modules");
    project.test("npm", &["test"], &[]);
    project.builds_and_runs();
}

#[test]
fn python_project_builds_tests_and_runs() {
    let project = Project::new("python", "build");
    let variables = [("PYTHONPATH", "sdk/python"), ("PYTHONDONTWRITEBYTECODE", "1")];
    project.test("python3", &["-m", "unittest", "discover", "tests"], &variables);
    project.builds_and_runs();
}

#[test]
fn missing_tools_are_named_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (language, tool) in [("rust", "rustup.rs"), ("js", "nodejs.org"), ("python", "python3-venv")] {
        let project = folder.path().join(language);
        let path = project.to_str().unwrap();
        assert!(sandkeep(&["module", "new", "a", "--lang", language, "--dir", path]).status.success());
        let built = command(&["module", "build", path]).env("PATH", folder.path()).output().unwrap();
        assert_eq!(built.status.code(), Some(2), "{}", text(&built.stderr));
        assert!(text(&built.stderr).contains(tool), "{}", text(&built.stderr));
    }
}

#[test]
fn wrong_projects_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let refused = |arguments: &[&str], word: &str| {
        let ran = sandkeep(arguments);
        assert_eq!(ran.status.code(), Some(2), "{arguments:?} {}", text(&ran.stderr));
        assert!(ran.stdout.is_empty());
        assert!(text(&ran.stderr).contains(word), "{arguments:?} {}", text(&ran.stderr));
    };
    refused(&["module", "build", path], "module new");
    for name in ["../a", "A", "", "a_b", "a\u{1f}"] {
        refused(&["module", "new", name], "module");
    }
    refused(&["module", "new", "a", "--lang", "go"], "possible values");
    fs::write(folder.path().join("sandkeep.toml"), "[module]\nname = \"a\"\nlanguage = \"cobol\"\n").unwrap();
    refused(&["module", "new", "a", "--dir", path], "not empty");
    refused(&["module", "build", path], "cobol");
    fs::write(folder.path().join("sandkeep.toml"), "[module]\nname = \"a\"\nlanguage = \"rust\"\n").unwrap();
    refused(&["module", "build", path], "Cargo.toml");
    fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"a\"\n").unwrap();
    refused(&["module", "build", path], "cdylib");
}
