// SPDX-License-Identifier: GPL-2.0

//! Many regions in one go: the device is waited for once.
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
    RegisterManyError, //
};
use crate::{
    object::ext::batch::{
        ALL_OR_NONE,
        NAME, //
    },
    support::{
        errno::Errno,
        noio::NoIo,
        push_reserved::PushReserved, //
    }, //
};
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    ffi::c_int,
    prelude::*,
    sync::Arc, //
};
use kfi_bindings::{
    kfi_batch_ops,
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
