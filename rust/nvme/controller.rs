// SPDX-License-Identifier: GPL-2.0

//! A controller: its memory, its queues and its state; and the list of created controllers.

use crate::{
    ctrl::{
        Ctrl,
        Work, //
    },
    host_queue::HostQueue,
    prelude::*,
    transport::Transport, //
};
use core::ops::Deref;

/// Number of maps from CPUs to queues (`HCTX_MAX_TYPES`).
pub(crate) const MAPS: usize = 3;

/// A controller that has been created.
pub(crate) struct Created(pub(crate) *mut b::nvme_ctrl);

// SAFETY: The controller is in the list until it is freed, and each use holds the list's lock.
unsafe impl Send for Created {}

kernel::sync::global_lock! {
    // SAFETY: `Registration::new` initialises the lock before anything else uses it.
    pub(crate) unsafe(uninit) static CREATED: Mutex<KVec<Created>> = KVec::new();
}

/// Removes a controller from the list. Returns false if it was not created. May sleep.
pub(crate) fn forget(ctrl: *mut b::nvme_ctrl) -> bool {
    let mut list = CREATED.lock();
    let count = list.len();
    list.retain(|created| created.0 != ctrl);
    list.len() < count
}

/// A controller.
///
/// It is freed by nvme-core's last reference to `ctrl`.
///
/// # Invariants
///
/// `ctrl` was initialised by nvme-core, unless the controller is being made. `works` is initialised.
#[repr(C)]
pub(crate) struct Controller<T: Transport> {
    /// First, so that a pointer to it is one to the controller.
    ctrl: Opaque<b::nvme_ctrl>,
    admin_tags: Opaque<bindings::blk_mq_tag_set>,
    io_tags: Opaque<bindings::blk_mq_tag_set>,
    pub(crate) works: Opaque<b::nvme_helper_works>,
    /// Pointers to `ctrl` and `works`.
    handle: Ctrl,
    /// The number of queues for each map. Written while no queue is connected.
    pub(crate) io_queues: UnsafeCell<[u32; MAPS]>,
    /// All queues that there can be, by number.
    pub(crate) queues: KVec<Arc<HostQueue<T>>>,
    /// The place of the target.
    pub(crate) target: T::Controller,
    pub(crate) has_admin_tags: Atomic<bool>,
    pub(crate) has_io_tags: Atomic<bool>,
}

// SAFETY: nvme-core's locks and states guard `ctrl`. The other fields are `Send`.
unsafe impl<T: Transport> Send for Controller<T> {}
// SAFETY: nvme-core's locks and states guard `ctrl`. Only setup writes `io_queues`, and one setup
// runs at a time.
unsafe impl<T: Transport> Sync for Controller<T> {}

impl<T: Transport> Controller<T> {
    /// Makes a controller for `options`, without telling nvme-core. May sleep.
    ///
    /// # Safety
    ///
    /// `options` must be valid. The caller must free them if it does not create the controller.
    pub(crate) unsafe fn new(
        options: *mut b::nvmf_ctrl_options,
        target: T::Controller,
    ) -> Result<NonNull<Self>> {
        // SAFETY: The caller promises that the options are valid.
        let given = unsafe {
            b::nvme_helper_limit_queues(options);
            &*options
        };
        let count = given.nr_io_queues + given.nr_write_queues + given.nr_poll_queues + 1;
        let mut queues = KVec::with_capacity(usize::try_from(count)?, GFP_KERNEL)?;
        let memory = KBox::<Self>::new_uninit(GFP_KERNEL | __GFP_ZERO)?;
        let this = NonNull::from(Box::leak(memory)).cast::<Self>();
        let raw = this.as_ptr();
        // SAFETY: Both are fields of the controller. They are used after they are initialised.
        let handle = unsafe { Ctrl::new((*raw).ctrl.get(), (*raw).works.get()) };
        let made = (0..count).try_for_each(|qid| {
            // SAFETY: The set is a field of the controller.
            let tags = unsafe {
                match qid {
                    0 => (*raw).admin_tags.get(),
                    _ => (*raw).io_tags.get(),
                }
            };
            // SAFETY: Queues are stopped and freed before the controller is.
            let queue = unsafe { HostQueue::new(handle, u16::try_from(qid)?, tags) }?;
            queues.push(queue, GFP_KERNEL).map_err(Error::from)
        });
        // SAFETY: The memory is zeroed and nobody else's. Each field that is no zeroed struct of C
        // is written before it is read.
        unsafe {
            (&raw mut (*raw).queues).write(queues);
            (&raw mut (*raw).target).write(target);
            (&raw mut (*raw).handle).write(handle);
            let ctrl = (*raw).ctrl.get();
            (*ctrl).opts = options;
            (*ctrl).queue_count = count;
            (*ctrl).sqsize = u16::try_from(given.queue_size)
                .unwrap_or(u16::MAX)
                .saturating_sub(1);
            (*ctrl).kato = given.kato;
            b::nvme_helper_count(1);
        }
        made.inspect_err(|_| {
            // SAFETY: nvme-core does not know the controller.
            unsafe { Self::free(this) };
        })?;
        Ok(this)
    }

