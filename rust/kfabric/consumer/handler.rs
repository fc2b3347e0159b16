// SPDX-License-Identifier: GPL-2.0

//! Handlers of queues, which are taken away with the module that they are part of.
//!
//! Lock order: `HOOKS` is a leaf; no handler is called or dropped under it.

use super::{
    Completions,
    Events, //
};
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
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    }, //
};
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
use kfi_bindings::{
    kfid_cq,
    kfid_eq, //
};

/// What a queue's owner wants to be told.
pub trait EventHandler: Send + Sync + 'static {
    /// There is something to read, and all of it should be: it is called again for the first event
    /// after someone has found the queue empty. Process context; may sleep, but not close event
    /// queues. Allocations in it don't wait for I/O.
    fn events(&self, events: Events<'_>);
}

/// What a completion queue's owner wants to be told.
pub trait CompletionHandler: Send + Sync + 'static {
    /// There is something to read, and all of it should be: it is called again for the first
    /// completion after someone has found the queue empty.
    ///
    /// In any context, softirq mostly, and so it must not sleep, nor drop anything that is closed by
    /// being dropped. One call at a time.
    fn completions(&self, completions: Completions<'_>);
}

/// The handler of a queue that has none.
pub enum NoHandler {}

impl EventHandler for NoHandler {
    fn events(&self, _events: Events<'_>) {
        match *self {}
    }
}

impl CompletionHandler for NoHandler {
    fn completions(&self, _completions: Completions<'_>) {
        match *self {}
    }
}

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

    /// What [`events`] or [`completions`] is to be called with.
    pub(super) fn as_context(&self) -> *mut c_void {
        Arc::as_ptr(&self.0).cast_mut().cast()
    }
}

impl<H: ?Sized + Send + Sync> Drop for Hooked<H> {
    fn drop(&mut self) {
        self.0.take_away();
    }
}

/// Calls the handler of an event queue, unless it was taken away. Sleeps if that does.
///
/// # Safety
///
/// `eq` is an open queue. `context` came from [`Hooked::as_context`] of such a handler, and that is
/// not dropped before the queue is closed, which waits for this call.
pub(super) unsafe extern "C" fn events(eq: *mut kfid_eq, context: *mut c_void) {
    let Some(raw) = NonNull::new(eq) else {
        return;
    };
    // SAFETY: By the requirements of this function.
    let hook = unsafe { &*context.cast::<Hook<dyn EventHandler>>() };
    if let Some(inside) = hook.handler.enter() {
        inside.get().events(Events(raw, PhantomData));
    }
}

/// Calls the handler of a completion queue, unless it was taken away. Any context.
///
/// # Safety
///
/// As for [`events`].
pub(super) unsafe extern "C" fn completions(cq: *mut kfid_cq, context: *mut c_void) {
    let Some(raw) = NonNull::new(cq) else {
        return;
    };
    // SAFETY: By the requirements of this function.
    let hook = unsafe { &*context.cast::<Hook<dyn CompletionHandler>>() };
    if let Some(inside) = hook.handler.enter() {
        inside.get().completions(Completions(raw, PhantomData));
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
