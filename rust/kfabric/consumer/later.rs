// SPDX-License-Identifier: GPL-2.0

//! Closing a region where nobody can wait for that.
//!
//! C header: [`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)

use super::{
    call,
    many::batch_op,
    Backing,
    CloseError,
    Mr,
    Refused, //
};
use crate::support::{
    errno::Errno,
    noio::NoIo, //
};
use core::mem::MaybeUninit;
use kernel::{
    container_of,
    ffi::c_int,
    prelude::*, //
};
use kfi_bindings::kfi_closing;

/// Room for a region of memory of type `B` that is closed later, and for what is done then.
///
/// # Examples
///
/// ```
/// use kernel::prelude::*;
/// use kfabric::consumer::{Later, Mr};
///
/// /// In the handler of a completion, which can't sleep: `room` was made when there was time.
/// fn done(mr: Mr<KVec<u8>>, room: Later<KVec<u8>>) -> Result {
///     mr.close_later(room, |closed| match closed {
///         Ok(bytes) => pr_info!("{} bytes are ours again\n", bytes.len()),
///         Err(error) => pr_warn!("not closed: {}\n", error.errno()),
///     })?;
///     Ok(())
/// }
/// ```
pub struct Later<B: Backing, F = fn(Result<B, CloseError<Mr<B>>>)>(
    KBox<MaybeUninit<Closing<B, F>>>,
);

/// A region that is being closed.
struct Closing<B: Backing, F> {
    raw: kfi_closing,
    mr: Mr<B>,
    then: F,
}

impl<B, F> Later<B, F>
where
    B: Backing + Send + 'static,
    F: FnOnce(Result<B, CloseError<Mr<B>>>) + Send + 'static,
{
    /// Makes room. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    pub fn new() -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        Ok(Self(KBox::new_uninit(GFP_KERNEL)?))
    }
}

impl<B: Backing + Send + 'static> Mr<B> {
    /// Has the region closed, soon and in a task of its own, and `then` called with what has come of that, as
    /// [`close`](Self::close) would return it. Any context.
    ///
    /// It may sleep in `then`; regions that are closed later in the same domain wait for it. The module that it
    /// is part of isn't unloaded before it has returned.
    ///
    /// # Errors
    ///
    /// With the region:
    ///
    /// - `ENOSYS`: the provider can't.
    pub fn close_later<F>(self, room: Later<B, F>, then: F) -> Result<(), Refused<Self>>
    where
        F: FnOnce(Result<B, CloseError<Self>>) + Send + 'static,
    {
        let Some(close_later) = batch_op!(self.domain(), close_later) else {
            return Err(Refused::new(Errno::ENOSYS, self));
        };
        let raw = kfi_closing {
            done: Some(done::<B, F>),
            ..Default::default()
        };
        let mr = self.as_raw();
        let closing = KBox::write(
            room.0,
            Closing {
                raw,
                mr: self,
                then,
            },
        );
        let closing = KBox::into_raw(closing);
        // SAFETY: `closing` was just made; `done` takes it back. The region is open, and nobody uses it any
        // more: it is `done`'s, too.
        unsafe { close_later(mr, &raw mut (*closing).raw) };
        Ok(())
    }
}

/// A region has been closed, or not.
///
/// # Safety
///
/// `raw` is that of a [`Closing`] of this type, which nobody else takes back; closing its region was tried,
/// and has ended so.
unsafe extern "C" fn done<B: Backing, F>(raw: *mut kfi_closing, err: c_int)
where
    F: FnOnce(Result<B, CloseError<Mr<B>>>),
{
    // SAFETY: By the requirements of this function.
    let closing = unsafe { KBox::from_raw(container_of!(raw, Closing<B, F>, raw)) };
    let Closing { mr, then, .. } = KBox::into_inner(closing);
    // SAFETY: By the requirements of this function.
    then(unsafe { mr.closed(call::result(err)) });
}
