// SPDX-License-Identifier: GPL-2.0

//! Handlers of queues, which are removed together with their module.
//!
//! Lock order: `HOOKS` is a leaf. No handler is called or dropped under it.

use super::*;
use crate::support::{
    gate::{
        Gate,
        Shared, //
    },
    module::Owner,
    task, //
};

/// The handler type of a queue without a handler.
pub enum NoHandler {}

/// A handler, until its queue is closed or its module is unloaded.
#[pin_data]
struct Hook<H: ?Sized> {
    #[pin]
    handler: Gate<KBox<H>, Shared>,
    owner: Owner,
    /// The task that drops or dropped the handler.
    dropper: Atomic<usize>,
}

/// A [`Hook`] with a handler of any type.
trait AnyHook: Send + Sync {
    /// Returns the owner of the handler's code.
    fn owner(&self) -> Owner;

    /// Drops the handler. Sleeps until the handler has returned, so the handler itself must not
    /// call it.
    fn take_away(&self);
}

kernel::sync::global_lock! {
    // SAFETY: `init` initializes it. The module calls that before it opens a queue.
    unsafe(uninit) static HOOKS: Mutex<KVec<Arc<dyn AnyHook>>> = KVec::new();
}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before any other function of this file.
pub(crate) unsafe fn init() {
    // SAFETY: This is called once, and before any use of `HOOKS`, by this function's contract.
    unsafe { HOOKS.init() };
}

/// Frees the list, because a static is never dropped. Must be the last call.
pub(crate) fn exit() {
    let hooks = core::mem::take(&mut *HOOKS.lock());
    drop(hooks);
}

impl<H: ?Sized + Send + Sync> AnyHook for Hook<H> {
    fn owner(&self) -> Owner {
        self.owner
    }

    fn take_away(&self) {
        match self.handler.shut() {
            Some(shut) => {
                let drained = shut.drain();
                self.dropper.store(task::current(), Relaxed);
                drained.take_away();
            }
            // The handler had the last reference to its own queue. Dropping the handler closes the
            // queue.
            None if self.dropper.load(Relaxed) == task::current() => return,
            None => self.handler.wait_gone(),
        }
        // Removed last: `module_gone` must find the hook to wait until the handler is dropped.
        HOOKS.lock().retain(|other| !ptr::addr_eq(&**other, self));
    }
}

/// The handler of a queue. Dropping it sleeps until the handler has returned.
pub(super) struct Hooked<H: ?Sized + Send + Sync>(Arc<Hook<H>>);

impl<H: ?Sized + Send + Sync + 'static> Hooked<H> {
    /// Adds a handler whose code is part of `owner`, for the slot `call` that opens its queue. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: the owner is unknown.
    /// - `EOPBADSTATE`: that module is being unloaded.
    /// - `ENOMEM`.
    pub(super) fn new(handler: KBox<H>, owner: Option<Owner>, call: &CStr) -> Result<Self, Errno> {
        let owner = owner.ok_or(Errno::EINVAL)?;
        let hook = try_pin_init!(Hook {
            handler <- Gate::new(handler),
            owner,
            dropper: Atomic::new(0),
        }? Error);
        let hook = Arc::pin_init(hook, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        let mut hooks = HOOKS.lock();
        // Under the lock: either `is_live` is false here, or `module_gone` finds the hook.
        if !owner.is_live() {
            let refusal = Refusal::new(Errno::EOPBADSTATE, c"the handler's module is unloaded");
            refusal.report(call);
            return Err(refusal.errno());
        }
        hooks.push(hook.clone(), GFP_KERNEL)?;
        Ok(Self(hook))
    }

    /// Returns the context that C passes to the handler's `extern "C"` function. Any context.
    pub(super) fn as_context(&self) -> *mut c_void {
        Arc::as_ptr(&self.0).cast_mut().cast()
    }
}

impl<H: ?Sized + Send + Sync> Drop for Hooked<H> {
    fn drop(&mut self) {
        self.0.take_away();
    }
}

/// Calls `call` with the handler, unless it was removed. Any context.
///
/// # Safety
///
/// `context` came from [`Hooked::as_context`] of a handler of type `H`. Its `Hooked` isn't dropped
/// before this function returns.
pub(super) unsafe fn with_handler<H: ?Sized + Send + Sync>(
    context: *mut c_void,
    call: impl FnOnce(&H),
) {
    // SAFETY: `context` points to a `Hook<H>`, which its `Hooked` keeps alive, by this function's
    // contract.
    let hook = unsafe { &*context.cast::<Hook<H>>() };
    if let Some(inside) = hook.handler.enter() {
        call(inside.get());
    }
}

/// Removes the handlers that a module left on queues. Sleeps until none of them runs.
pub(crate) fn module_gone(owner: Owner) {
    loop {
        let hooks = HOOKS.lock();
        let Some(hook) = hooks.iter().find(|hook| hook.owner() == owner).cloned() else {
            return;
        };
        drop(hooks);
        pr_warn!("a module goes that has left a handler on a queue\n");
        hook.take_away();
    }
}
