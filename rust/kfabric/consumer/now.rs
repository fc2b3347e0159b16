// SPDX-License-Identifier: GPL-2.0

//! Closing a region for which nothing has to be waited for.
//!
//! C header: [`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)

use super::{
    call,
    many::batch_op,
    Backing,
    Mr,
    Refused, //
};
use crate::support::errno::Errno;

impl<B: Backing> Mr<B> {
    /// Closes the region if nothing has to be waited for, and gives its memory back: it is bound to an endpoint
    /// whose peer has ended its key, and that is all that it takes there. Any context, as long as others have
    /// its domain.
    ///
    /// # Errors
    ///
    /// With the region, which is open:
    ///
    /// - `EAGAIN`: there is something to be waited for; to be [closed](Self::close) where one may sleep, or
    ///   [later](Self::close_later).
    /// - `ENOSYS`: the provider can't.
    pub fn close_now(self) -> Result<B, Refused<Self>> {
        let Some(close_now) = batch_op!(self.domain(), close_now) else {
            return Err(Refused::new(Errno::ENOSYS, self));
        };
        // SAFETY: The region is open as long as `self` is there, and nobody uses it meanwhile.
        let closed = call::result(unsafe { close_now(self.as_raw()) });
        match closed {
            // SAFETY: It was closed.
            Ok(()) => Ok(unsafe { self.into_memory() }),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}
