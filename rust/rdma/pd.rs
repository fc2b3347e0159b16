// SPDX-License-Identifier: GPL-2.0

//! Protection domains.

mod users;

pub use self::users::Others;

use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

use core::ptr::NonNull;

use self::users::Ours;
use crate::device::Device;

/// A protection domain: keys of regions in it are good on queue pairs in it, and nowhere else.
///
/// Wraps the C `struct ib_pd`, and holds its device.
///
/// Objects on it that are this crate's are [counted](crate::Counted). Others may make some too, through
/// [`Pd::as_raw`]. Dropping the last reference
/// waits until they are gone, however long that takes, and says in the log how many there are:
/// freeing a domain under its users would be worse.
///
/// Objects of this crate's that the device would not destroy are not waited for. They are leaked,
/// and the domain with them, since it can't be freed before them.
///
/// # Invariants
///
/// `pd` is a protection domain of `device`, and `ours` counts what this crate has on it.
///
/// # Examples
///
/// ```ignore
/// let pd = Pd::alloc(device)?;
/// let region = FastMr::alloc(&pd, Kind::Pages, 16)?;
/// ```
pub struct Pd {
    pd: NonNull<rdma_bindings::ib_pd>,
    device: ARef<Device>,
    ours: Ours,
    /// The device tells when a queue pair in error takes no more shared receives.
    last_wqe: Atomic<bool>,
}

// SAFETY: A protection domain is not tied to a task.
unsafe impl Send for Pd {}

// SAFETY: The C side may be called with the same domain from several tasks at once.
unsafe impl Sync for Pd {}

impl Pd {
    /// Allocates a protection domain. May sleep.
    pub fn alloc(device: &Device) -> Result<Arc<Self>> {
        // SAFETY: The device is there.
        let pd = from_err_ptr(unsafe { rdma_bindings::rdma_helper_alloc_pd(device.as_raw()) })?;

        // INVARIANT: `pd` has just been made on `device`, and nothing on it.
        let pd = Self {
            pd: NonNull::new(pd).ok_or(ENOMEM)?,
            device: device.into(),
            ours: Ours::new(),
            last_wqe: Atomic::new(device.reports_last_wqe()),
        };
        // Freed again if this fails.
        Ok(Arc::new(pd, GFP_KERNEL)?)
    }

    /// The device.
    pub fn device(&self) -> &ARef<Device> {
        &self.device
    }

    /// The raw pointer, for handing on to C, where objects may be made on the domain.
    ///
    /// Valid as long as this is held, or an object is left on it.
    pub fn as_raw(&self) -> *mut rdma_bindings::ib_pd {
        self.pd.as_ptr()
    }

    /// The key for memory that has been mapped for the device, at this side only. Any context.
    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: The domain is there, and has had its key since it was allocated.
        unsafe { (*self.as_raw()).local_dma_lkey }
    }

    /// The number by which `rdma resource show pd` knows it.
    pub fn id(&self) -> u32 {
        // SAFETY: The domain is there, and has had its number since it was allocated.
        unsafe { (*self.as_raw()).res.id }
    }

    /// Returns whether the device tells when a queue pair in error takes no more shared receives. Any context.
    pub(crate) fn reports_last_wqe(&self) -> bool {
        self.last_wqe.load(Relaxed)
    }

    /// Notes that the device has not told that. Any context.
    pub(crate) fn no_last_wqe(&self) {
        self.last_wqe.store(false, Relaxed);
    }

    /// How many objects others have on the domain. Doesn't sleep.
    ///
    /// While objects are being made and destroyed this may be too much, but never too little.
    pub fn foreign_users(&self) -> usize {
        self.ours.at_most(|| self.users())
    }

    /// Who but this crate has objects on the domain, on which none is being made. Doesn't sleep.
    pub fn others(&self) -> Others {
        self.ours.others(|| self.users())
    }

    /// How many objects there are on the domain, anybody's.
    fn users(&self) -> u64 {
        // SAFETY: The domain is there, and the C side uses the counter atomically only.
        let users = unsafe { Atomic::<i32>::from_ptr(&raw mut (*self.as_raw()).usecnt.counter) };
        u64::try_from(users.load(Acquire)).unwrap_or(0)
    }

    /// To be called after an object has been made on the domain.
    pub(crate) fn object_made(&self) {
        self.ours.made();
    }

    /// To be called before an object is destroyed, once for each [`Pd::object_made`].
    pub(crate) fn object_goes(&self) {
        self.ours.goes();
    }

    /// To be called after [`Pd::object_goes`] when the object was destroyed.
    pub(crate) fn object_gone(&self) {
        self.ours.is_done(false);
    }

    /// To be called after [`Pd::object_goes`] if the device would not destroy the object: it stays
    /// for good. Says so in the log.
    pub(crate) fn object_leaked(&self, what: &str, error: Error) {
        self.ours.is_done(true);
        pr_err!(
            "{}: leaked a {what} that the device would not destroy: {}\n",
            self.device.name(),
            error.to_errno()
        );
    }

    /// Leaves the C object to itself.
    fn leak(&self) {
        let device = self.device.as_raw();
        // SAFETY: The domain is one of the device's, and nothing frees it.
        unsafe { rdma_bindings::rdma_helper_disown(device, &raw mut (*self.as_raw()).res) };
    }
}

/// How long to sleep between looks at a domain that still has users.
const WAIT: Delta = Delta::from_millis(50);

/// After how many of these to say so in the log again.
const WAITS_PER_MESSAGE: u32 = 200;

impl Drop for Pd {
    fn drop(&mut self) {
        let mut waits = 0;
        // What this crate makes holds an `Arc<Pd>`: it is gone now, or leaked.
        while self.foreign_users() > 0 {
            // The first one may just be on its way out.
            if waits % WAITS_PER_MESSAGE == 1 {
                pr_warn!(
                    "{}: a protection domain waits for {} objects that others have on it\n",
                    self.device.name(),
                    self.foreign_users()
                );
            }
            fsleep(WAIT);
            waits += 1;
        }
        let leaked = self.ours.leaked();
        if leaked > 0 {
            pr_warn!(
                "{}: leaked a protection domain, for {leaked} objects on it that were leaked\n",
                self.device.name()
            );
            return self.leak();
        }

        // SAFETY: Nothing uses the domain any more, and it is freed only here.
        let ret =
            unsafe { rdma_bindings::ib_dealloc_pd_user(self.as_raw(), core::ptr::null_mut()) };
        if ret != 0 {
            pr_err!(
                "{}: leaked a protection domain that the device would not destroy: {ret}\n",
                self.device.name()
            );
            self.leak();
        }
    }
}
