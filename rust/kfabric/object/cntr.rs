// SPDX-License-Identifier: GPL-2.0

//! Counters of domains whose provider is written in Rust.
//!
//! The core implements them for all providers.
//!
//! C header: [`include/kfi_eq.h`](srctree/include/kfi_eq.h)

use super::{
    domain::DomainBody,
    prelude::*,
    queues::{
        self,
        can_wait,
        CANT_WAIT, //
    }, //
};
use kfi_bindings::kfi_cntr_events_KFI_CNTR_EVENTS_COMP as EVENTS_COMP;

/// The class of counters.
static CNTR: Class = Class::new(
    c::KFI_CLASS_CNTR,
    c"not a counter",
    c"a counter is open in it",
);

/// An open counter.
pub(crate) type CounterObject = Obj<CounterBody>;

/// The core's part of a counter.
pub(crate) struct CounterBody {
    /// The core of the counter. Regions and endpoints that the counter is bound to have a reference,
    /// too. After the close the core ignores changes.
    pub(crate) counter: Arc<CntrCore>,
    can_wait: bool,
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
    type Bound = Arc<CntrCore>;

    fn bound(object: &CounterObject) -> Result<Arc<CntrCore>, Refusal> {
        Ok(object.counter.clone())
    }
}

impl Close for CounterBody {
    const SLEEPS: bool = false;

    /// Closes the counter. Regions that it is bound to stay open.
    ///
    /// # Errors
    ///
    /// - `EBUSY`: a thread waits for the counter.
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        let closed = object.counter.close();
        closed.map_err(|errno| Refusal::new(errno, c"somebody waits for the counter"))
    }
}

/// Checks the attributes, and returns whether the consumer can wait for the counter.
fn parse(attr: &c::kfi_cntr_attr) -> Result<bool, Refusal> {
    if attr.events != EVENTS_COMP {
        let refusal = Refusal::new(Errno::EINVAL, c"unknown events to count");
        return Err(refusal.value(u64::from(attr.events)));
    }
    if attr.flags != 0 {
        return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(attr.flags));
    }
    can_wait(attr.wait_obj)
}

/// Opens a counter: the `cntr_open` slot of a domain. May sleep.
///
/// # Safety
///
/// - `domain` is null or an open object.
/// - `attr` is null, an error pointer, or valid for the call.
/// - `cntr` is null or valid for writes.
pub(crate) unsafe extern "C" fn open(
    domain: *mut kfid_domain,
    attr: *mut c::kfi_cntr_attr,
    cntr: *mut *mut kfid_cntr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `domain` is null or open, and begins with its fid. `cntr` is null or valid for writes. `attr` is
    // null, an error pointer, or valid for the call.
    unsafe {
        opening::open(domain.cast(), c"cntr_open", cntr, |_, _| {
            let can_wait = parse_attr(attr, parse)?;
            let counter = Arc::pin_init(CntrCore::new(), GFP_KERNEL).map_err(|_| Errno::ENOMEM)?;
            let c = kfid_cntr {
                fid: CounterObject::fid(context),
                ops: OPS.as_ptr(),
            };
            Ok((c, CounterBody { counter, can_wait }))
        })
    }
}

/// The slots of a counter.
static OPS: Table<c::kfi_ops_cntr> = Table(c::kfi_ops_cntr {
    size: size_of::<c::kfi_ops_cntr>(),
    read: Some(read),
    readerr: Some(readerr),
    add: Some(add),
    set: Some(set),
    wait: Some(wait),
    adderr: Some(adderr),
    seterr: Some(seterr),
});

/// Returns the value: `kfi_cntr_read()`. Any context.
///
/// # Safety
///
/// `cntr` is an open counter of this core.
unsafe extern "C" fn read(cntr: *mut kfid_cntr) -> u64 {
    // SAFETY: `cntr` is an open counter of this core.
    unsafe { CounterObject::from_c(cntr) }.counter.value()
}

/// Returns the number of errors: `kfi_cntr_readerr()`. Any context.
///
/// # Safety
///
/// `cntr` is an open counter of this core.
unsafe extern "C" fn readerr(cntr: *mut kfid_cntr) -> u64 {
    // SAFETY: `cntr` is an open counter of this core.
    unsafe { CounterObject::from_c(cntr) }.counter.errors()
}

/// Defines the slots that change a counter. They always succeed.
macro_rules! change_call {
    ($($name:ident => $method:ident;)*) => {
        $(
            /// Changes the value or the number of errors. Any context.
            ///
            /// # Safety
            ///
            /// `cntr` is an open counter of this core.
            unsafe extern "C" fn $name(cntr: *mut kfid_cntr, value: u64) -> c_int {
                // SAFETY: `cntr` is an open counter of this core.
                unsafe { CounterObject::from_c(cntr) }.counter.$method(value);
                0
            }
        )*
    };
}

change_call! {
    add => add;
    adderr => add_err;
    set => set;
    seterr => set_err;
}

/// Waits until the value reaches `threshold`: `kfi_cntr_wait()`. Sleeps interruptibly.
///
/// # Safety
///
/// `cntr` is an open counter of this core.
unsafe extern "C" fn wait(cntr: *mut kfid_cntr, threshold: u64, timeout: c_int) -> c_int {
    // SAFETY: `cntr` is an open counter of this core, and close() returns EBUSY while a thread waits.
    let object = unsafe { CounterObject::from_c(cntr) };
    if !object.can_wait {
        return object.refuse(c"wait", CANT_WAIT);
    }
    let waited = object.counter.wait(threshold, queues::timeout(timeout));
    waited.map_or_else(Errno::to_c, |()| 0)
}
