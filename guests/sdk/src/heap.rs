//! The memory that a module allocates from: a first stretch that is part of it, then what the host gives.
//!
//! An instance serves one call and is gone, and most calls need little. What fits into the first stretch is handed out
//! by moving a mark, so that a small call never asks the host for memory: growing it, and shrinking it again for the
//! next instance, costs more than everything else that such a call does. The standard allocator serves the rest.
#![allow(unsafe_code, reason = "an allocator hands out raw memory")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, UnsafeCell},
    ptr,
};

/// Bytes of the first stretch: a page of linear memory.
const FIRST_BYTES: usize = 64 * 1024;

/// The allocator of a module.
pub struct Heap {
    first: First,
    mark: Mark,
}

/// Aligned for everything that a module asks for but whole pages.
#[repr(C, align(16))]
struct First(UnsafeCell<[u8; FIRST_BYTES]>);

// SAFETY: a module has one thread; the server refuses modules with threads.
unsafe impl Sync for Heap {}

impl Heap {
    /// Nothing of it is in use.
    #[expect(clippy::new_without_default, reason = "it is made once, as a static")]
    pub const fn new() -> Self {
        Self { first: First(UnsafeCell::new([0; FIRST_BYTES])), mark: Mark(Cell::new(0)) }
    }

    fn base(&self) -> *mut u8 {
        self.first.0.get().cast()
    }

    /// Where in the first stretch `at` is; none: the standard allocator's.
    fn offset(&self, at: *mut u8) -> Option<usize> {
        let offset = at.addr().wrapping_sub(self.base().addr());
        (offset < FIRST_BYTES).then_some(offset)
    }
}

// SAFETY: the mark never hands out two stretches that overlap, each is within `first` and aligned as asked, since
// `first` is aligned to 16 and more than that is left to the standard allocator, as is all that does not fit.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.mark.take(layout.size(), layout.align()) {
            // SAFETY: the offset is within `first`.
            Some(offset) => unsafe { self.base().add(offset) },
            // SAFETY: the caller's layout is passed on as it is.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        match self.offset(at) {
            Some(offset) => self.mark.give_back(offset, layout.size()),
            // SAFETY: what is not ours came from the standard allocator, with this layout.
            None => unsafe { System.dealloc(at, layout) },
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = self.offset(at) else {
            // SAFETY: what is not ours came from the standard allocator, with this layout.
            return unsafe { System.realloc(at, layout, size) };
        };
        if self.mark.resize(offset, layout.size(), size) {
            return at;
        }
        // SAFETY: the caller vouches that `size`, rounded up to the alignment, is no overflow.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both are valid for the shorter of the two sizes, and apart from each other.
            unsafe { ptr::copy_nonoverlapping(at, new, layout.size().min(size)) };
            self.mark.give_back(offset, layout.size());
        }
        new
    }
}

/// How much of the first stretch is handed out.
struct Mark(Cell<usize>);

impl Mark {
    /// Hands out the next stretch, if it fits.
    fn take(&self, size: usize, align: usize) -> Option<usize> {
        if align > align_of::<First>() {
            return None;
        }
        let offset = self.0.get().next_multiple_of(align);
        let end = offset.checked_add(size)?;
        (end <= FIRST_BYTES).then(|| {
            self.0.set(end);
            offset
        })
    }

    /// Takes back a stretch. Only the last one can be handed out again; any other stays behind until the instance ends.
    fn give_back(&self, offset: usize, size: usize) {
        if offset + size == self.0.get() {
            self.0.set(offset);
        }
    }

    /// Gives a stretch another size where it is; false: there is no room for it, or it is not the last one.
    fn resize(&self, offset: usize, old: usize, new: usize) -> bool {
        if new <= old {
            self.give_back(offset + new, old - new);
            return true;
        }
        let fits = offset + old == self.0.get() && offset.checked_add(new).is_some_and(|end| end <= FIRST_BYTES);
        if fits {
            self.0.set(offset + new);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_aligned_and_apart() {
        let mark = Mark(Cell::new(0));
        assert_eq!(mark.take(3, 1), Some(0));
        assert_eq!(mark.take(8, 8), Some(8));
        assert_eq!(mark.take(1, 16), Some(16));
        assert_eq!(mark.take(1, 32), None, "more than the stretch is aligned to");
    }

    #[test]
    fn only_the_last_stretch_is_handed_out_again() {
        let mark = Mark(Cell::new(0));
        let (first, last) = (mark.take(10, 1).unwrap(), mark.take(10, 1).unwrap());
        mark.give_back(first, 10);
        assert_eq!(mark.0.get(), 20);
        mark.give_back(last, 10);
        assert_eq!(mark.take(5, 1), Some(last));
    }

    #[test]
    fn what_does_not_fit_is_left_to_the_standard_allocator() {
        let mark = Mark(Cell::new(0));
        assert_eq!(mark.take(FIRST_BYTES + 1, 1), None);
        assert_eq!(mark.take(usize::MAX, 1), None);
        assert_eq!(mark.take(FIRST_BYTES, 1), Some(0));
        assert_eq!(mark.take(1, 1), None);
        assert_eq!(mark.take(0, 1), Some(FIRST_BYTES));
    }

    #[test]
    fn the_last_stretch_grows_where_it_is() {
        let mark = Mark(Cell::new(0));
        let (first, last) = (mark.take(10, 1).unwrap(), mark.take(10, 1).unwrap());
        assert!(!mark.resize(first, 10, 11));
        assert!(mark.resize(last, 10, 100) && mark.0.get() == 110);
        assert!(mark.resize(last, 100, 1) && mark.0.get() == 11);
        assert!(!mark.resize(last, 1, FIRST_BYTES));
        assert!(mark.resize(first, 10, 5) && mark.0.get() == 11);
    }

    #[test]
    fn contents_survive_every_move() {
        let heap = Heap::new();
        let mut layout = Layout::from_size_align(16, 8).unwrap();
        // SAFETY: every size is above zero, and each block is used only until it is given back.
        unsafe {
            let mut at = heap.alloc(layout);
            at.write_bytes(7, 16);
            let other = heap.alloc(Layout::new::<u64>());
            for size in [64, 1024, FIRST_BYTES, 2 * FIRST_BYTES, 48] {
                at = heap.realloc(at, layout, size);
                layout = Layout::from_size_align(size, 8).unwrap();
                assert!(at.addr().is_multiple_of(8));
                assert_eq!(std::slice::from_raw_parts(at, 16), [7; 16], "{size}");
            }
            assert!(heap.offset(at).is_none());
            heap.dealloc(at, layout);
            heap.dealloc(other, Layout::new::<u64>());
            let zeroed = heap.alloc_zeroed(Layout::from_size_align(1024, 1).unwrap());
            assert_eq!(std::slice::from_raw_parts(zeroed, 1024), [0; 1024]);
        }
    }
}
