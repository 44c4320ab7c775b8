//! Tells what a file is by its first bytes, so that the wrong file is refused by name.

use super::Rejected;

/// What a component begins with: the magic number, then version 13 of layer 1.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const MAGIC: &[u8] = b"\0asm";
const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";

const UNPACK: &str = "unpack it and upload the component inside";
const NATIVE: &str = "machine code is never accepted; upload the component that it was made from";

/// What other files begin with.
const OTHERS: &[(&[u8], &str, &str)] = &[
    (CORE_MODULE, "a core module", "make a component of it (`wasm-tools component new`)"),
    (b"\x7fELF", "a native or precompiled artefact (ELF)", NATIVE),
    (b"MZ", "a native artefact (PE)", NATIVE),
    (b"\xfe\xed\xfa\xce", "a native artefact (Mach-O)", NATIVE),
    (b"\xfe\xed\xfa\xcf", "a native artefact (Mach-O)", NATIVE),
    (b"\xcf\xfa\xed\xfe", "a native artefact (Mach-O)", NATIVE),
    (b"\xce\xfa\xed\xfe", "a native artefact (Mach-O)", NATIVE),
    (b"\xca\xfe\xba\xbe", "a native artefact (Mach-O) or Java class", NATIVE),
    (b"!<arch>\n", "a library archive", NATIVE),
    (b"\x1f\x8b", "a gzip archive", UNPACK),
    (b"PK\x03\x04", "a zip archive", UNPACK),
    (b"PK\x05\x06", "a zip archive", UNPACK),
    (b"\x28\xb5\x2f\xfd", "a zstd archive", UNPACK),
    (b"\xfd7zXZ\0", "an xz archive", UNPACK),
    (b"BZh", "a bzip2 archive", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
];

/// Where a tar archive says that it is one.
const TAR_AT: usize = 257;
/// How much of a file is looked at to tell a text.
const TEXT_BYTES: usize = 1024;

/// Refuses what does not begin like a component.
pub(super) fn check(bytes: &[u8]) -> Result<(), Rejected> {
    if bytes.starts_with(COMPONENT) {
        return Ok(());
    }
    if COMPONENT.starts_with(bytes) || CORE_MODULE.starts_with(bytes) && bytes.len() < CORE_MODULE.len() {
        return Err(Rejected::Truncated { size_bytes: bytes.len() });
    }
    let (what, remedy) = name(bytes);
    Err(Rejected::NotComponent { what, remedy })
}

fn name(bytes: &[u8]) -> (&'static str, &'static str) {
    if let Some((_, what, remedy)) = OTHERS.iter().find(|(start, _, _)| bytes.starts_with(start)) {
        return (what, remedy);
    }
    if bytes.starts_with(MAGIC) {
        return ("WebAssembly of another version", "build it with a toolchain of WASI 0.2 or later");
    }
    if bytes.get(TAR_AT..).is_some_and(|rest| rest.starts_with(b"ustar")) {
        return ("a tar archive", UNPACK);
    }
    match text(bytes) {
        Some(text) if text.trim_start().starts_with('(') => {
            ("WebAssembly as text", "turn it into a binary (`wasm-tools parse`)")
        }
        Some(_) => ("a text file", "upload the binary that the build made, usually `NAME.wasm`"),
        None => ("an unknown kind of file", "upload the binary that the build made, usually `NAME.wasm`"),
    }
}

/// Returns the beginning of a file that reads as text.
fn text(bytes: &[u8]) -> Option<&str> {
    let start = &bytes[..bytes.len().min(TEXT_BYTES)];
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The cut may be in the middle of a character.
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&start[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    (!text.contains('\0')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_files_are_refused_by_name() {
        let tar = [vec![b'a'; TAR_AT], b"ustar".to_vec()].concat();
        let cut_character = [vec![b'a'; TEXT_BYTES - 1], "é".as_bytes().to_vec()].concat();
        for (bytes, name) in [
            (&b"\0asm\x01\0\0\0\x01\x04"[..], "a core module"),
            (b"\x7fELF\x02\x01", "a native or precompiled artefact (ELF)"),
            (b"MZ\x90\0", "a native artefact (PE)"),
            (b"\x1f\x8b\x08\0", "a gzip archive"),
            (b"PK\x03\x04\x14", "a zip archive"),
            (b"\n(component)", "WebAssembly as text"),
            (b"fn main() {}", "a text file"),
            (b"\0asm\x0e\0\x01\0", "WebAssembly of another version"),
            (b"\x01\x02\0", "an unknown kind of file"),
            (b"\xff\xfe", "an unknown kind of file"),
            (&tar, "a tar archive"),
            (&cut_character, "a text file"),
        ] {
            let refused = check(bytes).unwrap_err();
            let Rejected::NotComponent { what, remedy } = refused else { panic!("{refused}") };
            assert_eq!(what, name);
            assert!(!remedy.is_empty());
        }
    }

    #[test]
    fn beginnings_of_a_component_are_cut_off_files() {
        for length in 1..COMPONENT.len() {
            let refused = check(&COMPONENT[..length]).unwrap_err();
            assert_eq!(refused, Rejected::Truncated { size_bytes: length });
        }
        assert_eq!(check(COMPONENT), Ok(()));
    }
}
