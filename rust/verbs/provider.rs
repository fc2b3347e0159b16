// SPDX-License-Identifier: GPL-2.0

//! The provider "verbs", with a fabric and a domain for each device.

use crate::{
    device::{
        self,
        Device, //
    },
    domain::Domain,
    ep,
    ext,
    mode::Mode,
    offers,
    pep::Pep,
    prelude::*, //
};
use kfabric::{
    DomainRequest,
    Ends,
    Offer, //
};

/// The provider.
pub(crate) struct Verbs;

impl provider::Provider for Verbs {
    const NAME: &'static CStr = c"verbs";
    const VERSION: u32 = 1 << 16;

    fn offers(ends: &Ends) -> Result<KVec<Offer>, Errno> {
        offers::list(ends)
    }

    fn open_fabric(name: &CStr) -> Result<KBox<dyn provider::FabricOps>, Refusal> {
        let device = device::find(name).ok_or(no_device())?;
        Ok(KBox::new(Fabric { device }, GFP_KERNEL)?)
    }
}

fn no_device() -> Refusal {
    Refusal::new(Errno::ENODEV, c"no device of that name")
}

/// A fabric: one device.
struct Fabric {
    device: Arc<Device>,
}

impl provider::FabricOps for Fabric {
    fn open_domain(
        &self,
        request: &DomainRequest<'_>,
    ) -> Result<KBox<dyn provider::DomainOps>, Refusal> {
        if let Some(name) = request.name {
            let present = self.device.get().ok_or(driver_errors::gone())?;
            if present.name().as_c_str() != name {
                return Err(no_device());
            }
        }
        let mode = Mode::new(request.mr_mode, request.caps & offers::MSG != 0)?;
        let domain = Domain::open(self.device.clone(), mode, request, &ext::EXTENSIONS)?;
        Ok(KBox::new(domain, GFP_KERNEL)?)
    }

    fn open_pep(&self) -> Result<(KBox<dyn provider::cm::PepOps>, MsgLimits), Refusal> {
        let present = self.device.get().ok_or(driver_errors::gone())?;
        let limits = ep::limits(&present).map_err(driver_errors::no_endpoint)?;
        Ok((
            KBox::new(Pep::new(self.device.clone()), GFP_KERNEL)?,
            limits,
        ))
    }

    fn words(&self, prov_errno: i32) -> Option<&'static CStr> {
        driver_errors::rejection(prov_errno)
    }
}
