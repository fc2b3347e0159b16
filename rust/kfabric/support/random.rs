// SPDX-License-Identifier: GPL-2.0

//! Random numbers, which the kernel crate doesn't have.

/// Returns a number that nobody can guess. Any context.
pub fn number() -> u64 {
    // SAFETY: The function takes no argument and may be called in any context.
    unsafe { kernel::bindings::get_random_u64() }
}

/// A pseudo-random sequence for unit tests (splitmix64). The seed alone determines it.
#[cfg(CONFIG_KUNIT = "y")]
pub(crate) struct Prng(u64);

#[cfg(CONFIG_KUNIT = "y")]
impl Prng {
    /// Starts a sequence with a random seed and logs the seed. To repeat a failed test, put that seed here.
    pub(crate) fn new(test: &str) -> Self {
        let seed = number();
        kernel::pr_info!("{test}: seed {seed:#x}\n");
        Self(seed)
    }

    /// Returns the next number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.any().checked_rem(end).unwrap_or(0)
    }

    /// Returns an index into a list of `len` entries.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(crate::support::num::widen(len))).unwrap_or(0)
    }
}
