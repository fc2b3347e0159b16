// SPDX-License-Identifier: GPL-2.0

//! Regions that are filled with the memory of a request in any context, without an allocation.
//!
//! C header: [`include/kfi_reuse_ext.h`](srctree/include/kfi_reuse_ext.h)

use super::{
    ep::bound_to,
    error::{
        leaked,
        unfit, //
    },
    *, //
};
use crate::object::reuse::REUSE_NAME;
use core::mem::ManuallyDrop;
use kfi_bindings::{
    kfi_reuse_ops,
    KFI_MORE, //
};

/// A region without memory, bound to an endpoint. It has all that a registration takes, so that
/// [filling](Self::fill) it neither sleeps nor allocates.
///
/// A consumer opens one for each request that may be under way, when the endpoint is connected. Dropping
/// it closes it, and sleeps.
///
/// # Examples
///
/// ```
/// use kernel::{prelude::*, sync::Arc};
/// use kfabric::consumer::{Access, BioVecs, Connected, Domain, EmptyMr, Errno, FilledMr, MsgEndpoint};
///
/// type Peer = MsgEndpoint<Connected, KVec<u8>>;
///
/// /// In process context: space for a request of 1 MiB.
/// fn prepare(domain: &Arc<Domain>, peer: &Peer) -> Result<EmptyMr, Errno> {
///     EmptyMr::open(domain, peer, 257)
/// }
///
/// /// In any context: lets the peer write to the memory of a request.
/// fn begin<B: BioVecs>(
///     mr: EmptyMr,
///     request: B,
///     send: impl FnOnce(u64, u64) -> Result<(), Errno>,
/// ) -> Result<FilledMr<B>> {
///     let mr = mr.fill(request, Access::REMOTE_WRITE)?;
///     // The message goes to the device together with the registration.
///     send(mr.base(), mr.key())?;
///     Ok(mr)
/// }
///
/// /// In the handler of the peer's answer, which has invalidated the key.
/// fn end<B: BioVecs>(mr: FilledMr<B>) -> Result<(EmptyMr, B), FilledMr<B>> {
///     mr.empty_now().map_err(|busy| busy.into_inner())
/// }
/// ```
///
/// # Invariants
///
/// - `handle` is a region of this kind, which is empty.
/// - Its state is the table of the domain's extension, valid as long as the domain is open.
pub struct EmptyMr(Handle<kfid_mr, Arc<Domain>, Ops>);

/// The table of the extension.
#[derive(Clone, Copy)]
struct Ops(NonNull<kfi_reuse_ops>);

// SAFETY: The table is never written, and any thread may call its functions.
unsafe impl Send for Ops {}
// SAFETY: The table is never written, and any thread may call its functions.
unsafe impl Sync for Ops {}

impl EmptyMr {
    /// Opens a region for memory of up to `pages` pages, bound to an endpoint. May sleep.
    ///
    /// Memory that does not begin at a page boundary is in one page more than its length says.
    ///
    /// # Errors
    ///
    /// - `ENOSYS`: the provider has no regions of this kind, or the domain was opened without
    ///   [`MrMode::ENDPOINT`].
    /// - `EINVAL`: the endpoint is of another domain, or `pages` is 0.
    /// - `E2BIG`: no region of the domain can have that many pages.
    /// - `ENOTCONN`: the endpoint is not enabled.
    /// - `ENOSPC`: the domain's limit of regions is reached, or the device has no more.
    /// - `ENOMEM`.
    /// - `ENODEV`: the device is removed.
    pub fn open(
        domain: &Arc<Domain>,
        endpoint: &impl BindsRegions,
        pages: usize,
    ) -> Result<Self, Errno> {
        let _noio = NoIo::enter();
        let ops = domain.reuse_ops()?;
        let endpoint = bound_to(endpoint);
        let mut mr = ptr::null_mut();
        // SAFETY: The domain is open as long as `domain`, and so is its table. The endpoint is open, as it
        // is borrowed. `mr` is a local.
        let ret = unsafe {
            op!(
                ops.as_ptr(),
                open(domain.fid(), endpoint, pages, &mut mr, ptr::null_mut())
            )
        }?;
        let mr = handle::opened(ret, mr)?;
        // INVARIANT: The call opened an empty region.
        Ok(Self(Handle::new(mr, domain.clone(), Ops(ops))))
    }

