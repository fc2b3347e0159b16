// SPDX-License-Identifier: GPL-2.0

//! The receive context that endpoints share.
//!
//! All receives of a context report to one completion queue. So a receive reserves its entry in that queue
//! when it is posted, whichever endpoint takes it.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

use crate::{
    object::{
        cntr::CounterBody,
        counters::TransferCounters,
        cq::{
            CqBinding,
            CqBody, //
        },
        domain::DomainBody,
        prelude::*, //
    },
    provider::msg_ep::Srx, //
};

/// The class of receive contexts.
pub(super) static SRX: Class = Class::new(
    c::KFI_CLASS_SRX_CTX,
    c"not a shared receive context",
    c"a shared receive context is open in it",
);

/// An open receive context.
pub(crate) type SrxObject = Obj<SrxBody>;

/// A reference of an endpoint to its receive context, which prevents the close of the context.
///
/// # Invariants
///
/// The context is open: its `users` counts this reference.
pub(crate) struct BoundSrx(NonNull<SrxObject>);

// SAFETY: The context is `Sync`, and this gives only shared references to it.
unsafe impl Send for BoundSrx {}
// SAFETY: The context is `Sync`, and this gives only shared references to it.
unsafe impl Sync for BoundSrx {}

impl BoundSrx {
    pub(super) fn get(&self) -> &SrxObject {
        // SAFETY: The context is open, because its `users` counts this reference.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for BoundSrx {
    fn drop(&mut self) {
        self.get().users.remove(Share::ONE);
    }
}

/// The core's part of a receive context.
pub(crate) struct SrxBody {
    pub(super) imp: KBox<dyn Srx>,
    pub(super) limits: MsgLimits,
    /// The flags of receives whose call has no flags.
    pub(super) op_flags: u64,
    /// The completion queue of the receives.
    pub(super) reports: SetOnce<CqBinding>,
    /// Guards writes of `reports`, by a bind of the context or of the first endpoint.
    reporting: Pin<KBox<Mutex<()>>>,
    pub(super) counter: SetOnce<Arc<CntrCore>>,
    /// The endpoints that share it.
    users: Children,
    pub(super) counters: TransferCounters,
}

impl SrxBody {
    /// Creates a context without bindings. May sleep.
    pub(super) fn new(
        imp: KBox<dyn Srx>,
        limits: MsgLimits,
        op_flags: u64,
    ) -> Result<Self, Refusal> {
        let reporting = KBox::pin_init(new_mutex!((), "kfi_srx"), GFP_KERNEL);
        Ok(Self {
            imp,
            limits,
            op_flags,
            reports: SetOnce::new(),
            reporting: reporting.map_err(|_| Errno::ENOMEM)?,
            counter: SetOnce::new(),
            users: Children::new(),
            counters: TransferCounters::new(),
        })
    }

    /// Agrees with an endpoint that shares the context on one completion queue for receives. `own` is the
    /// queue of the endpoint. Process context; sleeps for the lock.
    ///
    /// # Errors
    ///
    /// - `ENOCQ`: neither has a queue.
    /// - `EINVAL`: their queues differ.
    pub(super) fn agree(&self, own: Option<&CqBinding>) -> Result<(), Refusal> {
        let _alone = self.reporting.lock();
        if let (None, Some(own)) = (self.reports.as_ref(), own) {
            self.reports.populate(CqBinding {
                cq: own.cq.clone(),
                selective: own.selective,
            });
        }
        match (self.reports.as_ref(), own) {
            (None, _) => Err(Refusal::new(
                Errno::ENOCQ,
                c"no completion queue is bound for receives",
            )),
            (Some(all), Some(own)) if !Arc::ptr_eq(&all.cq, &own.cq) => Err(Refusal::new(
                Errno::EINVAL,
                c"not the completion queue of the shared receive context",
            )),
            _ => Ok(()),
        }
    }
}

impl Child for SrxBody {
    type Parent = DomainBody;
    const END: Option<fn(&SrxObject)> = Some(|srx| srx.imp.end());
}

impl Bindable for SrxBody {
    type Bound = BoundSrx;

    fn bound(object: &SrxObject) -> Result<BoundSrx, Refusal> {
        object.users.add()?;
        // INVARIANT: `users` counts the new reference.
        Ok(BoundSrx(NonNull::from(object)))
    }
}

impl Close for SrxBody {
    /// Closes the context, and cancels the receives that no endpoint has taken.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: an endpoint shares the context.
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        object.users.close().map_err(|errno| {
            let why = c"an endpoint is bound to the shared receive context";
            Refusal::new(errno, why)
        })?;
        object.imp.end();
        Ok(())
    }
}

impl Object for SrxBody {
    type C = kfid_ep;
    type Place = Place<Self>;
    const CLASS: &'static Class = &SRX;
    const OPS: kfi_ops = kfi_ops {
        bind: Some(bind::<Self>),
        ..slots::<Self>()
    };

    fn describe(object: &SrxObject, about: &mut c::kfi_helper_object) {
        object.counters.describe(about);
    }
}

impl Binds for SrxBody {
    fn bind(srx: &SrxObject, other: Other<'_>) -> Result<(), Refusal> {
        const RECV: u64 = widen_u32(c::KFI_RECV);
        let domain = srx.parent();
        if let Ok(cq) = other.object::<CqBody>() {
            let flags = other.flags_of(RECV, c::KFI_SELECTIVE_COMPLETION)?;
            let reports = CqBinding {
                cq: other.bind_any(domain, cq)?,
                selective: flags & c::KFI_SELECTIVE_COMPLETION != 0,
            };
            let _alone = srx.reporting.lock();
            keep(&srx.reports, reports)
        } else if let Ok(counter) = other.object::<CounterBody>() {
            keep(&srx.counter, other.bind(domain, counter, RECV)?)
        } else {
            let why = c"neither a completion queue nor a counter";
            Err(Refusal::new(Errno::EINVAL, why))
        }
    }
}
