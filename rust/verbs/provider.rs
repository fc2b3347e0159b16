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
    raw_key_size,
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

/// Regions can be several to the device.
const RAW: i32 = num::signed(kfi_bindings::KFI_MR_RAW);

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
                for raw in [false, true] {
                    offers.push(offer(&present, raw)?, GFP_KERNEL)?;
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

/// What a device offers: keys as devices have them, or raw ones, with which a region can be several
/// to the device.
fn offer(device: &rdma::Device, raw: bool) -> Result<Offer, Errno> {
    let region = link::mr_limits(&device.limits(), raw);
    let name = device.name();
    let (mr_mode, mr_key_size) = match raw {
        true => (MR_MODE | RAW, raw_key_size(region.pieces)),
        false => (MR_MODE, KEY_SIZE),
    };
    Ok(Offer {
        fabric: string(&name)?,
        domain: string(&name)?,
        caps: CAPS,
        mr_mode,
        mr_key_size,
        mr_iov_limit: region.segments,
        mr_cnt: region.regions,
        extras: Extras::default(),
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
            let present = self.device.get().ok_or(crate::refused::gone())?;
            if present.name().as_c_str() != name {
                return Err(no_device());
            }
        }
        if MR_MODE & !request.mr_mode != 0 {
            let refusal = Refusal::new(Errno::ENODATA, c"mr_mode lacks a bit that is needed");
            return Err(refusal.value(num::widen_u32(MR_MODE.unsigned_abs())));
        }
        let raw = request.mr_mode & RAW != 0;
        let domain = Domain::open(self.device.clone(), raw)?;
        Ok(KBox::new(domain, GFP_KERNEL)?)
    }
}
