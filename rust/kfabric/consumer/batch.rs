// SPDX-License-Identifier: GPL-2.0

//! Registers and closes many regions with one wait for the device. Closes a region in atomic
//! context.
//!
//! C header: [`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)

use super::{
    error::leaked,
    handle::slot_if_any,
    memory::MemoryList,
    register::attributes,
    *, //
};
use crate::{
    object::ext::{
        ALL_OR_NONE,
        BATCH_NAME, //
    },
    support::vec::PushReserved, //
};
use core::mem::MaybeUninit;
use kernel::container_of;
use kfi_bindings::{
    kfi_batch_ops,
    kfi_closing, //
};

impl Domain {
    /// Registers each buffer as one region: all of them or none. Sleeps until the device has
    /// completed all registrations, unless an event queue is [bound](Self::bind).
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider doesn't support it.
    /// - The errors of [`reg`](Self::reg), for the first refused buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{prelude::*, sync::Arc};
    /// use kfabric::consumer::{Access, Domain, Mr};
    ///
    /// /// Lets a peer read until `serve` returns.
    /// fn lend(
    ///     domain: &Arc<Domain>,
    ///     buffers: KVVec<KVec<u8>>,
    ///     serve: impl FnOnce(&[Mr<KVec<u8>>]),
    /// ) -> Result {
    ///     let mrs = domain.reg_many(buffers, Access::REMOTE_READ)?;
    ///     serve(&mrs);
    ///     let mut done = Ok(());
    ///     Mr::close_many(mrs, |closed| done = done.and(closed.map(drop).map_err(Error::from)));
    ///     done
    /// }
    /// ```
    pub fn reg_many<B: Buffer>(
        self: &Arc<Self>,
        buffers: KVVec<B>,
        options: impl Into<Options>,
    ) -> Result<KVVec<Mr<B>>, RegisterManyError<B>> {
        let _noio = NoIo::enter();
        let count = buffers.len();
        let lists = Lists::new(&buffers, &options.into());
        let room = KVVec::with_capacity(count, GFP_KERNEL);
        let (mut lists, mut mrs, ops) = match (lists, room, self.batch_ops()) {
            (Ok(lists), Ok(mrs), Ok(ops)) => (lists, mrs, ops),
            (_, _, Err(errno)) => return Err(RegisterManyError::new(errno, None, buffers)),
            _ => return Err(RegisterManyError::new(Errno::ENOMEM, None, buffers)),
        };
        if let Err(errno) = lists.register(self, ops) {
            return Err(lists.refused(errno, buffers));
        }
        if lists.mrs.iter().any(|mr| mr.is_null()) {
            // The provider returned success, but did not register all of them.
            leaked("memory of regions", Errno::EIO);
            mem::forget(buffers);
            return Err(RegisterManyError::new(Errno::EIO, None, KVVec::new()));
        }
        for (buffer, mr) in buffers.into_iter().zip(&lists.mrs) {
            if let Some(mr) = NonNull::new(*mr) {
                // SAFETY: `mr` was just registered on this buffer, and nobody else closes it.
                mrs.push_reserved(unsafe { Mr::registered(mr, self, buffer) });
            }
        }
        Ok(mrs)
    }

    /// Returns the operations on many regions. They are valid as long as the domain is open.
    pub(super) fn batch_ops(&self) -> Result<NonNull<kfi_batch_ops>, Errno> {
        Ok(self.extension(BATCH_NAME)?.cast())
    }
}

impl<B: Backing> Mr<B> {
    /// Closes many regions. Calls `closed` for each, in their order, with the result of
    /// [`close`](Self::close). Sleeps until no peer can reach the memory of the closed regions.
    pub fn close_many(mrs: KVVec<Self>, mut closed: impl FnMut(Result<B, CloseError<Self>>)) {
        let _noio = NoIo::enter();
        match close_together(&mrs) {
            Some(errs) => {
                for (mr, err) in mrs.into_iter().zip(errs) {
                    // SAFETY: `err` is the result of closing `mr`, which nobody else uses.
                    closed(unsafe { mr.closed(handle::result(err)) });
                }
            }
            None => mrs.into_iter().for_each(|mr| closed(mr.close())),
        }
    }
}

