//! `module build`: the language's build, a component of what it leaves, and what a server would find in it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;

use super::{
    super::{
        Error, input,
        module::MODULE_BYTES_MAX,
        module_local,
        output::{Output, say},
    },
    component, javascript,
    manifest::{self, Language, Manifest},
    python, rust,
};

/// Builds the module of a folder and examines it as an upload would
///
/// `sandkeep.toml` in the folder names the module and its language. The component is left at `dist/NAME.wasm`, and its
/// size, imports and tasks are printed; what the language's tools say goes to standard error.
#[derive(Debug, Args)]
#[command(after_help = "Example: sandkeep module build greeter")]
pub(in super::super) struct Build {
    /// The folder of the project
    #[arg(default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub(in super::super) async fn build(args: Build) -> Result<(), Error> {
    let folder = args.dir;
    let Manifest { name, language } = manifest::read(&folder)?;
    let file = folder.join("dist").join(format!("{name}.wasm"));
    say(&format!("building `{name}`"));
    let bytes = tokio::task::block_in_place(|| make(&folder, name.as_str(), language))?;
    write_whole(&file, &bytes)?;
    module_local::show(bytes.into(), Some(&file), args.output).await
}

/// Runs the build and returns the component.
fn make(folder: &Path, name: &str, language: Language) -> Result<Vec<u8>, Error> {
    let dist = folder.join("dist");
    fs::create_dir_all(&dist).map_err(|error| failed_at(&dist, &error))?;
    let built = match language {
        Language::Rust => rust::build(folder)?,
        Language::Js => javascript::build(folder, name)?,
        Language::Python => python::build(folder, name)?,
    };
    let bytes = input::file(&built, MODULE_BYTES_MAX)?;
    component::encode(bytes).map_err(Error::Failed)
}

/// Writes beside the place and renames, so that whoever watches it never reads half a component.
fn write_whole(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let part = file.with_extension("wasm.part");
    fs::write(&part, bytes).and_then(|()| fs::rename(&part, file)).map_err(|error| failed_at(file, &error))
}

fn failed_at(path: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!("cannot write `{}`: {error}", path.display()))
}
