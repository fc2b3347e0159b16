// SPDX-License-Identifier: GPL-2.0

//! The passive endpoint as C has it, which listens for connections.
//!
//! C header: [`include/kfi_endpoint.h`](srctree/include/kfi_endpoint.h)

mod arrivals;
mod cm;
pub(crate) mod open;
mod ops;
pub(crate) mod requests;

use self::arrivals::Arrivals;
use super::{
    binding::{
        Binds,
        Other, //
    },
    closing::Close,
    eq::{
        BoundEq,
        EqBody, //
    },
    fabric::FabricBody,
    fid::Class,
    info::Info,
    obj::Obj,
    place::Child, //
};
use crate::{
    provider::{
        cm::Incoming,
        msg_ep::MsgLimits,
        pep::Pep, //
    },
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use core::net::SocketAddr;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        Mutex,
        SetOnce, //
    }, //
};
use kfi_bindings::kfid_pep;

/// The class of passive endpoints.
static PEP: Class = Class::new(
    kfi_bindings::KFI_CLASS_PEP,
    c"not a passive endpoint",
    c"a passive endpoint is open in it",
);

/// How many requests wait for an answer where the consumer leaves it to us.
const BACKLOG_DEFAULT: u32 = 64;
/// How many can.
const BACKLOG_MAX: u32 = 1024;

/// A passive endpoint as C has it.
pub(crate) type PepObject = Obj<PepBody>;

/// What the core keeps with a passive endpoint.
#[pin_data]
pub(crate) struct PepBody {
    // Dropped first: then nobody is told of a request any more.
    imp: KBox<dyn Pep>,
    incoming: SetOnce<Arc<Incoming>>,
    eq: SetOnce<BoundEq>,
    /// Where it listens, or is to listen. Held by a task that begins to listen.
    #[pin]
    address: Mutex<SocketAddr>,
    backlog: Atomic<u32>,
    limits: MsgLimits,
    /// What a request's info is made of.
    info: Arc<Info>,
    /// What events name.
    pep: *mut kfid_pep,
    context: *mut c_void,
}

// SAFETY: The pointers are handed through, and not followed.
unsafe impl Send for PepBody {}
// SAFETY: As for sending; all else can be shared.
unsafe impl Sync for PepBody {}

impl PepBody {
    fn imp(&self) -> &dyn Pep {
        &*self.imp
    }

    fn is_listening(&self) -> bool {
        self.incoming.as_ref().is_some()
    }

    /// Sets how many requests may wait for an answer. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it listens.
    /// - `EINVAL`: too many, or none.
    fn set_backlog(&self, backlog: i32) -> Result<(), Refusal> {
        let _address = self.address.lock();
        if self.is_listening() {
            return Err(listening());
        }
        match u32::try_from(backlog) {
            Ok(backlog @ 1..=BACKLOG_MAX) => {
                self.backlog.store(backlog, Relaxed);
                Ok(())
            }
            _ => Err(Refusal::new(Errno::EINVAL, c"no backlog of that length")),
        }
    }

    /// Where it listens, or is to listen. May sleep.
    fn address(&self) -> SocketAddr {
        *self.address.lock()
    }

    /// Has it listen elsewhere. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it listens.
    fn set_address(&self, address: SocketAddr) -> Result<(), Refusal> {
        let mut here = self.address.lock();
        match self.is_listening() {
            true => Err(listening()),
            false => {
                *here = address;
                Ok(())
            }
        }
    }

    /// Begins to listen. Of several tasks that call this, one does. May sleep.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: it listens already.
    /// - `ENOEQ`: no event queue is bound.
    /// - Those of the provider.
    fn listen(&self) -> Result<(), Refusal> {
        let eq = self.eq.as_ref().filter(|eq| eq.is_open());
        let eq = eq.ok_or(Refusal::new(Errno::ENOEQ, c"no event queue is bound"))?;
        let mut address = self.address.lock();
        if self.is_listening() {
            return Err(listening());
        }
        let backlog = self.backlog.load(Relaxed);
        let fid = self.pep.cast();
        let writer = eq.writer(fid, self.context);
        let asked = Arrivals::new(writer, fid, self.info.clone(), backlog);
        let asked = KBox::new(asked, GFP_KERNEL)?;
        let incoming =
            Arc::pin_init(Incoming::new(asked), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
        *address = self.imp.listen(*address, backlog, incoming.clone())?;
        // There is none yet: nobody else has begun to listen under the lock.
        self.incoming.populate(incoming);
        Ok(())
    }
}

const fn listening() -> Refusal {
    Refusal::new(Errno::EOPBADSTATE, c"the endpoint listens")
}

impl Child for PepBody {
    type Parent = FabricBody;
}

impl Binds for PepBody {
    fn bind(pep: &PepObject, other: Other<'_>) -> Result<(), Refusal> {
        let eq = other.object::<EqBody>()?;
        if pep.is_listening() {
            return Err(listening());
        }
        match pep.eq.populate(other.bind(pep.parent(), eq, 0)?) {
            true => Ok(()),
            false => {
                let why = c"something is bound for that already";
                Err(Refusal::new(Errno::EINVAL, why))
            }
        }
    }
}

impl Close for PepBody {
    /// Requests that nobody has answered are rejected.
    fn close(&self) -> Result<(), Refusal> {
        if let Some(incoming) = self.incoming.as_ref() {
            incoming.stop();
        }
        let fid = self.pep.cast();
        if let Some(eq) = self.eq.as_ref() {
            eq.forget_all(fid);
        }
        requests::drop_all(fid);
        Ok(())
    }
}
