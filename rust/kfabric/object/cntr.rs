// SPDX-License-Identifier: GPL-2.0

//! The counter as C has it.
//!
//! The core's own, on the domains of every provider written in Rust.
//!
//! C header: [`include/kfi_eq.h`](srctree/include/kfi_eq.h)

pub(crate) mod open;
mod ops;

use super::{
    binding::Bindable,
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
    provider::cntr::Counter,
    support::refusal::Refusal, //
};
use kernel::sync::Arc;
use kfi_bindings::{
    kfi_ops,
    kfid_cntr, //
};

/// The class of counters.
static CNTR: Class = Class::new(
    kfi_bindings::KFI_CLASS_CNTR,
    c"not a counter",
    c"a counter is open in it",
);

/// A counter as C has it.
pub(crate) type CounterObject = Obj<CounterBody>;

/// What the core keeps with a counter.
pub(crate) struct CounterBody {
    counter: Arc<Counter>,
    can_wait: bool,
}

impl CounterBody {
    /// What it counts with; whoever keeps it counts in vain once the object is closed.
    pub(crate) fn counter(&self) -> &Arc<Counter> {
        &self.counter
    }
}

impl Object for CounterBody {
    type C = kfid_cntr;
    type Place = Place<Self>;
    const CLASS: &'static Class = &CNTR;
    const OPS: kfi_ops = slots::<Self>();
}

impl Child for CounterBody {
    type Parent = DomainBody;
}

impl Bindable for CounterBody {
    type Bound = Arc<Counter>;

    fn bound(object: &CounterObject) -> Result<Arc<Counter>, Refusal> {
        Ok(object.counter.clone())
    }
}

impl Close for CounterBody {
    const SLEEPS: bool = false;

    /// `EBUSY` while somebody waits for it. Regions that it is bound to go on without it.
    fn close(&self) -> Result<(), Refusal> {
        let closed = self.counter.close();
        closed.map_err(|errno| Refusal::new(errno, c"somebody waits for the counter"))
    }
}
