// SPDX-License-Identifier: GPL-2.0

//! Whose code it is that the core was given to call.
//!
//! Safe code can forget what would take it back, and unload its module then. So each piece of such
//! code is noted with the [`Owner`] that it is part of, and when a module goes, what it has left
//! behind is taken from it before its code is freed.
//!
//! Nothing here takes a reference to the module. One would have to be held until the code is taken
//! back, which most modules do on their way out: they could never be unloaded.
//!
//! Lock order: `LEAVING` is taken before all that a module's code takes that the core calls by itself.

use core::ptr::{
    null_mut,
    NonNull, //
};
use kernel::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Full,
        Relaxed, //
    }, //
};

/// The module that a piece of code is part of.
///
/// # Invariants
///
/// The module is there as long as that code can run.
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
    /// `module` is null, or the module of the code that this is to stand for.
    pub(crate) unsafe fn from_raw(module: *mut bindings::module) -> Option<Self> {
        // INVARIANT: By the requirements of this function.
        NonNull::new(module).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut bindings::module {
        self.0.as_ptr()
    }

    /// Returns whether the module's code may still be given to somebody: when it is on its way out,
    /// what is given could be given too late to be taken back. Any context.
    pub(crate) fn is_live(self) -> bool {
        // SAFETY: The module is there by the invariant, since its code calls this or waits for it.
        unsafe { kfi_bindings::kfi_helper_module_is_live(self.as_ptr()) }
    }
}

/// How often code of modules that were waited for has returned.
static RETURNED: Atomic<u64> = Atomic::new(0);

kernel::sync::global_lock! {
    // SAFETY: Initialized by `init`, which the module calls before a module can be waited for.
    unsafe(uninit) static LEAVING: Mutex<()> = ();
}

/// Initializes what waits.
///
/// # Safety
///
/// Called once, before anything else of this file.
pub(crate) unsafe fn init() {
    // SAFETY: By the requirements of this function.
    unsafe { LEAVING.init() };
}

/// Says that the code at an address, which the core has called by itself, has returned. Any context.
///
/// Whatever was given to the core by that code must have been given before.
pub(crate) fn returned(code: usize) {
    // SAFETY: May always be called.
    if unsafe { kfi_bindings::kfi_helper_of_leaving_module(code) } {
        RETURNED.fetch_add(1, Full);
    }
}

/// Calls `flush`, which waits for all that was given to the core before it is called, until the module
/// has nothing there any more: its code, when it is called, may give the core something new. Sleeps.
///
/// The module gives nothing to the core but from code that the core calls.
pub(crate) fn wait_until_returned(owner: Owner, flush: impl Fn()) {
    let _one = LEAVING.lock();
    // SAFETY: The module is there by the invariant, until the caller of this has returned; it is freed
    // a grace period later.
    unsafe { kfi_bindings::kfi_helper_module_leaves(owner.as_ptr()) };
    loop {
        let before = RETURNED.load(Relaxed);
        flush();
        // What was there before `flush` has returned meanwhile, and is counted.
        if RETURNED.load(Relaxed) == before {
            break;
        }
    }
    // SAFETY: No module is always right.
    unsafe { kfi_bindings::kfi_helper_module_leaves(null_mut()) };
}

/// The module that the function is part of in which this stands, as an `Option<Owner>`.
///
/// For generic functions whose parameter is the type of a caller. Each instance of such a function
/// is linked into the module that needs it, where the symbol is that module's own. What the function
/// makes of the type, vtables and addresses of functions, is there too, or in a module which that
/// one depends on. So nobody can pass it wrongly: it isn't passed.
macro_rules! this_module {
    () => {{
        unsafe extern "C" {
            // A `struct module`, of which only the address is asked.
            static __this_module: ::kernel::types::Opaque<u8>;
        }
        let module = (&raw const __this_module).cast_mut().cast();
        // SAFETY: The symbol is that of the module which this code is linked into.
        unsafe { $crate::support::module::Owner::from_raw(module) }
    }};
}
pub(crate) use this_module;
