//! The limiter of memory: sums what all memories of an instance hold, and remembers what it refused.

use wasmtime::ResourceLimiter;

use super::config::{Limits, ModuleLimits};

/// Limits one store. Refusing is an answer to the guest and not yet a failure: it may have something else to try.
#[derive(Debug)]
pub(super) struct Limiter {
    memory_bytes_max: usize,
    table_elements_max: usize,
    counts: ModuleLimits,
    held_bytes: usize,
    refused: Option<Refused>,
}

/// What was asked for in vain, last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Linear memory: the sum it would have come to.
    Memory { bytes: usize, bytes_max: usize },
    /// Linear memory past what its type or the machine allows.
    Growth,
    /// Elements of a table.
    Table { elements: usize, elements_max: usize },
}

impl Limiter {
    pub(super) fn new(limits: &Limits, counts: ModuleLimits) -> Self {
        Self {
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            counts,
            held_bytes: 0,
            refused: None,
        }
    }

    /// Returns the most linear memory held at once. Memories do not shrink, so it is what is held at the end.
    pub(super) fn peak_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns what was refused last.
    pub(super) fn refused(&self) -> Option<Refused> {
        self.refused
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let bytes = self.held_bytes.saturating_add(desired.saturating_sub(current));
        if bytes > self.memory_bytes_max {
            self.refused = Some(Refused::Memory { bytes, bytes_max: self.memory_bytes_max });
            return Ok(false);
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            self.refused = Some(Refused::Growth);
            return Ok(false);
        }
        // Counted before it is there: if the machine then has none, the count is too high, which errs on the safe side.
        self.held_bytes = bytes;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused = Some(Refused::Growth);
        Ok(())
    }

    fn table_growing(&mut self, _current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        let elements_max = maximum.unwrap_or(usize::MAX).min(self.table_elements_max);
        if desired > elements_max {
            self.refused = Some(Refused::Table { elements: desired, elements_max });
            return Ok(false);
        }
        Ok(true)
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.refused.get_or_insert(Refused::Table { elements: usize::MAX, elements_max: self.table_elements_max });
        Ok(())
    }

    fn instances(&self) -> usize {
        self.counts.core_instances as usize
    }

    fn tables(&self) -> usize {
        self.counts.tables as usize
    }

    fn memories(&self) -> usize {
        self.counts.memories as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(memory_bytes: usize) -> Limiter {
        Limiter::new(&Limits { memory_bytes, ..Limits::default() }, ModuleLimits::default())
    }

    #[test]
    fn memories_are_summed() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
        assert_eq!(limiter.refused(), Some(Refused::Memory { bytes: 120, bytes_max: 100 }));
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(!limiter.memory_growing(40, 41, None).unwrap());
        assert_eq!(limiter.peak_bytes(), 100);
    }

    #[test]
    fn failed_growth_gives_nothing_back() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter.memory_grow_failed(wasmtime::format_err!("no")).unwrap();
        assert_eq!(limiter.refused(), Some(Refused::Growth));
        assert!(!limiter.memory_growing(0, 60, None).unwrap());
    }

    #[test]
    fn absurd_sizes_are_refused_without_overflow() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 1, None).unwrap());
        assert!(!limiter.memory_growing(0, usize::MAX, None).unwrap());
        assert!(!limiter.table_growing(0, usize::MAX, None).unwrap());
        assert!(!limiter.table_growing(0, 11, Some(10)).unwrap());
    }
}
