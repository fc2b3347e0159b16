// SPDX-License-Identifier: GPL-2.0

//! Protection domains, and the objects that this crate or other users have on them.

use crate::prelude::*;
use kernel::time::{
    delay::fsleep,
    Delta, //
};

/// A protection domain: keys of regions in it are good on queue pairs in it, and nowhere else.
///
/// Wraps the C `struct ib_pd`, and holds its device.
///
/// This crate [counts](crate::Counted) its objects on the domain. Others may make objects, too,
/// through [`Pd::as_raw`]. Dropping the last reference waits until all objects are gone, however
/// long that takes, and logs their number. Freeing a domain under its users would be worse.
///
/// The drop does not wait for objects of this crate that the device would not destroy. They are
/// leaked, and the domain with them, since it can't be freed before them.
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
    pub(crate) device: ARef<Device>,
    /// The key for memory that is mapped for the device, for local access only.
    pub(crate) local_key: u32,
    ours: Ours,
    /// True if the device reports when a queue pair in error takes no more shared receives.
    pub(crate) last_wqe: Atomic<bool>,
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
        let pd = NonNull::new(pd).ok_or(ENOMEM)?;
        // INVARIANT: `pd` has just been made on `device`, and nothing on it.
        let pd = Self {
            // SAFETY: `pd` was just allocated with its key.
            local_key: unsafe { pd.as_ref().local_dma_lkey },
            pd,
            device: device.into(),
            ours: Ours::new(),
            last_wqe: Atomic::new(device.reports_last_wqe()),
        };
        // Freed again if this fails.
        Ok(Arc::new(pd, GFP_KERNEL)?)
    }

    /// Returns the device.
    pub fn device(&self) -> &ARef<Device> {
        &self.device
    }

    /// Returns the raw pointer. C code may create objects on the domain.
    ///
    /// Valid as long as this is held, or an object is left on it.
    pub fn as_raw(&self) -> *mut rdma_bindings::ib_pd {
        self.pd.as_ptr()
    }

    /// Returns the key for memory that is mapped for the device, for local access only. Any
    /// context.
    pub fn local_key(&self) -> u32 {
        self.local_key
    }

    /// Returns the number of the domain in `rdma resource show pd`.
    pub fn id(&self) -> u32 {
        // SAFETY: The domain is there, and has had its number since it was allocated.
        unsafe { (*self.as_raw()).res.id }
    }

    /// Returns the number of other users' objects on the domain. Does not sleep.
    ///
    /// While objects are being made and destroyed this may be too much, but never too little.
    pub fn foreign_users(&self) -> usize {
        self.ours.at_most(|| self.users())
    }

    /// Returns the state of other users' objects on the domain. None may be created meanwhile. Does
    /// not sleep.
    pub fn others(&self) -> Others {
        self.ours.others(|| self.users())
    }

    /// Returns the number of all objects on the domain.
    fn users(&self) -> u64 {
        // SAFETY: The domain is there, and the C side uses the counter atomically only.
        let users = unsafe { Atomic::<i32>::from_ptr(&raw mut (*self.as_raw()).usecnt.counter) };
        u64::try_from(users.load(Acquire)).unwrap_or(0)
    }

    /// Leaks the C object.
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
        // Objects of this crate hold an `Arc<Pd>`, so they are destroyed or leaked here.
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

/// The objects of other users on a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Nobody.
    None,
    /// Number of other users' objects.
    Some(usize),
    /// It can't be told just now: objects of this crate's are being destroyed, and may count as others' until
    /// they are.
    Unsettled,
}

/// The objects that this crate has on a domain.
///
/// # Invariants
///
/// Of these objects `made` counts those that were made, after each was; `gone` those that are destroyed or
/// leaked, before each is; `done` the same, after each was; and `leaked` those that the device would not destroy,
/// after each was given up.
pub(super) struct Ours {
    made: Atomic<u64>,
    gone: Atomic<u64>,
    done: Atomic<u64>,
    leaked: Atomic<u64>,
}

impl Ours {
    pub(super) const fn new() -> Self {
        Self {
            made: Atomic::new(0),
            gone: Atomic::new(0),
            done: Atomic::new(0),
            leaked: Atomic::new(0),
        }
    }

    /// Counts a created object. Any context.
    pub(super) fn made(&self) {
        self.made.fetch_add(1, Full);
    }

    /// Counts an object that is about to be destroyed. Any context.
    pub(super) fn goes(&self) {
        self.gone.fetch_add(1, Full);
    }

    /// Counts a destroyed or leaked object. Any context.
    pub(super) fn is_done(&self, leaked: bool) {
        if leaked {
            self.leaked.fetch_add(1, Full);
        }
        self.done.fetch_add(1, Full);
    }

