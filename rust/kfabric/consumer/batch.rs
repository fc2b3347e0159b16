// SPDX-License-Identifier: GPL-2.0

//! Registers and closes many regions with one wait for the device. Closes a region in atomic
//! context.
//!
//! C header: [`include/kfi_batch_ext.h`](srctree/include/kfi_batch_ext.h)

use super::{
    call::{
        self,
        slot_if_any, //
    },
    memory::List,
    register::attributes,
    Backing,
    Buffer,
    CloseError,
    Domain,
    Mr,
    Options,
    Refused,
    RegisterManyError, //
};
use crate::{
    object::ext::batch::{
        ALL_OR_NONE,
        NAME, //
    },
    support::{
        errno::Errno,
        task::NoIo,
        vec::PushReserved, //
    }, //
};
use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    container_of,
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_batch_ops,
    kfi_closing,
    kfi_mr_attr,
    kfid_mr,
    kvec, //
};

impl Domain {
    /// Registers each buffer as a region of its own, all of them or none. Sleeps until the device is
    /// done with all, unless an event queue is [bound](Self::bind).
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider can't.
    /// - Those of [`reg`](Self::reg), for the first that was refused.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::{prelude::*, sync::Arc};
    /// use kfabric::consumer::{Access, Domain, Mr};
    ///
    /// /// Lets a peer read, as long as `serve` takes.
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
            // A provider that has succeeded but not opened all is not believed.
            call::leaked("memory of regions", Errno::EIO);
            mem::forget(buffers);
            return Err(RegisterManyError::new(Errno::EIO, None, KVVec::new()));
        }
        for (buffer, mr) in buffers.into_iter().zip(&lists.mrs) {
            if let Some(mr) = NonNull::new(*mr) {
                // SAFETY: `mr` was just registered on this buffer.
                mrs.push_reserved(unsafe { Mr::registered(mr, self, buffer) });
            }
        }
        Ok(mrs)
    }

    /// The table of operations on many regions: of this name it is what the header says, as far as it says,
    /// and there as long as the domain.
    pub(super) fn batch_ops(&self) -> Result<NonNull<kfi_batch_ops>, Errno> {
        Ok(self.extension(NAME)?.cast())
    }
}

impl<B: Backing> Mr<B> {
    /// Closes many regions. What has become of each is told to `closed`, in their order, as
    /// [`close`](Self::close) would return it. Sleeps until no peer can reach the memory of any that
    /// was closed.
    pub fn close_many(mrs: KVVec<Self>, mut closed: impl FnMut(Result<B, CloseError<Self>>)) {
        let _noio = NoIo::enter();
        match close_together(&mrs) {
            Some(errs) => {
                for (mr, err) in mrs.into_iter().zip(errs) {
                    // SAFETY: That was just tried.
                    closed(unsafe { mr.closed(call::result(err)) });
                }
            }
            None => mrs.into_iter().for_each(|mr| closed(mr.close())),
        }
    }
}

/// An operation of a domain's table, if it has that.
macro_rules! batch_op {
    ($domain:expr, $op:ident) => {
        $domain.batch_ops().ok().and_then(|ops| {
            // SAFETY: The table is valid as far as it says.
            unsafe {
                $crate::consumer::call::slot_if_any!(ops.as_ptr(), kfi_bindings::kfi_batch_ops, $op)
            }
        })
    };
}
pub(super) use batch_op;

/// Closes regions in one call: what has become of each. `None`, with nothing closed, if they are not
/// all of one domain that can do that, or without memory.
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
    // SAFETY: All are open, and used by nobody else, since the caller owns them; `errs` has room.
    unsafe { close_many(raw.as_ptr(), raw.len(), errs.as_mut_ptr()) };
    Some(errs)
}

/// What C gets, and where it puts what has come of it.
struct Lists {
    attrs: KVVec<kfi_mr_attr>,
    mrs: KVVec<*mut kfid_mr>,
    errs: KVVec<c_int>,
    flags: u64,
    // What the attributes point to.
    _segments: KVVec<kvec>,
}

impl Lists {
    /// Lists buffers, which stay as they are until they were [registered](Self::register).
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
            let list = List::Kvec(slice::from_ref(segment));
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

    /// The call.
    fn register(&mut self, domain: &Domain, ops: NonNull<kfi_batch_ops>) -> Result<(), Errno> {
        // SAFETY: The table is valid as far as it says.
        let slot = unsafe { slot_if_any!(ops.as_ptr(), kfi_batch_ops, regattr_many) };
        let regattr_many = slot.ok_or(Errno::ENOSYS)?;
        // SAFETY: The domain is open; all lists have so many elements, and what the attributes point to
        // is valid for the call.
        call::result(unsafe {
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

    /// None was registered: gives the buffers back, but for those that the device won't let go of.
    fn refused<B: Buffer>(&self, errno: Errno, mut buffers: KVVec<B>) -> RegisterManyError<B> {
        let why = |err: &c_int| (*err != 0).then(|| Errno::from_c(*err));
        let index = self.errs.iter().position(|err| why(err) == Some(errno));
        let stuck = |err: &c_int| why(err) == Some(Errno::ENOTRECOVERABLE);
        if self.errs.iter().any(stuck) {
            let mut errs = self.errs.iter();
            // Moved within the list that is there, since there may be no memory for another.
            let mut kept = 0;
            for at in 0..buffers.len() {
                if errs.next().is_some_and(stuck) {
                    continue;
                }
                buffers.swap(kept, at);
                kept += 1;
            }
            while buffers.len() > kept {
                call::leaked("memory of a region", Errno::ENOTRECOVERABLE);
                mem::forget(buffers.pop());
            }
        }
        RegisterManyError::new(errno, index, buffers)
    }
}

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
