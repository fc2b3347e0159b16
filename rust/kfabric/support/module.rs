// SPDX-License-Identifier: GPL-2.0

//! Whose code it is that the core was given to call.
//!
//! Safe code can forget what would take it back, and unload its module then. So each piece of such
//! code is noted with the [`Owner`] that it is part of, and when a module goes, what it has left
//! behind is taken from it before its code is freed.
//!
//! Nothing here takes a reference to the module. One would have to be held until the code is taken
//! back, which most modules do on their way out: they could never be unloaded.

use core::ptr::NonNull;
use kernel::bindings;

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