    /// Registers the memory with these rights, behind the requests that wait for more
    /// ([`TransferFlags::MORE`]). The peer may use the key once it has received a message that is posted on
    /// the endpoint after this.
    ///
    /// The registration goes to the device with the next request on the endpoint, by one doorbell. So
    /// the caller must post something at once, or [flush](MsgEndpoint::flush).
    ///
    /// # Context
    ///
    /// Any. Neither sleeps nor allocates.
    ///
    /// # Errors
    ///
    /// All errors have the empty region and the memory. Nothing was posted.
    ///
    /// - `EINVAL`: there is no memory, the memory isn't for these rights, or it has a gap. Each
    ///   bio_vec but the first must begin at a page boundary, and each but the last must end at
    ///   one.
    /// - `EFAULT`: the memory can't be registered.
    /// - `E2BIG`: the memory has more pages than the region was opened for.
    /// - `ENOMEM`: there is no memory for the mapping, or for the driver's work request.
    /// - `EAGAIN`: the endpoint's send queue is full, or a work item is replacing the region's
    ///   keys, which are used up. The caller may try again.
    /// - `ENOTCONN`: the connection has ended.
    /// - `EIO`: the memory can't be mapped for the device, or the device refuses the request.
    /// - `ENODEV`: the device is removed.
    pub fn fill<B: BioVecs>(
        self,
        memory: B,
        access: Access,
    ) -> Result<FilledMr<B>, Refused<(Self, B)>> {
        let may = (memory.is_readable() || !access.device_reads())
            && (memory.is_writable() || !access.device_writes());
        let filled = match may {
            true => self.call_fill(memory.bio_vecs(), access),
            false => Err(unfit(c"fill", c"memory that is not for these rights")),
        };
        match filled {
            // INVARIANT: The call has filled the region with this memory.
            Ok(()) => Ok(FilledMr {
                mr: ManuallyDrop::new(self),
                memory: ManuallyDrop::new(memory),
            }),
            Err(errno) => Err(Refused::new(errno, (self, memory))),
        }
    }

    fn call_fill(&self, memory: &[bio_vec], access: Access) -> Result<(), Errno> {
        let ops = self.0.lent().0.as_ptr();
        let (first, count) = (memory.as_ptr(), memory.len());
        let more = widen_u32(KFI_MORE);
        // SAFETY: The region is open, and so is its domain. The list has `count` entries, and its memory
        // stays until the region is empty: `FilledMr` sees to that.
        handle::result(unsafe {
            op!(
                ops,
                fill(self.0.as_ptr(), first, count, access.bits(), more)
            )
        }?)
    }

    /// Returns the domain. Any context.
    pub fn domain(&self) -> &Arc<Domain> {
        self.0.parent()
    }

    /// Closes the region. Sleeps.
    pub fn close(self) -> Result<(), CloseError<Self>> {
        match self.0.close() {
            Ok(_) => Ok(()),
            Err(error) => Err(error.map(Self)),
        }
    }
}

/// A region with memory that the peer with the key can reach.
///
/// The region owns the memory until it is emptied. Dropping it empties and closes the region, and sleeps.
///
/// If the device won't let go of the memory, [`BioVecs::leak`] gets it. Nothing else loses memory, and no
/// memory comes back twice.
///
/// # Invariants
///
/// `mr` is filled with `memory`. Both are taken out once, and last.
pub struct FilledMr<B: BioVecs> {
    mr: ManuallyDrop<EmptyMr>,
    memory: ManuallyDrop<B>,
}

impl<B: BioVecs> FilledMr<B> {
    /// Returns the key for the peer. Any context.
    pub fn key(&self) -> u64 {
        // SAFETY: The region is open as long as `self`, and the core has written its key before `fill` returned.
        unsafe { (&raw const (*self.as_raw()).key).read_volatile() }
    }

    /// Returns the address of the first byte for the peer. Any context.
    pub fn base(&self) -> u64 {
        // SAFETY: The region is open as long as `self`, and the core has written its base before `fill` returned.
        unsafe { (&raw const (*self.as_raw()).iova).read_volatile() }
    }

