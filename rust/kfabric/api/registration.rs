// SPDX-License-Identifier: GPL-2.0

//! Registering a provider written in Rust.

use crate::{
    api::{
        answer,
        registry::register::{
            __kfi_provider_register,
            kfi_provider_deregister, //
        }, //
    },
    object::fabric::open,
    provider::Provider,
    support::module::{
        this_module,
        Owner, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};
use kfi_bindings::kfi_provider;

/// A provider written in Rust, registered as long as this lives.
///
/// Open fabrics keep the provider's module. If this was forgotten, the provider is deregistered when
/// its module has been unloaded but for its code, and the log says so.
///
/// # Invariants
///
/// `c` is registered and stays where it is.
pub struct Registration<P: Provider> {
    // Opaque, since the registry and other modules count references in it.
    c: KBox<Opaque<kfi_provider>>,
    _provider: PhantomData<fn() -> P>,
}

// SAFETY: Deregistering may be done by any thread.
unsafe impl<P: Provider> Send for Registration<P> {}
// SAFETY: There is nothing to do with a shared one.
unsafe impl<P: Provider> Sync for Registration<P> {}

impl<P: Provider> Registration<P> {
    /// Registers the provider, which belongs to the module that calls this. May sleep.
    ///
    /// Fails with `EEXIST` if there is one of that name, as new or newer.
    pub fn new() -> Result<Self> {
        let c = KBox::new(
            Opaque::new(kfi_provider {
                version: P::VERSION,
                kfi_version: crate::support::strings::API_VERSION,
                name: P::NAME.as_char_ptr(),
                kgetinfo: Some(answer::of_provider::<P>),
                kfabric: Some(open::of_provider::<P>),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        may_be_forgotten(&c);
        // The two functions were made of the provider's type here, so this is where they are.
        let owner = this_module!().map_or(ptr::null_mut(), Owner::as_ptr);
        // SAFETY: `c` lives, where it is, until `drop` has deregistered it.
        let ret = unsafe { __kfi_provider_register(c.get(), owner) };
        to_result(ret)?;
        // INVARIANT: Just registered.
        Ok(Self {
            c,
            _provider: PhantomData,
        })
    }
}

/// Has kmemleak not report a provider. The core forgets one whose registration was forgotten, but
/// its memory is not the core's to free. Here, and not in what other modules compile, since only
/// the core has the helper.
#[inline(never)]
fn may_be_forgotten(c: &KBox<Opaque<kfi_provider>>) {
    // SAFETY: A box is an allocation of its own.
    unsafe { kfi_bindings::kfi_helper_not_leak(c.get().cast()) };
}

impl<P: Provider> Drop for Registration<P> {
    fn drop(&mut self) {
        // SAFETY: Registered, by the invariant.
        unsafe { kfi_provider_deregister(self.c.get()) };
    }
}
