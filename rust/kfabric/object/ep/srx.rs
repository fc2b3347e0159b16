// SPDX-License-Identifier: GPL-2.0

//! The receive context that endpoints share, as C has it.
//!
//! All that is received by it is told to one completion queue: so a receive has its place there from
//! the beginning, whichever endpoint takes it.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

pub(crate) mod open;

use super::reports::Reports;
use crate::{
    object::{
        binding::Bindable,
        children::{
            Children,
            Share, //
        },
        closing::Close,
        domain::DomainBody,
        fid::Class,
        obj::Obj,
        place::Child, //
    },
    provider::{
        cntr::Counter,
        msg_ep::{
            MsgLimits,
            Srx, //
        }, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex,
        SetOnce, //
    }, //
};

/// The class of receive contexts.
pub(super) static SRX: Class = Class::new(
    kfi_bindings::KFI_CLASS_SRX_CTX,
    c"not a shared receive context",
    c"a shared receive context is open in it",
);

/// A receive context as C has it.
pub(crate) type SrxObject = Obj<SrxBody>;

/// A receive context that an endpoint is bound to, and that can't be closed before that is.
///
/// # Invariants
///
/// The context is open, since it counts this as a user.
pub(crate) struct BoundSrx(NonNull<SrxObject>);

// SAFETY: It gives a shared reference to the context, which may be used by any thread.
unsafe impl Send for BoundSrx {}
// SAFETY: It gives a shared reference to the context, which may be used by several threads at once.
unsafe impl Sync for BoundSrx {}

impl BoundSrx {
    pub(super) fn get(&self) -> &SrxObject {
        // SAFETY: The context is open by the invariant.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for BoundSrx {
    fn drop(&mut self) {
        self.get().users.remove(Share::ONE);
    }
}

/// What the core keeps with a receive context.
pub(crate) struct SrxBody {
    imp: KBox<dyn Srx>,
    limits: MsgLimits,
    /// How receives are posted whose call has no flags.
    op_flags: u64,
    reports: SetOnce<Reports>,
    /// To be held by who sets `reports`: it is set by binding, or by the first endpoint.
    reporting: Pin<KBox<Mutex<()>>>,
    pub(super) counter: SetOnce<Arc<Counter>>,
    /// The endpoints that share it.
    users: Children,
}

impl SrxBody {
    /// A context that nothing is bound to. May sleep.
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
        })
    }

    pub(super) fn imp(&self) -> &dyn Srx {
        &*self.imp
    }

    pub(super) fn limits(&self) -> &MsgLimits {
        &self.limits
    }

    pub(super) fn op_flags(&self) -> u64 {
        self.op_flags
    }

    /// Where what it receives is reported, if that is known. Any context.
    pub(super) fn reports(&self) -> Option<&Reports> {
        self.reports.as_ref()
    }

    /// Sets where what it receives is reported; returns whether it was not set before. May sleep.
    pub(super) fn report_to(&self, reports: Reports) -> bool {
        let _alone = self.reporting.lock();
        self.reports.populate(reports)
    }

    /// An endpoint that has this completion queue for receives, or none, is going to share it. Process
    /// context.
    ///
    /// # Errors
    ///
    /// - `ENOCQ`: neither has one.
    /// - `EINVAL`: both have, and not the same one.
    pub(super) fn agree(&self, own: Option<&Reports>) -> Result<(), Refusal> {
        // Whoever else sets it has done so, or will look at what is set here.
        let _alone = self.reporting.lock();
        if let (None, Some(own)) = (self.reports.as_ref(), own) {
            self.reports.populate(Reports {
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
        // INVARIANT: Just counted.
        Ok(BoundSrx(NonNull::from(object)))
    }
}

impl Close for SrxBody {
    /// `EBUSY` while an endpoint shares it. What no endpoint has taken is cancelled.
    fn close(&self) -> Result<(), Refusal> {
        self.users.close().map_err(|errno| {
            let why = c"an endpoint is bound to the shared receive context";
            Refusal::new(errno, why)
        })?;
        self.imp.end();
        Ok(())
    }
}
