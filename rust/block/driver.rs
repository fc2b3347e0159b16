// SPDX-License-Identifier: GPL-2.0

//! The interface of a block driver.

use crate::{
    Request,
    Status, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

/// A request that can't be taken now, and is to be queued again a little later.
pub struct Busy(pub Request);

/// A block driver.
///
/// # Examples
///
/// ```ignore
/// /// A disk that is empty, and takes everything.
/// struct Void;
///
/// impl Driver for Void {
///     const MAY_SLEEP: bool = false;
///     type Disk = Void;
///
///     fn queue(_disk: ArcBorrow<'_, Void>, request: Request, _last: bool) -> Result<(), Busy> {
///         request.end(Status::Ok);
///         Ok(())
///     }
/// }
/// ```
pub trait Driver: Sized + 'static {
    /// Whether queueing may sleep.
    const MAY_SLEEP: bool;

    /// Whether requests are sorted before they come, unless the administrator says something else: by the kernel's
    /// scheduler for disks with one queue, whose requests all go to a work item then.
    const SCHEDULED: bool = true;

    /// The driver's part of a disk.
    type Disk: Send + Sync + 'static;

    /// Begins a request; `last` if no other follows at once.
    ///
    /// By several tasks at once. Some of them may be writing memory back in order to free it, so
    /// allocations in it must not wait for I/O. It sleeps only if [`MAY_SLEEP`](Self::MAY_SLEEP) says so.
    fn queue(disk: ArcBorrow<'_, Self::Disk>, request: Request, last: bool) -> Result<(), Busy>;

    /// Reports that the request with this tag of this queue has run longer than the timeout. Its
    /// timeout begins again. The driver may end the request as always. May sleep.
    fn timed_out(_disk: ArcBorrow<'_, Self::Disk>, _queue: u32, _tag: u32) {}
}

/// The functions that the block layer calls (`struct blk_mq_ops`).
pub(crate) struct Ops<D>(PhantomData<D>);

impl<D: Driver> Ops<D> {
    /// The operations of a driver, which are part of its module.
    pub(crate) const OPS: &'static bindings::blk_mq_ops = &bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
        timeout: Some(Self::timeout),
        ..pin_init::zeroed()
    };

    /// Returns the driver's part of the disk that a request is for.
    ///
    /// # Safety
    ///
    /// The request was queued on a disk of this driver, and has not ended while `'a` lasts.
    unsafe fn disk<'a>(rq: *mut bindings::request) -> ArcBorrow<'a, D::Disk> {
        // SAFETY: The request is of a disk of this driver and has not ended, as the caller
        // promises. The disk stays as long as one of its requests is under way. `queuedata` is a
        // reference to its `D::Disk`.
        unsafe { ArcBorrow::from_raw((*(*rq).q).queuedata.cast::<D::Disk>()) }
    }

    /// Takes a request.
    ///
    /// # Safety
    ///
    /// For the block layer only, which has queued it on a disk of this driver.
    unsafe extern "C" fn queue_rq(
        _hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: The block layer passes a valid `bd` for the call.
        let (rq, last) = unsafe { ((*bd).rq, (*bd).last) };
        let Some(raw) = NonNull::new(rq) else {
            return Status::Io.raw();
        };
        // SAFETY: It was queued on a disk of this driver. The disk doesn't go before this has returned.
        let disk = unsafe { Self::disk(rq) };
        // SAFETY: It was just queued, and only this starts it.
        let request = unsafe { Request::start(raw) };
        // SAFETY: Only changes flags of the current task, which are changed back below.
        let flags = unsafe { block_bindings::block_helper_begin_queueing() };
        let queued = D::queue(disk, request, last);
        // SAFETY: The flags came from the call above, of this task.
        unsafe { block_bindings::block_helper_end_queueing(flags) };
        match queued {
            Ok(()) => Status::Ok.raw(),
            Err(Busy(request)) if request.is(raw) => {
                // Not the driver's any more.
                let _ = request.into_raw();
                Status::NoMemory.raw()
            }
            Err(Busy(request)) => {
                // Another one: this one is the driver's still.
                request.requeue();
                Status::Ok.raw()
            }
        }
    }

    /// Reports a request that takes too long to the driver.
    ///
    /// # Safety
    ///
    /// For the block layer only, which has a reference to the request.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: The request is of a disk of this driver. The caller looks for requests that take
        // too long with a reference to the disk's queue, so the disk isn't removed.
        let (disk, queue, tag) = unsafe { (Self::disk(rq), (*(*rq).mq_hctx).queue_num, (*rq).tag) };
        if let Ok(tag) = u32::try_from(tag) {
            D::timed_out(disk, queue, tag);
        }
        bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER
    }
}

/// Gives the driver's part of a disk to the block layer.
pub(crate) fn into_raw<T>(disk: Arc<T>) -> *mut c_void {
    Arc::into_raw(disk).cast_mut().cast()
}
