//! What a process holds, as the system tells it.

use std::{fs, path::PathBuf};

fn of(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

/// How many descriptors it has open.
pub(super) fn descriptors(pid: u32) -> usize {
    fs::read_dir(of(pid, "fd")).expect("the process lives").count()
}

/// How much memory it has in use, in bytes.
pub(super) fn memory_bytes(pid: u32) -> u64 {
    let pages = fs::read_to_string(of(pid, "statm")).expect("the process lives");
    let resident: u64 = pages.split(' ').nth(1).expect("the second number").parse().expect("a number");
    resident * 4096
}