    /// Frees a controller. May sleep.
    ///
    /// # Safety
    ///
    /// Nobody uses it, and its queues are freed.
    pub(crate) unsafe fn free(this: NonNull<Self>) {
        // SAFETY: The controller was allocated as a `KBox`, and the caller promises that nobody
        // uses it.
        drop(unsafe { KBox::from_raw(this.as_ptr()) });
        // SAFETY: Counted when it was made. The module may go from here on.
        unsafe { b::nvme_helper_count(-1) };
    }

    /// Returns the controller of nvme-core's.
    ///
    /// # Safety
    ///
    /// `ctrl` is that of a `Controller<T>` which exists while `'a` lasts.
    pub(crate) unsafe fn of<'a>(ctrl: *mut b::nvme_ctrl) -> &'a Self {
        // SAFETY: `ctrl` is the first field, and the caller promises that the controller exists.
        unsafe { &*ctrl.cast::<Self>() }
    }

    /// Returns the tag set of a queue, and the index of the queue in it.
    pub(crate) fn tags_of(&self, qid: u16) -> (*mut bindings::blk_mq_tag_set, u32) {
        match qid.checked_sub(1) {
            None => (self.admin_tags.get(), 0),
            Some(index) => (self.io_tags.get(), index.into()),
        }
    }

    /// Returns the admin queue.
    ///
    /// # Errors
    ///
    /// None that can happen, since each controller has one.
    pub(crate) fn admin(&self) -> Result<&Arc<HostQueue<T>>> {
        self.queues.first().ok_or(ENODEV)
    }

    /// Returns the I/O queues.
    pub(crate) fn io(&self) -> &[Arc<HostQueue<T>>] {
        self.queues.get(1..).unwrap_or_default()
    }

    /// Stops all queues, so that their requests end.
    pub(crate) fn stop_all(&self) {
        HostQueue::stop_all(self.queues.iter().map(Deref::deref));
    }

    /// Stops all queues if nobody wants the controller to connect. Looks again later.
    pub(crate) fn watch(&self) {
        if self.is_cancelled() {
            self.stop_all();
        }
        self.queue(Work::Watch);
    }

    /// Stops the queues whose connections broke, so that their requests end.
    pub(crate) fn stop_broken(&self) {
        // SAFETY: The works are initialised by the invariant. C accesses the field by atomic operations.
        let updating = unsafe { Atomic::from_ptr(&raw mut (*self.works.get()).updating) };
        // Pairs with the release in `nvme_helper_set_updating()`: stopping a queue looks for its requests.
        if updating.load(Acquire) {
            return;
        }
        for queue in self.queues.iter().filter(|queue| queue.is_broken()) {
            if !self.recover(fmt!("queue {}: connection lost", queue.qid)) {
                queue.stop();
            }
        }
    }
}

impl<T: Transport> Deref for Controller<T> {
    type Target = Ctrl;

    fn deref(&self) -> &Ctrl {
        &self.handle
    }
}
