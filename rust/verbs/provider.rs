// SPDX-License-Identifier: GPL-2.0

//! The provider "verbs", with a fabric and a domain for each device.

use crate::{
    device::{
        self,
        Device, //
    },
    domain::Domain,
    link,
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
    Errno,
    Extras,
    Offer,
    Refusal, //
};
use rdma::device::DeviceName;

/// Keys are 32 bits wide.
const KEY_SIZE: usize = size_of::<u32>();

/// Peers address regions by `kfid_mr.iova`, and the device chooses keys.
const MR_MODE: i32 = num::signed(kfi_bindings::KFI_MR_VIRT_ADDR | kfi_bindings::KFI_MR_PROV_KEY);

/// What there is without endpoints.
const CAPS: u64 = num::widen_u32(
    kfi_bindings::KFI_RMA | kfi_bindings::KFI_REMOTE_READ | kfi_bindings::KFI_REMOTE_WRITE,
);

/// The provider.
pub(crate) struct Verbs;

impl provider::Provider for Verbs {
    const NAME: &'static CStr = c"verbs";
    const VERSION: u32 = 1 << 16;

    fn offers() -> Result<KVec<Offer>, Errno> {
        let mut offers = KVec::new();
        for device in device::all().map_err(|_| Errno::ENOMEM)? {
            if let Some(present) = device.get() {
                let limits = present.limits();
                let region = link::mr_limits(&limits);
                let name = present.name();
                let offer = Offer {
                    fabric: string(&name)?,
                    domain: string(&name)?,
                    caps: CAPS,
                    mr_mode: MR_MODE,
                    mr_key_size: KEY_SIZE,
                    mr_iov_limit: region.segments,
                    mr_cnt: region.regions,
                    extras: Extras::default(),
                };
                offers.push(offer, GFP_KERNEL)?;
            }
        }
        Ok(offers)
    }

    fn open_fabric(name: &CStr) -> Result<KBox<dyn provider::Fabric>, Refusal> {
        let device = device::find(name).ok_or(no_device())?;
        Ok(KBox::new(Fabric { device }, GFP_KERNEL)?)
    }
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
            let present = self.device.get().ok_or(crate::refused::gone())?;
            if present.name().as_c_str() != name {
                return Err(no_device());
            }
        }
        if MR_MODE & !request.mr_mode != 0 {
            return Err(Refusal::new(
                Errno::EINVAL,
                c"mr_mode lacks a bit that is needed",
            ));
        }
        Ok(KBox::new(Domain::open(self.device.clone())?, GFP_KERNEL)?)
    }
}
