// SPDX-License-Identifier: GPL-2.0

//! The completion queue as C has it.
//!
//! The core's own, on the domains of every provider written in Rust, which puts in what has
//! completed.
//!
//! C header: [`include/kfi_eq.h`](srctree/include/kfi_eq.h)
//!
//! Where one direction of an endpoint is reported.

pub(crate) mod open;
mod ops;
mod out;

use super::{
    binding::Bindable,
    children::Children,
    closing::{
        slots,
        Close, //
    },
    domain::DomainBody,
    fid::Class,
    obj::{
        Obj,
        Object, //
    },
    place::{
        Child,
        Place, //
    }, //
};
use crate::{
    provider::cq::CompletionQueue,
    support::{
        errno::Errno,
        refusal::Refusal, //
    }, //
};
use kernel::sync::Arc;
use kfi_bindings::{
    kfi_ops,
    kfid_cq, //
};
use out::Format;

/// The class of completion queues.
static CQ: Class = Class::new(
    kfi_bindings::KFI_CLASS_CQ,
    c"not a completion queue",
    c"a completion queue is open in it",
);

/// A completion queue as C has it.
pub(crate) type CqObject = Obj<CqBody>;

/// What the core keeps with a completion queue.
pub(crate) struct CqBody {
    queue: Arc<CompletionQueue>,
    /// Those who wait.
    waiters: Children,
    format: Format,
    waits: Option<Waits>,
}

/// What the consumer can wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Any completion.
    Any,
    /// As many as it says each time.
    Threshold,
}

impl CqBody {
    /// Where completions are put in; whoever keeps it does so in vain once the object is closed.
    pub(crate) fn queue(&self) -> &Arc<CompletionQueue> {
        &self.queue
    }
}

impl Object for CqBody {
    type C = kfid_cq;
    type Place = Place<Self>;
    const CLASS: &'static Class = &CQ;
    const OPS: kfi_ops = slots::<Self>();
}

impl Child for CqBody {
    type Parent = DomainBody;
}

impl Bindable for CqBody {
    type Bound = Arc<CompletionQueue>;

    fn bound(object: &CqObject) -> Result<Arc<CompletionQueue>, Refusal> {
        Ok(object.queue.clone())
    }
}

impl Close for CqBody {
    /// Unbinds the queue from all that completes to it.
    ///
    /// `EOPBADSTATE` in the handler, whose end this waits for otherwise; `EBUSY` while somebody waits
    /// for a completion.
    fn close(&self) -> Result<(), Refusal> {
        if self.queue.in_handler() {
            let refusal = Refusal::new(Errno::EOPBADSTATE, c"closed by its own handler");
            return Err(refusal);
        }
        self.waiters.close().map_err(|errno| {
            let why = c"somebody waits for the completion queue";
            Refusal::new(errno, why)
        })?;
        self.queue.close();
        Ok(())
    }
}

/// A completion queue that an endpoint reports one direction to. If the consumer closes the queue first,
/// completions are discarded.
pub(super) struct Reports {
    pub(super) cq: Arc<CompletionQueue>,
    /// Only what asks for it, and errors.
    pub(super) selective: bool,
}