/// Returns an operation of a domain's table, if the table has it.
macro_rules! batch_op {
    ($domain:expr, $op:ident) => {
        $domain.batch_ops().ok().and_then(|ops| {
            // SAFETY: `batch_ops` returned the table, which is valid as long as the domain.
            unsafe { $crate::consumer::handle::slot_if_any!(ops.as_ptr(), $op) }
        })
    };
}
pub(super) use batch_op;

/// Closes regions by one call, and returns their results.
///
/// `None`, without an effect, if the regions are of several domains, if the provider does not have
/// the call, or if there is no memory.
fn close_together<B: Backing>(mrs: &[Mr<B>]) -> Option<KVVec<c_int>> {
    let domain = mrs.first()?.domain();
    if !mrs.iter().all(|mr| Arc::ptr_eq(mr.domain(), domain)) {
        return None;
    }
    let close_many = batch_op!(domain, close_many)?;
    let mut errs = KVVec::from_elem(0, mrs.len(), GFP_KERNEL).ok()?;
    let mut raw = KVVec::with_capacity(mrs.len(), GFP_KERNEL).ok()?;
    for mr in mrs {
        raw.push_reserved(mr.as_raw());
    }
    // SAFETY: All regions are open, and the caller owns them. `errs` has an entry for each of them.
    unsafe { close_many(raw.as_ptr(), raw.len(), errs.as_mut_ptr()) };
    Some(errs)
}

/// The arguments of the C call that registers many regions.
struct Lists {
    attrs: KVVec<kfi_mr_attr>,
    mrs: KVVec<*mut kfid_mr>,
    errs: KVVec<c_int>,
    flags: u64,
    // The attributes point to these.
    _segments: KVVec<kvec>,
}

impl Lists {
    /// Creates the lists for `buffers`, which must not change until [`register`](Self::register)
    /// returns.
    fn new<B: Buffer>(buffers: &[B], options: &Options) -> Result<Self> {
        let count = buffers.len();
        let mut segments = KVVec::with_capacity(count, GFP_KERNEL)?;
        for buffer in buffers {
            let segment = kvec {
                iov_base: buffer.start().as_ptr().cast(),
                iov_len: buffer.size(),
            };
            segments.push_reserved(segment);
        }
        let mut attrs = KVVec::with_capacity(count, GFP_KERNEL)?;
        for segment in &segments {
            let list = MemoryList::Kvec(slice::from_ref(segment));
            attrs.push_reserved(attributes(&list, options, None));
        }
        Ok(Self {
            attrs,
            mrs: KVVec::from_elem(ptr::null_mut(), count, GFP_KERNEL)?,
            errs: KVVec::from_elem(0, count, GFP_KERNEL)?,
            flags: options.raw_flags(),
            _segments: segments,
        })
    }

    /// Calls `regattr_many`.
    fn register(&mut self, domain: &Domain, ops: NonNull<kfi_batch_ops>) -> Result<(), Errno> {
        // SAFETY: `batch_ops` returned the table, which is valid as long as the domain.
        let slot = unsafe { slot_if_any!(ops.as_ptr(), regattr_many) };
        let regattr_many = slot.ok_or(Errno::ENOSYS)?;
        // SAFETY: The domain is open. All lists have `attrs.len()` entries. The segments and
        // buffers, to which `attrs` points, are valid for the call.
        handle::result(unsafe {
            regattr_many(
                domain.fid(),
                self.attrs.as_ptr(),
                self.attrs.len(),
                self.flags,
                ALL_OR_NONE,
                self.mrs.as_mut_ptr(),
                self.errs.as_mut_ptr(),
            )
        })
    }

