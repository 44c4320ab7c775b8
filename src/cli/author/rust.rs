//! A build in Rust: cargo for `wasm32-unknown-unknown`, whose standard library is installed or built along.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use super::{super::Error, tool};

const TRIPLE: &str = "wasm32-unknown-unknown";
/// The oldest compiler that reads the SDK: 1.95.
const OLDEST: (u32, u32) = (1, 95);
/// Debian's compiler, which comes with the sources of the library.
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";
/// Names a compiler to use instead of looking for one.
const VARIABLE: &str = "SANDKEEP_GUEST_RUSTC";
/// What links WebAssembly where the compiler brings no linker.
const LINKERS: &[&str] = &["rust-lld", "wasm-ld", "wasm-ld-20", "wasm-ld-19", "wasm-ld-18", "wasm-ld-17", "wasm-ld-16"];

struct Toolchain {
    rustc: PathBuf,
    builds_std: bool,
}

/// Builds the project; returns the core module's path.
pub(super) fn build(folder: &Path) -> Result<PathBuf, Error> {
    if tool::first_line("cargo", &["--version"]).is_none() {
        return Err(tool::missing("`cargo`", "install Rust 1.95 or newer, see https://rustup.rs"));
    }
    let toolchain = find_toolchain()?;
    let target = folder.join("target");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--lib", "--package"]).arg(package(folder)?).args(["--target", TRIPLE]);
    cargo.env("RUSTC", &toolchain.rustc).env("CARGO_TARGET_DIR", absolute(&target)?);
    // Paths of this machine in panic messages would make the bytes, and so the digest, differ from machine to machine.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", remapped(folder)?);
    if toolchain.builds_std {
        cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", find_linker(&toolchain)?);
    }
    tool::run(folder, &mut cargo)?;
    Ok(target.join(TRIPLE).join("release/module.wasm"))
}

/// Returns the name of the project's package, whose library must be called `module`.
fn package(folder: &Path) -> Result<String, Error> {
    let path = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Read { path: path.clone(), source })?;
    let wrong = |problem: &str| Error::Usage(format!("`{}`: {problem}", path.display()));
    let document: toml::Table = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end()))?;
    let of = |section: &str, key: &str| document.get(section)?.get(key)?.as_str().map(str::to_owned);
    let kinds = document.get("lib").and_then(|lib| lib.get("crate-type")).and_then(|kinds| kinds.as_array());
    let is_cdylib = kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind.as_str() == Some("cdylib")));
    if of("lib", "name").as_deref() != Some("module") || !is_cdylib {
        return Err(wrong("the library of a module has `name = \"module\"` and `crate-type = [\"cdylib\", \"rlib\"]`"));
    }
    of("package", "name").ok_or_else(|| wrong("there is no name of a package"))
}

fn find_toolchain() -> Result<Toolchain, Error> {
    let candidates = match env::var_os(VARIABLE) {
        Some(named) => vec![PathBuf::from(named)],
        None => vec![PathBuf::from("rustc"), PathBuf::from(SYSTEM_RUSTC)],
    };
    let usable: Vec<_> = candidates.into_iter().filter(|rustc| is_usable(rustc)).collect();
    for (builds_std, has) in [(false, has_target as fn(&Path) -> bool), (true, has_sources)] {
        if let Some(rustc) = usable.iter().find(|rustc| sysroot(rustc).is_some_and(|sysroot| has(&sysroot))) {
            return Ok(Toolchain { rustc: rustc.clone(), builds_std });
        }
    }
    Err(tool::missing(
        &format!("a Rust toolchain for `{TRIPLE}`"),
        &format!(
            "`rustup target add {TRIPLE}`, or on Debian `apt-get install --no-install-recommends rustc-web rust-web-src`; \
             `{VARIABLE}` names another compiler, which must be Rust 1.95 or newer"
        ),
    ))
}

fn is_usable(rustc: &Path) -> bool {
    tool::first_line(rustc, &["--version"]).and_then(|line| tool::version(&line)).is_some_and(|found| found >= OLDEST)
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    tool::first_line(rustc, &["--print", "sysroot"]).map(PathBuf::from)
}

fn has_target(sysroot: &Path) -> bool {
    let entries = std::fs::read_dir(sysroot.join("lib/rustlib").join(TRIPLE).join("lib"));
    entries.is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("libstd-")))
    })
}

fn has_sources(sysroot: &Path) -> bool {
    let library = sysroot.join("lib/rustlib/src/rust/library");
    library.join("Cargo.lock").is_file() && library.join("std/Cargo.toml").is_file()
}

/// Returns what links: rustup's compilers bring it along, Debian's do not.
fn find_linker(toolchain: &Toolchain) -> Result<PathBuf, Error> {
    for rustc in [toolchain.rustc.as_path(), Path::new("rustc")] {
        let host =
            Command::new(rustc).arg("-vV").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
        let host = host.and_then(|text| text.lines().find_map(|line| line.strip_prefix("host: ").map(str::to_owned)));
        let linker =
            sysroot(rustc).zip(host).map(|(root, host)| root.join("lib/rustlib").join(host).join("bin/rust-lld"));
        if let Some(linker) = linker.filter(|linker| linker.is_file()) {
            return Ok(linker);
        }
    }
    let found = LINKERS.iter().find(|linker| tool::first_line(linker, &["--version"]).is_some());
    found.map(PathBuf::from).ok_or_else(|| {
        tool::missing(&format!("a linker for `{TRIPLE}`"), "on Debian `apt-get install --no-install-recommends lld`")
    })
}

fn remapped(folder: &Path) -> Result<String, Error> {
    let mut flags = vec![format!("--remap-path-prefix={}=.", absolute(folder)?.display())];
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    flags.extend(home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())));
    Ok(flags.join("\u{1f}"))
}

fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}
