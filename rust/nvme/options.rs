// SPDX-License-Identifier: GPL-2.0

//! The options of a controller, as the administrator wrote them.

use crate::prelude::*;
use kernel::str::CStrExt;
use nvme_bindings::nvmf_ctrl_options;

/// The options of a controller.
///
/// # Invariants
///
/// `raw` is valid while `'a` lasts, and nobody changes it.
pub struct Options<'a> {
    raw: NonNull<nvmf_ctrl_options>,
    lifetime: PhantomData<&'a nvmf_ctrl_options>,
}

impl<'a> Options<'a> {
    /// Borrows options.
    ///
    /// # Safety
    ///
    /// `raw` is valid while `'a` lasts, and nobody changes it.
    pub(crate) unsafe fn new(raw: NonNull<nvmf_ctrl_options>) -> Self {
        // INVARIANT: The caller promises both.
        Self {
            raw,
            lifetime: PhantomData,
        }
    }

    fn get(&self) -> &'a nvmf_ctrl_options {
        // SAFETY: `raw` is valid while `'a` lasts by the invariant.
        unsafe { self.raw.as_ref() }
    }

    /// Returns a string of the options.
    fn text(&self, text: *const c_char) -> Option<&'a CStr> {
        // SAFETY: Strings of the options are null or end with a zero byte, and exist as long.
        (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) })
    }

    /// Returns the address of the target. Any context.
    pub fn traddr(&self) -> &'a CStr {
        self.text(self.get().traddr).unwrap_or(c"")
    }

    /// Returns the port of the target. Any context.
    pub fn trsvcid(&self) -> &'a CStr {
        self.text(self.get().trsvcid).unwrap_or(c"")
    }

    /// Returns the address of this host. Any context.
    pub fn host_traddr(&self) -> Option<&'a CStr> {
        self.text(self.get().host_traddr)
    }

    /// Returns the type of service. Any context.
    pub fn tos(&self) -> Option<u8> {
        u8::try_from(self.get().tos).ok()
    }
}
