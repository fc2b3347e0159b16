// SPDX-License-Identifier: GPL-2.0

//! How those inside a gate are counted.

use kernel::prelude::*;

/// A count of those inside a gate: [`PerCpu`](super::PerCpu) or [`Shared`](super::Shared).
///
/// # Safety
///
/// - [`enter`](Self::enter) counts somebody only while the count is open; who is counted sees what
///   happened before it was opened.
/// - [`drain`](Self::drain) returns when all who were counted have left since the last
///   [`shut`](Self::shut), and sees what they did.
/// - Dropping it shuts it and waits like that.
pub unsafe trait Users: Sized {
    /// An initialiser of a count of nobody. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn new(open: bool) -> impl PinInit<Self, Error>;

    /// Counts one more, if the count is open. Any context.
    fn enter(&self) -> bool;

    /// Counts one less. Any context.
    ///
    /// # Safety
    ///
    /// The caller was counted, and is no more.
    unsafe fn leave(&self);

    /// Counts nobody any more. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// The count is open. Nobody else is opening or shutting it.
    unsafe fn shut(&self);

    /// Sleeps until all who were counted have left; at once if that is so, or if nobody ever could
    /// come. For who has shut the count.
    fn drain(&self);

    /// Counts who comes. Doesn't sleep.
    ///
    /// # Safety
    ///
    /// The count was shut and drained, or never was open. Nobody else is opening or shutting it.
    unsafe fn open(&self);
}
