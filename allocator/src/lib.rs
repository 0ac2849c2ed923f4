//! mimalloc as Rust's global allocator. The only crate of the project with `unsafe`.
//!
//! The crate `mimalloc` calls `mi_malloc_aligned` for every allocation. In mimalloc 3 that is slow
//! for sizes that are not a power of two: it allocates more than was asked for, and `mi_free` then
//! searches the block's start (github.com/purpleprotocol/mimalloc_rust, pull request 170).
//! `mi_malloc` aligns to 16 bytes already, which is enough for nearly all types. Measured in the
//! gateway, 2 KB requests: bench/HISTORY.md, "Fewer instructions per request".

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};

/// Alignment of every block that is at least as large (`MI_MAX_ALIGN_SIZE`, as C's `max_align_t`).
/// Smaller blocks are aligned to 8 bytes.
const NATURAL: usize = 16;

/// The allocator. Use it with `#[global_allocator]`.
pub struct Allocator;

/// Whether `mi_malloc` aligns a block of this size far enough.
const fn is_natural(size: usize, align: usize) -> bool {
    align <= NATURAL && align <= size
}

// SAFETY: every method passes the caller's guarantees on to mimalloc. Its blocks are aligned as
// `is_natural` says, or as requested. `mi_free` and `mi_realloc` accept blocks of both kinds.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size is allowed, and `align` is a power of two.
        let block = unsafe {
            if is_natural(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) }
        };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as in `alloc`.
        let block = unsafe {
            if is_natural(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) }
        };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller got `block` from this allocator.
        unsafe { mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let align = layout.align();
        // SAFETY: the caller got `block` from this allocator; size and alignment as in `alloc`.
        let block = unsafe {
            if is_natural(size, align) {
                mi_realloc(block.cast(), size)
            } else {
                mi_realloc_aligned(block.cast(), size, align)
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes around every size class up to 1 KB, and some larger ones.
    fn sizes() -> impl Iterator<Item = usize> {
        (1..=1_024).chain([1_500, 4_095, 4_096, 10_000, 65_536, 300_000, 5_000_000])
    }

    fn aligns() -> impl Iterator<Item = usize> {
        (0..=12).map(|power| 1 << power)
    }

    /// Fills a block, and returns what its bytes are.
    fn fill(block: *mut u8, size: usize, byte: u8) {
        assert!(!block.is_null());
        // SAFETY: the block has `size` bytes.
        unsafe { block.write_bytes(byte, size) }
    }

    fn holds(block: *const u8, size: usize, byte: u8) -> bool {
        // SAFETY: the block has at least `size` initialised bytes.
        unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|b| *b == byte)
    }

    #[test]
    fn every_block_is_aligned_and_separate() {
        for align in aligns() {
            let mut blocks = Vec::new();
            for (n, size) in sizes().enumerate() {
                let layout = Layout::from_size_align(size, align).unwrap();
                let byte = n.to_le_bytes()[0];
                // Two, so that a block other than the first of its page is seen.
                for _ in 0..2 {
                    // SAFETY: the size is not zero.
                    let block = unsafe { Allocator.alloc(layout) };
                    assert_eq!(block.addr() % align, 0, "{layout:?}");
                    fill(block, size, byte);
                    blocks.push((block, layout, byte));
                }
            }
            for (block, layout, byte) in blocks {
                assert!(holds(block, layout.size(), byte), "{layout:?} was overwritten");
                // SAFETY: allocated above with this layout.
                unsafe { Allocator.dealloc(block, layout) }
            }
        }
    }

    #[test]
    fn zeroed_blocks_are_zero_even_where_others_were_freed() {
        for align in aligns() {
            for size in sizes() {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not zero; each block is freed with its layout.
                unsafe {
                    let used = Allocator.alloc(layout);
                    fill(used, size, 0xa5);
                    Allocator.dealloc(used, layout);
                    let block = Allocator.alloc_zeroed(layout);
                    assert_eq!(block.addr() % align, 0, "{layout:?}");
                    assert!(holds(block, size, 0), "{layout:?}");
                    Allocator.dealloc(block, layout);
                }
            }
        }
    }

    /// Also between the two kinds of blocks: 8 bytes aligned to 16 are not natural, 16 bytes are.
    #[test]
    fn a_block_that_grows_or_shrinks_keeps_its_bytes_and_its_alignment() {
        let sizes: Vec<_> = sizes().step_by(7).chain([8, 16, 24, 40, 48]).collect();
        for align in aligns() {
            for pair in sizes.windows(2) {
                let &[from, to] = pair else { continue };
                for (from, to) in [(from, to), (to, from)] {
                    let layout = Layout::from_size_align(from, align).unwrap();
                    // SAFETY: no size is zero; the block is freed with its last layout.
                    unsafe {
                        let block = Allocator.alloc(layout);
                        fill(block, from, 0x5a);
                        let block = Allocator.realloc(block, layout, to);
                        assert_eq!(block.addr() % align, 0, "{layout:?} to {to}");
                        assert!(holds(block, from.min(to), 0x5a), "{layout:?} to {to}");
                        Allocator.dealloc(block, Layout::from_size_align(to, align).unwrap());
                    }
                }
            }
        }
    }
}