    /// Creates the error after a refusal. Leaks the buffers that the device may still access.
    fn refused<B: Buffer>(&self, errno: Errno, mut buffers: KVVec<B>) -> RegisterManyError<B> {
        let why = |err: &c_int| (*err != 0).then(|| Errno::from_c(*err));
        let index = self.errs.iter().position(|err| why(err) == Some(errno));
        let stuck = |err: &c_int| why(err) == Some(Errno::ENOTRECOVERABLE);
        if self.errs.iter().any(stuck) {
            let mut errs = self.errs.iter();
            // Moved within the list, because there may be no memory for another one.
            let mut kept = 0;
            for at in 0..buffers.len() {
                if errs.next().is_some_and(stuck) {
                    continue;
                }
                buffers.swap(kept, at);
                kept += 1;
            }
            while buffers.len() > kept {
                leaked("memory of a region", Errno::ENOTRECOVERABLE);
                mem::forget(buffers.pop());
            }
        }
        RegisterManyError::new(errno, index, buffers)
    }
}

impl<B: Backing> Mr<B> {
    /// Closes the region without a wait, and returns its memory. Any context, if others have
    /// references to the domain.
    ///
    /// The region must be bound to an endpoint. The peer must have invalidated its key, and nothing
    /// else of the region needs a wait.
    ///
    /// # Errors
    ///
    /// All errors have the region, which is open.
    ///
    /// - `EAGAIN`: closing the region needs a wait. Use [`close`](Self::close) in process context,
    ///   or [`close_later`](Self::close_later).
    /// - `ENOSYS`: the provider doesn't support it.
    pub fn close_now(self) -> Result<B, Refused<Self>> {
        let Some(close_now) = batch_op!(self.domain(), close_now) else {
            return Err(Refused::new(Errno::ENOSYS, self));
        };
        // SAFETY: The region is open, and `self` is the only reference to it.
        let closed = handle::result(unsafe { close_now(self.as_raw()) });
        match closed {
            // SAFETY: The call has closed the region.
            Ok(()) => Ok(unsafe { self.into_memory() }),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }
}

/// Preallocated memory for closing a region of memory of type `B` later, with a callback.
///
/// # Examples
///
/// ```
/// use kernel::prelude::*;
/// use kfabric::consumer::{Later, Mr};
///
/// /// In the handler of a completion, in atomic context. `room` was allocated earlier.
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
    /// Allocates the memory. May sleep.
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
    /// Closes the region from a work item. Then calls `then` with the result of
    /// [`close`](Self::close). Any context.
    ///
    /// `then` may sleep. Regions of the same domain that are closed later wait for it. Its module
    /// is unloaded only after it has returned.
    ///
    /// # Errors
    ///
    /// The error has the region.
    ///
    /// - `ENOSYS`: the provider doesn't support it.
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
        // SAFETY: `closing` was just allocated, and `done` frees it. The region is open, and only
        // `done` uses it after this.
        unsafe { close_later(mr, &raw mut (*closing).raw) };
        Ok(())
    }
}

/// Passes the result of closing a region to its callback.
///
/// # Safety
///
/// `raw` is part of a [`Closing`] of this type, which nobody else frees. `err` is the result of
/// closing its region.
unsafe extern "C" fn done<B: Backing, F>(raw: *mut kfi_closing, err: c_int)
where
    F: FnOnce(Result<B, CloseError<Mr<B>>>),
{
    // SAFETY: `raw` is part of a `Closing` that nobody else frees, by this function's contract.
    let closing = unsafe { KBox::from_raw(container_of!(raw, Closing<B, F>, raw)) };
    let Closing { mr, then, .. } = KBox::into_inner(closing);
    // SAFETY: `err` is the result of closing the region by this function's contract, and `mr` its
    // owner.
    then(unsafe { mr.closed(handle::result(err)) });
}
