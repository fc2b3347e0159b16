// SPDX-License-Identifier: GPL-2.0

//! Domains as the core has them.

use crate::{
    device::{
        self,
        Device, //
    },
    ep::{
        self,
        Ep,
        Srx, //
    },
    link::Link,
    mode::Mode,
    mr::{
        self,
        Mr, //
    },
    offers::ATOMIC,
    refused,
    work, //
};
use core::any::Any;
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use kfabric::{
    provider::{
        self,
        msg_ep::{
            MsgEp,
            MsgEpRequest,
            MsgLimits, //
        },
        Closing,
        Dma,
        Enabling,
        Keys,
        MrPart, //
    },
    Atomics,
    Errno,
    Extension,
    MrLimits,
    MrRequest,
    Refusal,
    Roster, //
};
use rdma::wc::WcStatus;

/// An open domain.
pub(crate) struct Domain {
    msg_limits: MsgLimits,
    link: Arc<Link>,
    device: Arc<Device>,
    extensions: &'static [Extension],
}

impl Domain {
    /// Opens a domain on a device. May sleep.
    pub(crate) fn open(
        device: Arc<Device>,
        mode: Mode,
        caps: u64,
        roster: &Arc<Roster>,
        extensions: &'static [Extension],
    ) -> Result<Self, Refusal> {
        let present = device.get().ok_or(refused::gone())?;
        let work = work::queues().ok_or(refused::gone())?;
        if !mode.by_endpoint() && !present.connects_freely() {
            let why = c"over iWARP regions are bound to endpoints (KFI_MR_ENDPOINT)";
            return Err(Refusal::new(Errno::ENODATA, why));
        }
        let mut msg_limits = ep::limits(&present).map_err(refused::no_domain)?;
        if caps & ATOMIC == 0 {
            msg_limits.atomics = Atomics::default();
        }
        let atomics = msg_limits.atomics.any();
        let link = Link::new(&present, work, mode, atomics, roster.clone());
        let link = link.map_err(refused::no_domain)?;
        // From here on, an error drops the domain, which ends the link.
        let domain = Self {
            msg_limits,
            link,
            device,
            extensions,
        };
        domain
            .device
            .add(domain.link.clone())
            .map_err(refused::no_domain)?;
        Ok(domain)
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Ends what the domain has on the device. Sleeps.
    fn end(&self) -> Result<(), Refusal> {
        self.link.close(device::in_callback())?;
        self.device.remove(&self.link);
        Ok(())
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // Nothing is left to do for a domain that was closed; of one that was never handed out
        // nobody has anything.
        let _ = self.end();
    }
}

impl provider::Domain for Domain {
    fn mr_limits(&self) -> &MrLimits {
        self.link.mr_limits()
    }

    fn create_mr(&self, request: &MrRequest<'_>) -> Result<MrPart, Refusal> {
        Mr::create(&self.link, request).map(MrPart::new)
    }

    fn register_mr(&self, request: &MrRequest<'_>) -> Result<(MrPart, Keys), Refusal> {
        let (mr, keys) = Mr::register(&self.link, request)?;
        Ok((MrPart::new(mr), keys))
    }

    fn enable_many(&self, mrs: &mut [Enabling<'_>]) {
        mr::enable_many(&self.link, mrs);
    }

    fn close_many(&self, mrs: &mut [Closing<'_>]) {
        mr::close_many(&self.link, mrs);
    }

    fn reserve(&self, count: usize, pages: usize) -> Result<KVVec<MrPart>, Refusal> {
        let pages = u32::try_from(pages).map_err(|_| Errno::E2BIG)?;
        let mut mrs = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            let mr = Mr::reserve(&self.link, pages)?;
            mrs.push(MrPart::new(mr), GFP_KERNEL)?;
        }
        let inside = self.link.gate().enter().ok_or(refused::gone())?;
        let pool = inside.get().pool();
        pool.reserve(count, pages).map_err(refused::no_region)?;
        Ok(mrs)
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(self)
    }

    fn binds_regions(&self) -> bool {
        self.link.mode().by_endpoint()
    }

    fn words(&self, prov_errno: i32) -> Option<&'static CStr> {
        WcStatus::failure(prov_errno).map(WcStatus::text)
    }

    fn msg_limits(&self) -> Option<&MsgLimits> {
        Some(&self.msg_limits)
    }

    fn open_ep(&self, request: MsgEpRequest) -> Result<KBox<dyn MsgEp>, Refusal> {
        Ok(KBox::new(Ep::new(&self.link, request)?, GFP_KERNEL)?)
    }

    fn open_srx(&self, size: usize) -> Result<KBox<dyn provider::msg_ep::Srx>, Refusal> {
        Ok(KBox::new(Srx::new(&self.link, size)?, GFP_KERNEL)?)
    }

    fn extensions(&self) -> &[Extension] {
        self.extensions
    }

    fn close(&self) -> Result<(), Refusal> {
        self.end()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
