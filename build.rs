//! Looks for the built-in component, which is compiled from `guests/builtin` before the server is.

fn main() {
    let path = "guests/dist/builtin.wasm";
    println!("cargo::rerun-if-changed={path}");
    println!("cargo::rerun-if-changed=wit");
    assert!(
        std::path::Path::new(path).is_file(),
        "\n\n`{path}` is missing: run `scripts/setup`, which compiles it (and finds or installs what that takes)\n"
    );
}
