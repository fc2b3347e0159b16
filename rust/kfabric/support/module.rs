// SPDX-License-Identifier: GPL-2.0

//! The module whose code the core was given to call.
//!
//! Safe code can forget the object that would take a callback back, and then unload its module. So
//! the core notes the [`Owner`] of each callback. When a module is unloaded, the core drops the
//! callbacks that the module has left, before its code is freed.
//!
//! Nothing here takes a reference to the module. It would have to be held until the callback is
//! taken back. Most modules do that when they are unloaded: they could never be unloaded.
//!
//! Lock order: `LEAVING` is taken before all locks that callbacks of a module take.

use crate::prelude::*;
use core::ptr::null_mut;
use kernel::{
    bindings,
    sync::atomic::Full, //
};

/// The module that a callback is part of.
///
/// # Invariants
///
/// The module exists as long as its code can run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(NonNull<bindings::module>);

// SAFETY: An owner only names a module, and any thread may ask for its state.
unsafe impl Send for Owner {}
// SAFETY: An owner never changes, and any thread may ask for its module's state.
unsafe impl Sync for Owner {}

impl Owner {
    /// Takes the module from C; `None` stands for code that is never unloaded.
    ///
    /// # Safety
    ///
    /// `module` is null, or the module of the code that this stands for.
    pub(crate) unsafe fn from_raw(module: *mut bindings::module) -> Option<Self> {
        // INVARIANT: The caller promises that `module` is the module of the code.
        NonNull::new(module).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut bindings::module {
        self.0.as_ptr()
    }

    /// Checks whether the module's code may still be given to the core. A module that is being
    /// unloaded could give a callback too late for the core to drop it. Any context.
    pub(crate) fn is_live(self) -> bool {
        // SAFETY: The module exists by the invariant: its code calls this or waits for it.
        unsafe { kfi_bindings::kfi_helper_module_is_live(self.as_ptr()) }
    }
}

/// Number of callbacks of leaving modules that have returned.
static RETURNED: Atomic<u64> = Atomic::new(0);

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls before a module can be waited for.
    unsafe(uninit) static LEAVING: Mutex<()> = ();
}

/// Initializes the lock.
///
/// # Safety
///
/// Called once, before any other function of this file.
pub(crate) unsafe fn init() {
    // SAFETY: The caller promises that this is the only call, and the first use of the lock.
    unsafe { LEAVING.init() };
}

/// Notes that the callback at the address `code` has returned. Any context.
///
/// The callback must have given everything to the core that it gives before this call.
pub(crate) fn returned(code: usize) {
    // SAFETY: The helper takes any address and follows none.
    if unsafe { kfi_bindings::kfi_helper_of_leaving_module(code) } {
        RETURNED.fetch_add(1, Full);
    }
}

/// Calls `flush` until the module has no callback left at the core. `flush` waits for all callbacks
/// that the core had when it was called. A callback that runs may give the core a new one. Sleeps.
///
/// The module gives callbacks to the core only from callbacks.
pub(crate) fn wait_until_returned(owner: Owner, flush: impl Fn()) {
    let _one = LEAVING.lock();
    // SAFETY: The module exists by the invariant until the caller has returned. It is freed a grace
    // period later.
    unsafe { kfi_bindings::kfi_helper_module_leaves(owner.as_ptr()) };
    loop {
        let before = RETURNED.load(Relaxed);
        flush();
        // Callbacks from before `flush` have returned, and are counted.
        if RETURNED.load(Relaxed) == before {
            break;
        }
    }
    // SAFETY: A null module names none.
    unsafe { kfi_bindings::kfi_helper_module_leaves(null_mut()) };
}

/// Returns the module of the function that contains this macro, as an `Option<Owner>`.
///
/// It is for generic functions whose parameter is a type of the caller. The linker puts each
/// instance of a generic function into the module that needs it, and the symbol is that module's
/// own. The vtables and function addresses of the type are in that module too, or in one that it
/// depends on. So the owner can't be wrong: no caller passes it.
macro_rules! this_module {
    () => {{
        unsafe extern "C" {
            // A `struct module`. Only its address is used.
            static __this_module: ::kernel::types::Opaque<u8>;
        }
        let module = (&raw const __this_module).cast_mut().cast();
        // SAFETY: The symbol is the `struct module` of the module that this code is linked into.
        unsafe { $crate::support::module::Owner::from_raw(module) }
    }};
}
pub(crate) use this_module;
