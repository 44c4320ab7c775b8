//! What the machine has.

use std::fs;

/// What is assumed where the machine does not say.
const FALLBACK_BYTES: u64 = 4 << 30;

/// Returns the memory that this process can have in bytes: the machine's, or the container's where that is less.
pub(super) fn memory_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text)).unwrap_or(FALLBACK_BYTES);
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    container.unwrap_or(u64::MAX).min(machine)
}

/// Reads `MemTotal` of `/proc/meminfo`.
fn total_of(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_memory_is_read_from_meminfo() {
        assert_eq!(total_of("MemTotal:       16303428 kB\nMemFree: 1 kB\n"), Some(16_303_428 * 1024));
        for text in ["", "MemTotal:", "MemTotal: x kB", "MemTotal: 99999999999999999999 kB"] {
            assert_eq!(total_of(text), None, "{text:?}");
        }
        assert!(memory_bytes() > 0);
    }
}