    /// Returns the number of bytes. Any context.
    pub fn len(&self) -> usize {
        let lengths = self.memory.bio_vecs().iter().map(|bv| index(bv.bv_len));
        lengths.fold(0, usize::saturating_add)
    }

    /// Checks whether the region has no bytes. A filled region always has some. Any context.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the owner of the memory, which the peer may access. Any context.
    pub fn memory(&self) -> &B {
        &self.memory
    }

    /// Empties the region without a wait, and returns the memory. No peer can reach it then.
    ///
    /// For a handler of a completion, when the peer has invalidated the key. A message
    /// that was posted after [`EmptyMr::fill`] must have completed, too: its completion reports that of the
    /// registration.
    ///
    /// # Context
    ///
    /// Any. Neither sleeps nor allocates.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`, with the filled region: the region needs a wait. Use [`empty`](Self::empty).
    pub fn empty_now(self) -> Result<(EmptyMr, B), Refused<Self>> {
        let (ops, mr) = (self.ops(), self.as_raw());
        // SAFETY: The region is open, and `self` is the only reference to it.
        let emptied = unsafe { op!(ops, empty_now(mr)) }.and_then(handle::result);
        match emptied {
            // SAFETY: The call has emptied the region.
            Ok(()) => Ok(unsafe { self.into_parts() }),
            Err(errno) => Err(Refused::new(errno, self)),
        }
    }

    /// Ends the key, unless the peer has invalidated it, and returns the memory. Sleeps until the
    /// device has let go of the memory.
    ///
    /// # Errors
    ///
    /// - `ENOTRECOVERABLE`: the device won't let go of the memory. [`BioVecs::leak`] got it, and the region is
    ///   closed.
    pub fn empty(self) -> Result<(EmptyMr, B), Errno> {
        match self.call_empty() {
            // SAFETY: The call has emptied the region.
            Ok(()) => Ok(unsafe { self.into_parts() }),
            // Dropped.
            Err(errno) => Err(errno),
        }
    }

    fn call_empty(&self) -> Result<(), Errno> {
        let _noio = NoIo::enter();
        let (ops, mr) = (self.ops(), self.as_raw());
        // SAFETY: The region is open, and `self` is the only reference to it.
        handle::result(unsafe { op!(ops, empty(mr)) }?)
    }

    fn ops(&self) -> *const kfi_reuse_ops {
        self.mr.0.lent().0.as_ptr()
    }

    fn as_raw(&self) -> *mut kfid_mr {
        self.mr.0.as_ptr()
    }

    /// Takes region and memory apart.
    ///
    /// # Safety
    ///
    /// The region must be empty.
    unsafe fn into_parts(self) -> (EmptyMr, B) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again, so each is taken once. The region is empty by this function's
        // contract, as `EmptyMr` demands.
        unsafe {
            (
                ManuallyDrop::take(&mut this.mr),
                ManuallyDrop::take(&mut this.memory),
            )
        }
    }
}

impl<B: BioVecs> Drop for FilledMr<B> {
    fn drop(&mut self) {
        let emptied = self.call_empty();
        // SAFETY: `self` is being dropped, so each is taken once.
        let (mr, memory) = unsafe {
            (
                ManuallyDrop::take(&mut self.mr),
                ManuallyDrop::take(&mut self.memory),
            )
        };
        match emptied {
            Ok(()) => drop(memory),
            Err(errno) => {
                leaked("memory of a region", errno);
                memory.leak();
            }
        }
        drop(mr);
    }
}

impl Domain {
    /// Returns the operations on regions that are filled again and again. They are valid as long as the domain is open.
    pub(super) fn reuse_ops(&self) -> Result<NonNull<kfi_reuse_ops>, Errno> {
        Ok(self.extension(REUSE_NAME)?.cast())
    }
}

impl<B: Local, C: Send + 'static> MsgEndpoint<Connected, B, C> {
    /// Posts the requests that wait for more ([`TransferFlags::MORE`], [`EmptyMr::fill`]). Any context.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the connection has ended.
    /// - `ENOSYS`: the provider doesn't support it.
    pub fn flush(&self) -> Result<(), Errno> {
        let ops = self.domain().reuse_ops()?;
        // SAFETY: The endpoint is open as long as `self`, and so is its domain.
        handle::result(unsafe { op!(ops.as_ptr(), flush(self.as_raw())) }?)
    }
}
