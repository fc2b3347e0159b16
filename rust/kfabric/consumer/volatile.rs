// SPDX-License-Identifier: GPL-2.0

//! Copies bytes that a device, or C for a device, may access at the same time.
//!
//! All accesses are volatile, so that the compiler assumes nothing about the bytes. They are whole
//! words where possible, because a region can be large.

use core::ptr::NonNull;

const WORD: usize = size_of::<usize>();

/// Returns the number of bytes before the first whole word at `addr`, at most `len`.
fn before_words(addr: NonNull<u8>, len: usize) -> usize {
    (addr.addr().get().wrapping_neg() % WORD).min(len)
}

/// Copies bytes from `from` into all of `to`.
///
/// # Safety
///
/// `from` has `to.len()` bytes. Only a device, or C for it, changes them meanwhile.
pub(super) unsafe fn read(mut from: NonNull<u8>, to: &mut [u8]) {
    let Some((head, rest)) = to.split_at_mut_checked(before_words(from, to.len())) else {
        return;
    };
    let mut words = rest.chunks_exact_mut(WORD);
    // SAFETY: `from` advances by the copied bytes, so it stays within the memory. Words are
    // aligned.
    unsafe {
        for byte in head {
            *byte = from.read_volatile();
            from = from.add(1);
        }
        for word in &mut words {
            word.copy_from_slice(&from.cast::<usize>().read_volatile().to_ne_bytes());
            from = from.add(WORD);
        }
        for byte in words.into_remainder() {
            *byte = from.read_volatile();
            from = from.add(1);
        }
    }
}

/// Copies all bytes of `from` to `to`.
///
/// # Safety
///
/// `to` has `from.len()` bytes. Only a device, or C for it, accesses them meanwhile.
pub(super) unsafe fn write(mut to: NonNull<u8>, from: &[u8]) {
    let Some((head, rest)) = from.split_at_checked(before_words(to, from.len())) else {
        return;
    };
    let words = rest.chunks_exact(WORD);
    let tail = words.remainder();
    // SAFETY: `to` advances by the copied bytes, so it stays within the memory. Words are aligned.
    unsafe {
        for byte in head {
            to.write_volatile(*byte);
            to = to.add(1);
        }
        for word in words {
            let mut bytes = [0; WORD];
            bytes.copy_from_slice(word);
            to.cast::<usize>()
                .write_volatile(usize::from_ne_bytes(bytes));
            to = to.add(WORD);
        }
        for byte in tail {
            to.write_volatile(*byte);
            to = to.add(1);
        }
    }
}

/// Sets `len` bytes to `value`.
///
/// # Safety
///
/// `to` has `len` bytes. Only a device, or C for it, accesses them meanwhile.
pub(super) unsafe fn fill(mut to: NonNull<u8>, value: u8, mut len: usize) {
    let pattern = [value; 64];
    while let Some(now) = pattern
        .get(..len.min(pattern.len()))
        .filter(|now| !now.is_empty())
    {
        // SAFETY: `to` advances by the written bytes, and `len` is the number of the remaining
        // ones.
        unsafe {
            write(to, now);
            to = to.add(now.len());
        }
        len -= now.len();
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_volatile)]
mod tests {
    use super::*;

    /// Returns starts and lengths of all alignments around a few words.
    fn cases() -> impl Iterator<Item = (usize, usize)> {
        (0..2 * WORD).flat_map(|start| (0..3 * WORD).map(move |len| (start, len)))
    }

    #[test]
    fn bytes_come_out_as_they_are() {
        let mut memory = [0_u8; 5 * WORD];
        for (byte, value) in memory.iter_mut().zip(1..) {
            *byte = value;
        }
        for (start, len) in cases() {
            let mut out = [0_u8; 3 * WORD];
            let first = NonNull::from(&mut memory[start]);
            // SAFETY: `start + len` is within the memory, which is a local.
            unsafe { read(first, &mut out[..len]) };
            assert_eq!(&out[..len], &memory[start..start + len]);
            assert!(out[len..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn bytes_go_in_and_nothing_else_changes() {
        let mut bytes = [0_u8; 3 * WORD];
        for (byte, value) in bytes.iter_mut().zip(1..) {
            *byte = value;
        }
        for (start, len) in cases() {
            let mut memory = [0_u8; 5 * WORD];
            let first = NonNull::from(&mut memory[..]).cast::<u8>();
            // SAFETY: `start + len` is within the memory, which is a local.
            unsafe { write(first.add(start), &bytes[..len]) };
            assert_eq!(&memory[start..start + len], &bytes[..len]);
            assert!(memory[..start].iter().all(|byte| *byte == 0));
            assert!(memory[start + len..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn fills_all_of_it() {
        let mut memory = [0_u8; 200];
        let first = NonNull::from(&mut memory[..]).cast::<u8>();
        // SAFETY: The range from 3 to 153 is within the memory, which is a local.
        unsafe { fill(first.add(3), 7, 150) };
        let is_set = |(index, byte): (usize, &u8)| (3..153).contains(&index) == (*byte == 7);
        assert!(memory.iter().enumerate().all(is_set));
    }
}
