// SPDX-License-Identifier: GPL-2.0

//! The provider "loop", with one fabric of as many domains as the module's parameter says.
//!
//! The module's parameters. Reading one differs between kernel versions.

use crate::{
    ep,
    ext,
    listener::Pep,
    *, //
};
use kernel::str::CString;
use kfabric::{
    num,
    provider,
    Ends,
    Extras,
    MsgOffer,
    Offer, //
};

/// The capabilities of regions.
const CAPS: u64 = num::widen_u32(
    kfi_bindings::KFI_RMA | kfi_bindings::KFI_REMOTE_READ | kfi_bindings::KFI_REMOTE_WRITE,
) | kfi_bindings::KFI_RMA_EVENT;

/// The additional capabilities of connected endpoints.
const MSG_CAPS: u64 = num::widen_u32(
    kfi_bindings::KFI_MSG
        | kfi_bindings::KFI_SEND
        | kfi_bindings::KFI_RECV
        | kfi_bindings::KFI_READ
        | kfi_bindings::KFI_WRITE
        | kfi_bindings::KFI_ATOMIC,
);

/// The fabric's name.
const FABRIC: &CStr = c"loop";

/// Longest authorization key, in bytes.
const AUTH_KEY: usize = 256;

/// The provider.
pub(crate) struct Loop;

impl provider::Provider for Loop {
    const NAME: &'static CStr = c"loop";
    const VERSION: u32 = 1 << 16;

    fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno> {
        let mut offers = KVec::new();
        for number in 0..domains() {
            for mode in Mode::OFFERS.into_iter().filter(|_| ends.is_none()) {
                offers.push(offer(number, mode)?, GFP_KERNEL)?;
            }
            for mode in Mode::OFFERS {
                offers.push(msg_offer(number, mode, ends)?, GFP_KERNEL)?;
            }
        }
        Ok(offers)
    }

    fn open_fabric(name: &CStr) -> Result<KBox<dyn provider::FabricOps>, Refusal> {
        if name == FABRIC {
            Ok(KBox::new(Fabric, GFP_KERNEL)?)
        } else {
            Err(Refusal::new(Errno::ENODEV, c"no fabric of that name"))
        }
    }
}

fn offer(number: u32, mode: Mode) -> Result<Offer, Errno> {
    let limits = mode.limits();
    Ok(Offer {
        fabric: CString::try_from_fmt(fmt!("loop")).map_err(|_| Errno::ENOMEM)?,
        domain: domain_name(number)?,
        caps: CAPS,
        mr_mode: mode.bits(),
        mr_key_size: mode.key_size(),
        mr_iov_limit: limits.segments,
        mr_cnt: limits.regions,
        extras: Extras {
            endpoints: 1 << 16,
            counters: 1 << 16,
            queues: 1 << 16,
            auth_key: AUTH_KEY,
        },
        msg: None,
    })
}

/// Makes an offer with connected endpoints.
fn msg_offer(number: u32, mode: Mode, ends: &Ends) -> Result<Offer, Errno> {
    Ok(Offer {
        caps: CAPS | MSG_CAPS,
        msg: Some(MsgOffer {
            limits: ep::LIMITS,
            ends: *ends,
        }),
        ..offer(number, mode)?
    })
}

fn domain_name(number: u32) -> Result<CString, Errno> {
    CString::try_from_fmt(fmt!("loop{number}")).map_err(|_| Errno::ENOMEM)
}

/// The fabric.
struct Fabric;

impl provider::FabricOps for Fabric {
    fn open_domain(
        &self,
        request: &DomainRequest<'_>,
    ) -> Result<KBox<dyn provider::DomainOps>, Refusal> {
        if let Some(name) = request.name {
            known(name)?;
        }
        if request.auth_key.len() > AUTH_KEY {
            let refusal = Refusal::new(Errno::EINVAL, c"auth_key is too long");
            return Err(refusal.value(num::widen(request.auth_key.len())));
        }
        Ok(KBox::new(
            Domain::open(request, &ext::EXTENSIONS)?,
            GFP_KERNEL,
        )?)
    }

    fn open_pep(&self) -> Result<(KBox<dyn provider::cm::PepOps>, MsgLimits), Refusal> {
        Ok((KBox::new(Pep::new(), GFP_KERNEL)?, ep::LIMITS))
    }
}

/// Checks whether a domain has this name.
fn known(name: &CStr) -> Result<(), Refusal> {
    for number in 0..domains() {
        if &*domain_name(number)? == name {
            return Ok(());
        }
    }
    Err(Refusal::new(Errno::ENODEV, c"no domain of that name"))
}

/// Returns the number of domains, from 1 to 64.
pub(crate) fn domains() -> u32 {
    // SAFETY: The function only reads a parameter.
    unsafe { kfi_bindings::kfi_loop_helper_domains() }
}