    /// Returns the number of leaked objects. Any context.
    pub(super) fn leaked(&self) -> u64 {
        self.leaked.load(Acquire)
    }

    /// Returns an upper bound of other users' objects among `users` objects. It is exact if no
    /// object is created or destroyed meanwhile. Any context.
    pub(super) fn at_most(&self, users: impl Fn() -> u64) -> usize {
        loop {
            // Read first: what is leaked stays in `users`. The acquiring loads keep the order.
            let leaked = self.leaked();
            let (made, gone) = (self.made.load(Acquire), self.gone.load(Acquire));
            let users = users();
            // Neither has moved, so nothing of ours can have gone from `users` unseen. The fully ordered `fetch_add`
            // keeps both reads after that of `users`. A load would not.
            if made == self.made.fetch_add(0, Full) && gone == self.gone.load(Relaxed) {
                let ours = made.saturating_sub(gone).saturating_add(leaked);
                return usize::try_from(users.saturating_sub(ours)).unwrap_or(usize::MAX);
            }
        }
    }

    /// Returns the state of other users' objects among `users` objects. None may be created
    /// meanwhile. Any context.
    pub(super) fn others(&self, users: impl Fn() -> u64) -> Others {
        let gone = self.gone.load(Acquire);
        let done = self.done.load(Acquire);
        match self.at_most(users) {
            0 => Others::None,
            // None was on its way out when this began, and none is since.
            users if done == gone && gone == self.gone.load(Acquire) => Others::Some(users),
            _ => Others::Unsettled,
        }
    }
}

/// An object on a protection domain that counts as this crate's, not as one of others.
///
/// The creator of an object must count it at once, be it this crate or other code, as
/// `rdma_create_qp()`. The object keeps its domain valid.
///
/// # Examples
///
/// ```ignore
/// // SAFETY: ...
/// to_result(unsafe { bindings::rdma_create_qp(id, pd.as_raw(), &mut attr) })?;
/// let counted = Counted::new(&pd);
/// ...
/// counted.end("queue pair", || {
///     // SAFETY: ...
///     unsafe { bindings::rdma_destroy_qp(id) };
///     Ok(())
/// })?;
/// ```
#[must_use]
pub struct Counted {
    /// The protection domain.
    pub(crate) pd: Arc<Pd>,
}

impl Counted {
    /// Counts an object that has just been made. Any context.
    pub fn new(pd: &Arc<Pd>) -> Self {
        pd.ours.made();
        Self { pd: pd.clone() }
    }

    /// Destroys the object by `destroy`. If that fails it has been leaked, which the log says, and
    /// the domain will be with it. Sleeps as `destroy` does.
    pub fn end(self, what: &str, destroy: impl FnOnce() -> Result) -> Result {
        let pd = self.pd;
        pd.ours.goes();
        let ended = destroy();
        pd.ours.is_done(ended.is_err());
        ended.inspect_err(|error| {
            pr_err!(
                "{}: leaked a {what} that the device would not destroy: {}\n",
                pd.device.name(),
                error.to_errno()
            )
        })
    }
}

#[kernel::macros::kunit_tests(rdma_pd_users)]
mod tests {
    use super::*;

    #[test]
    fn only_others_are_others() {
        let ours = Ours::new();
        for _ in 0..3 {
            ours.made();
        }
        assert_eq!(ours.others(|| 3), Others::None);
        assert_eq!(ours.others(|| 5), Others::Some(2));
        ours.goes();
        ours.is_done(true);
        // It is still there.
        assert_eq!(ours.others(|| 3), Others::None);
        ours.goes();
        ours.is_done(false);
        assert_eq!(ours.others(|| 2), Others::None);
        assert_eq!(ours.others(|| 3), Others::Some(1));
    }

    #[test]
    fn what_is_on_its_way_out_is_nobodys() {
        let ours = Ours::new();
        ours.made();
        ours.made();
        ours.goes();
        // Still there, or not any more.
        assert_eq!(ours.others(|| 2), Others::Unsettled);
        assert_eq!(ours.others(|| 1), Others::None);
        ours.is_done(false);
        assert_eq!(ours.others(|| 1), Others::None);
        assert_eq!(ours.others(|| 2), Others::Some(1));
        // One begins while it is looked, after another has ended.
        let looked = Atomic::new(0u32);
        let users = || {
            if looked.fetch_add(1, Relaxed) == 0 {
                ours.goes();
            }
            1
        };
        assert_eq!(ours.others(users), Others::Unsettled);
    }
}
