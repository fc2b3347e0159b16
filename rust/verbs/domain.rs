// SPDX-License-Identifier: GPL-2.0

//! Domains of the provider, and their DMA mapping calls.
//!
//! The mapping calls sleep only for a lock that is held briefly.

use crate::{
    device::{
        self,
        Device, //
    },
    ep::{
        self,
        Ep,
        ReusableRegion,
        Srx, //
    },
    mode::Mode,
    mr::{
        self,
        Mr,
        MrBatch, //
    },
    offers::ATOMIC,
    prelude::*,
    work, //
};
use kernel::dma::DataDirection;
use kfabric::{
    provider::{
        msg_ep::{
            MsgEpOps,
            MsgEpRequest, //
        },
        reuse::ReusableMrOps,
        BatchEntry,
        Dma,
        ProviderMr,
        RawSgl, //
    },
    Atomics,
    DomainRequest,
    EpCore,
    Extension, //
};
use rdma::dma;

/// An open domain.
pub(crate) struct Domain {
    msg_limits: MsgLimits,
    pub(crate) link: Arc<Link>,
    device: Arc<Device>,
    extensions: &'static [Extension],
}

impl Domain {
    /// Opens a domain on a device. May sleep.
    pub(crate) fn open(
        device: Arc<Device>,
        mode: Mode,
        request: &DomainRequest<'_>,
        extensions: &'static [Extension],
    ) -> Result<Self, Refusal> {
        let present = device.get().ok_or(driver_errors::gone())?;
        let work = work::queues().ok_or(driver_errors::gone())?;
        if !mode.by_endpoint() && !present.connects_freely() {
            let why = c"over iWARP regions are bound to endpoints (KFI_MR_ENDPOINT)";
            return Err(Refusal::new(Errno::ENODATA, why));
        }
        let mut msg_limits = ep::limits(&present).map_err(driver_errors::no_domain)?;
        if request.caps & ATOMIC == 0 {
            msg_limits.atomics = Atomics::default();
        }
        let atomics = msg_limits.atomics.any();
        let link = Link::new(&present, work, mode, atomics, request);
        let link = link.map_err(driver_errors::no_domain)?;
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
            .map_err(driver_errors::no_domain)?;
        Ok(domain)
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

impl provider::DomainOps for Domain {
    fn mr_limits(&self) -> &MrLimits {
        &self.link.mr_limits
    }

    fn create_mr(&self, request: &MrRequest<'_>) -> Result<ProviderMr, Refusal> {
        Mr::create(&self.link, request).map(ProviderMr::new)
    }

    fn register_mr(&self, request: &MrRequest<'_>) -> Result<(ProviderMr, Keys), Refusal> {
        let (mr, keys) = Mr::register(&self.link, request)?;
        Ok((ProviderMr::new(mr), keys))
    }

    fn batch(&self, count: usize) -> Option<KBox<dyn provider::MrBatch + '_>> {
        Some(MrBatch::new(&self.link, count)?)
    }

    fn enable_many(&self, mrs: &mut [BatchEntry<'_, Keys>]) {
        mr::enable_many(&self.link, mrs);
    }

    fn pool_counters(&self) -> (u64, u64) {
        self.link.pool_count.hits_and_misses()
    }

    fn close_many(&self, mrs: &mut [BatchEntry<'_, ()>]) {
        mr::close_many(&self.link, mrs);
    }

    fn reserve(&self, count: usize, pages: usize) -> Result<(), Refusal> {
        let pages = u32::try_from(pages).map_err(|_| Errno::E2BIG)?;
        let inside = self.link.gate.enter().ok_or(driver_errors::gone())?;
        let pool = &inside.get().pool;
        pool.reserve(count, pages).map_err(driver_errors::no_region)
    }

    fn reusable_mr(
        &self,
        endpoint: &Arc<EpCore>,
        pages: usize,
    ) -> Result<KBox<dyn ReusableMrOps>, Refusal> {
        Ok(KBox::new(
            ReusableRegion::open(&self.link, endpoint, pages)?,
            GFP_KERNEL,
        )?)
    }

    fn use_reserve(&self, begins: bool) {
        if let Some(inside) = self.link.gate.enter() {
            match begins {
                true => inside.get().pool.begin_reserved(),
                false => inside.get().pool.end_reserved(),
            }
        }
    }

    fn dma(&self) -> Option<&dyn Dma> {
        Some(self)
    }

    fn binds_regions(&self) -> bool {
        self.link.mode.by_endpoint()
    }

    fn words(&self, prov_errno: i32) -> Option<&'static CStr> {
        WcStatus::failure(prov_errno).map(WcStatus::text)
    }

    fn msg_limits(&self) -> Option<&MsgLimits> {
        Some(&self.msg_limits)
    }

    fn open_ep(&self, request: MsgEpRequest) -> Result<KBox<dyn MsgEpOps>, Refusal> {
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

impl Dma for Domain {
    fn map(&self, list: RawSgl<'_>, direction: DataDirection) -> Result<usize, Refusal> {
        let inside = self.link.gate.enter().ok_or(driver_errors::gone())?;
        let device = inside.get().pd.device();
        // SAFETY: `list` has `entries()` entries by the invariant of `RawSgl`; by the contract of
        // `struct kfi_dma_ops` the consumer unmaps it before it or its memory goes.
        unsafe { dma::map_sg(device, list.as_ptr(), entries(&list), direction) }
            .map_err(driver_errors::not_mapped)
    }

    fn unmap(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link.with_device(|device| {
            // SAFETY: `list` was mapped with `entries()` entries by the invariant of `RawSgl`.
            unsafe { dma::unmap_sg(device, list.as_ptr(), entries(&list), direction) };
        });
    }

    fn sync_for_cpu(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link.with_device(|device| {
            // SAFETY: `list` is mapped with `entries()` entries by the invariant of `RawSgl`.
            unsafe { dma::sync_for_cpu(device, list.as_ptr(), entries(&list), direction) };
        });
    }

    fn sync_for_device(&self, list: RawSgl<'_>, direction: DataDirection) {
        self.link.with_device(|device| {
            // SAFETY: `list` is mapped with `entries()` entries by the invariant of `RawSgl`.
            unsafe { dma::sync_for_device(device, list.as_ptr(), entries(&list), direction) };
        });
    }
}

fn entries(list: &RawSgl<'_>) -> usize {
    usize::try_from(list.entries()).unwrap_or(0)
}
