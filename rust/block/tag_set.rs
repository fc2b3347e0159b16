// SPDX-License-Identifier: GPL-2.0

//! Tag sets.
//!
//! Lock order: `TagSet::quiesced` before the block layer's own.

use crate::{
    driver::Ops,
    Driver, //
};
use block_bindings as b;
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    error::to_result,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    types::Opaque, //
};

/// How many requests can be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// In how many queues; the CPUs share them.
    pub queues: u32,
    /// How many in each.
    pub depth: u32,
    /// For how many milliseconds, before the driver is [told](Driver::timed_out); 0 is 30 seconds.
    pub timeout: u32,
}

/// The queues that disks share.
///
/// # Invariants
///
/// `inner` was allocated with the table of `D`.
#[pin_data(PinnedDrop)]
pub struct TagSet<D: Driver> {
    #[pin]
    inner: Opaque<bindings::blk_mq_tag_set>,
    /// Whether its disks are quiesced, those that come as well.
    #[pin]
    quiesced: Mutex<bool>,
    driver: PhantomData<fn() -> D>,
}

// SAFETY: Tag sets are not tied to a task.
unsafe impl<D: Driver> Send for TagSet<D> {}
// SAFETY: The calls on a shared tag set do their own locking.
unsafe impl<D: Driver> Sync for TagSet<D> {}

impl<D: Driver> TagSet<D> {
    /// Allocates a tag set. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no queue, or no request.
    /// - `ENOMEM`.
    pub fn new(shape: Shape) -> Result<Arc<Self>> {
        let sleeps = match D::MAY_SLEEP {
            true => bindings::BLK_MQ_F_BLOCKING,
            false => 0,
        };
        let plain = match D::SCHEDULED {
            true => 0,
            false => bindings::BLK_MQ_F_NO_SCHED_BY_DEFAULT,
        };
        let flags = sleeps | plain;
        let set = bindings::blk_mq_tag_set {
            ops: Ops::<D>::OPS,
            nr_maps: 1,
            nr_hw_queues: shape.queues,
            queue_depth: shape.depth,
            numa_node: bindings::NUMA_NO_NODE,
            timeout: jiffies(shape.timeout),
            flags,
            ..pin_init::zeroed()
        };
        let set = try_pin_init!(Self {
            // INVARIANT: Allocated here.
            inner <- Opaque::try_ffi_init(|slot: *mut bindings::blk_mq_tag_set| {
                // SAFETY: The slot is memory for a tag set, which stays where it is.
                unsafe { slot.write(set) };
                // SAFETY: `slot` has just got the fields that the function reads.
                to_result(unsafe { bindings::blk_mq_alloc_tag_set(slot) })
            }),
            quiesced <- new_mutex!(false),
            driver: PhantomData,
        }? Error);
        Arc::pin_init(set, GFP_KERNEL)
    }

    /// Has no more requests queued, of any disk, until [`unquiesce`](Self::unquiesce); nor of disks that are
    /// added meanwhile, which adding waits for. Sleeps until those that are being queued have been.
    pub fn quiesce(&self) {
        let mut quiesced = self.quiesced.lock();
        if !core::mem::replace(&mut *quiesced, true) {
            // SAFETY: The tag set is allocated, by the type invariant.
            unsafe { bindings::blk_mq_quiesce_tagset(self.as_ptr()) };
        }
    }

    /// Goes on. May sleep.
    pub fn unquiesce(&self) {
        let mut quiesced = self.quiesced.lock();
        if core::mem::replace(&mut *quiesced, false) {
            // SAFETY: The tag set is allocated, by the type invariant. All of its disks are
            // quiesced.
            unsafe { bindings::blk_mq_unquiesce_tagset(self.as_ptr()) };
        }
    }

    /// Has a disk made, which is quiesced if the others are. May sleep, but `make` must not wait for I/O.
    ///
    /// # Errors
    ///
    /// The errors of `make`, which returns a disk of this tag set.
    pub(crate) fn joined_by(
        &self,
        make: impl FnOnce() -> Result<NonNull<bindings::gendisk>>,
    ) -> Result<NonNull<bindings::gendisk>> {
        let quiesced = self.quiesced.lock();
        let disk = make()?;
        if *quiesced {
            // SAFETY: `make` has just returned the disk, so it is valid.
            unsafe { b::block_helper_quiesce_disk(disk.as_ptr()) };
        }
        Ok(disk)
    }

    pub(crate) fn as_ptr(&self) -> *mut bindings::blk_mq_tag_set {
        self.inner.get()
    }
}

/// Converts milliseconds to jiffies for the block layer.
fn jiffies(ms: u32) -> c_uint {
    let jiffies = kernel::time::msecs_to_jiffies(ms);
    c_uint::try_from(jiffies).unwrap_or(c_uint::MAX)
}

#[pinned_drop]
impl<D: Driver> PinnedDrop for TagSet<D> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant; disks have references, so there is none.
        unsafe { bindings::blk_mq_free_tag_set(self.inner.get()) };
    }
}
