// SPDX-License-Identifier: GPL-2.0

//! Handlers of queues, which are removed together with their module.
//!
//! Lock order: `HOOKS` is a leaf. No handler is called or dropped under it.

use crate::support::{
    errno::Errno,
    gate::{
        Gate,
        Shared, //
    },
    module::Owner,
    refusal::Refusal,
    task, //
};
use core::ptr;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// The handler of a queue that has none.
pub enum NoHandler {}

/// A handler, until somebody takes it away: who closes its queue, or who unloads its module.
#[pin_data]
struct Hook<H: ?Sized> {
    #[pin]
    handler: Gate<KBox<H>, Shared>,
    owner: Owner,
    /// The task that drops the handler, or has.
    dropper: Atomic<usize>,
}

/// A handler of any kind.
trait AnyHook: Send + Sync {
    /// Whose it is.
    fn owner(&self) -> Owner;

    /// Drops the handler, which isn't called any more when this returns. Sleeps until it doesn't run,
    /// so it is not for the handler itself.
    fn take_away(&self);
}

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls before there can be a queue.
    unsafe(uninit) static HOOKS: Mutex<KVec<Arc<dyn AnyHook>>> = KVec::new();
}

/// Initializes the list.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe { HOOKS.init() };
}

/// Frees the list. To be called last; a static is never dropped.
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
            // It had the last reference to its own queue, which is closed while it is dropped.
            None if self.dropper.load(Relaxed) == task::current() => return,
            None => self.handler.wait_gone(),
        }
        // Not earlier: who unloads the module has to find it, to wait until it was dropped.
        HOOKS.lock().retain(|other| !ptr::addr_eq(&**other, self));
    }
}

/// A handler on a queue; taken away when dropped, which sleeps until it doesn't run.
pub(super) struct Hooked<H: ?Sized + Send + Sync>(Arc<Hook<H>>);

impl<H: ?Sized + Send + Sync + 'static> Hooked<H> {
    /// Takes a handler whose code is part of `owner`. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE` if that module is on its way out.
    /// - `ENOMEM`.
    pub(super) fn new(handler: KBox<H>, owner: Owner) -> Result<Self, Errno> {
        let hook = try_pin_init!(Hook {
            handler <- Gate::new(handler),
            owner,
            dropper: Atomic::new(0),
        }? Error);
        let hook = Arc::pin_init(hook, GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        let mut hooks = HOOKS.lock();
        // Under the lock: either this sees that the module goes, or `module_gone` sees the hook.
        if !owner.is_live() {
            let refusal = Refusal::new(Errno::EOPBADSTATE, c"the handler's module is unloaded");
            refusal.report();
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

/// Calls `call` with the handler, unless it was taken away. Any context.
///
/// # Safety
///
/// `context` came from [`Hooked::as_context`] of a handler of type `H`, whose `Hooked` isn't dropped
/// before this returns.
pub(super) unsafe fn with_handler<H: ?Sized + Send + Sync>(
    context: *mut c_void,
    call: impl FnOnce(&H),
) {
    // SAFETY: `context` points to a `Hook<H>` that its `Hooked` keeps, by the caller's promise.
    let hook = unsafe { &*context.cast::<Hook<H>>() };
    if let Some(inside) = hook.handler.enter() {
        call(inside.get());
    }
}

/// Takes away the handlers that a module has left on queues. Sleeps until none of them runs.
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
