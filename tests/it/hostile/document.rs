//! The table as a whole: every guest is valid, and the document has a row for every case.

use std::collections::BTreeSet;

use super::{
    Case,
    case::{Act, Made},
    cpu, egress, handles, lifecycle, logs, memory, transport, upload, values, wasi,
};

/// Every case by its kind.
fn all() -> Vec<(&'static str, Vec<Case>)> {
    vec![
        ("cpu", cpu::cases()),
        ("memory", memory::cases()),
        ("memory", memory::own_cases()),
        ("values", values::cases()),
        ("handles", handles::cases()),
        ("wasi", wasi::cases()),
        ("logs", logs::cases()),
        ("egress", egress::cases(egress::Ports::default())),
        ("upload", upload::cases()),
        ("upload", upload::own_cases()),
        ("transport", transport::cases()),
        ("lifecycle", lifecycle::cases()),
    ]
}

#[test]
fn every_case_is_a_row_of_the_document() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security-tests.md");
    let document = std::fs::read_to_string(&path).expect("docs/security-tests.md is there");
    let rows: BTreeSet<(&str, &str)> = document
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?, cells.next()?))
        })
        .collect();
    let mut names = BTreeSet::new();
    for (kind, cases) in all() {
        for case in cases {
            assert!(names.insert((kind, case.name)), "{kind}: {} is there twice", case.name);
            assert!(!case.name.contains('|') && !case.required().is_empty());
            assert!(rows.contains(&(kind, case.name)), "{kind}: `{}` has no row: run `make security-table`", case.name);
        }
    }
}

#[test]
fn every_guest_is_valid() {
    for (kind, cases) in all() {
        for case in cases {
            let Act::Run { guest: Made::Text(guest), .. } = case.act else { continue };
            if let Err(error) = wasmparser::validate(&guest.build()) {
                panic!("{kind}: {}: {error}", case.name);
            }
        }
    }
}
