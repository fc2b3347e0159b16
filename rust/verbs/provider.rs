// SPDX-License-Identifier: GPL-2.0

//! The provider "verbs", with a fabric and a domain for each device.

use crate::{
    device::{
        self,
        Device, //
    },
    domain::Domain,
    ext,
    mode::Mode,
    refused, //
};
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use kfabric::{
    num,
    provider,
    DomainRequest,
    Ends,
    Errno,
    Extras,
    Offer,
    Refusal, //
};
use rdma::device::DeviceName;

/// What there is without endpoints.
const CAPS: u64 = num::widen_u32(
    kfi_bindings::KFI_RMA | kfi_bindings::KFI_REMOTE_READ | kfi_bindings::KFI_REMOTE_WRITE,
);

/// The provider.
pub(crate) struct Verbs;

impl provider::Provider for Verbs {
    const NAME: &'static CStr = c"verbs";
    const VERSION: u32 = 1 << 16;

    fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno> {
        let mut offers = KVec::new();
        if !ends.is_none() {
            return Ok(offers);
        }
        for device in device::all().map_err(|_| Errno::ENOMEM)? {
            if let Some(present) = device.get() {
                for mode in Mode::OFFERS {
                    offers.push(offer(&present, mode)?, GFP_KERNEL)?;
                }
            }
        }
        Ok(offers)
    }

    fn open_fabric(name: &CStr) -> Result<KBox<dyn provider::Fabric>, Refusal> {
        let device = device::find(name).ok_or(no_device())?;
        Ok(KBox::new(Fabric { device }, GFP_KERNEL)?)
    }
}

/// What a device offers in this mode.
fn offer(device: &rdma::Device, mode: Mode) -> Result<Offer, Errno> {
    let region = mode.limits(&device.limits());
    let name = device.name();
    Ok(Offer {
        fabric: string(&name)?,
        domain: string(&name)?,
        caps: CAPS,
        mr_mode: mode.bits(),
        mr_key_size: mode.key_size(),
        mr_iov_limit: region.segments,
        mr_cnt: region.regions,
        extras: Extras::default(),
        msg: None,
    })
}

fn no_device() -> Refusal {
    Refusal::new(Errno::ENODEV, c"no device of that name")
}

fn string(name: &DeviceName) -> Result<CString, Errno> {
    CString::try_from_fmt(fmt!("{name}")).map_err(|_| Errno::ENOMEM)
}

/// A fabric: one device.
struct Fabric {
    device: Arc<Device>,
}

impl provider::Fabric for Fabric {
    fn open_domain(
        &self,
        request: &DomainRequest<'_>,
    ) -> Result<KBox<dyn provider::Domain>, Refusal> {
        if let Some(name) = request.name {
            let present = self.device.get().ok_or(refused::gone())?;
            if present.name().as_c_str() != name {
                return Err(no_device());
            }
        }
        let mode = Mode::new(request.mr_mode)?;
        let domain = Domain::open(self.device.clone(), mode, request.roster, &ext::EXTENSIONS)?;
        Ok(KBox::new(domain, GFP_KERNEL)?)
    }
}
