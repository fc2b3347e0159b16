// SPDX-License-Identifier: GPL-2.0

//! Domains and regions as the core has them.

use crate::{
    device::{
        self,
        Device, //
    },
    ext,
    ffi,
    kit::Kit,
    link::Link,
    refused, //
};
use core::any::Any;
use kernel::{
    dma::DataDirection,
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    provider::{
        self,
        Bindings,
        Dma,
        Keys,
        RawSgl, //
    },
    Errno,
    Extension,
    MrLimits,
    MrRequest,
    Refusal, //
};

/// An open domain.
pub(crate) struct Domain {
    link: Arc<Link>,
    device: Arc<Device>,
}

impl Domain {
    /// Opens a domain on a device; `raw` if its regions can be several to the device. May sleep.
    pub(crate) fn open(device: Arc<Device>, raw: bool) -> Result<Self, Refusal> {
        let present = device.get().ok_or(refused::gone())?;
        let work = device::work().ok_or(refused::gone())?;
        let link = Link::new(&present, work, raw).map_err(refused::no_domain)?;
        // From here on, an error drops the domain, which ends the link.
        let domain = Self { link, device };
        domain
            .device
            .add(domain.link.clone())
            .map_err(refused::no_domain)?;
        Ok(domain)
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    fn mr(&self, kit: Option<Kit>) -> Result<KBox<Mr>, Refusal> {
        let (link, number) = (self.link.clone(), 0);
        Ok(KBox::new(Mr { link, number, kit }, GFP_KERNEL)?)
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

    fn create_mr(&self, request: &MrRequest<'_>) -> Result<KBox<dyn provider::Mr>, Refusal> {
        let mut mr = self.mr(None)?;
        mr.number = self.link.create_region(request)?;
        Ok(mr)
    }

    fn reserve(
        &self,
        count: usize,
        pages: usize,
    ) -> Result<KVVec<KBox<dyn provider::Mr>>, Refusal> {
        let pages = u32::try_from(pages).map_err(|_| Errno::E2BIG)?;
        let mut mrs = KVVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            let kit = Kit::new(pages).map_err(refused::not_mapped)?;
            let mr: KBox<dyn provider::Mr> = self.mr(Some(kit))?;
            mrs.push(mr, GFP_KERNEL)?;
        }
        self.link.reserve(count, pages)?;
        Ok(mrs)
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(self)
    }

    fn extensions(&self) -> &[Extension] {
        &ext::EXTENSIONS
    }

    fn close(&self) -> Result<(), Refusal> {
        self.end()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Dma for Domain {
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal> {
        let inside = self.link.gate().enter().ok_or(refused::gone())?;
        ffi::map(inside.get().device(), list, direction).map_err(refused::not_mapped)
    }

    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link
            .with_device(|device| ffi::unmap(device, list, direction));
    }

    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link
            .with_device(|device| ffi::sync_for_cpu(device, list, direction));
    }

    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link
            .with_device(|device| ffi::sync_for_device(device, list, direction));
    }
}

/// A region: its number among the open ones of its domain.
struct Mr {
    link: Arc<Link>,
    number: u64,
    /// What it is made of, if that was reserved.
    kit: Option<Kit>,
}

impl provider::Mr for Mr {
    fn create_again(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        let kit = self.kit.as_mut().ok_or(Errno::EINVAL)?;
        self.number = self.link.create_reserved(request, kit)?;
        Ok(())
    }

    fn enable(&mut self, _bindings: &Bindings) -> Result<Keys, Refusal> {
        self.link.enable_region(self.number)
    }

    fn refresh(&mut self, request: &MrRequest<'_>) -> Result<(), Refusal> {
        self.link.refresh_region(self.number, request)
    }

    fn close(&mut self) -> Result<(), Refusal> {
        self.link.close_region(self.number, self.kit.as_mut())
    }
}
