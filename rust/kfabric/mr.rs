// SPDX-License-Identifier: GPL-2.0

//! The memory region as C has it.
//!
//! Lock order: a region's lock is taken before anything of its provider, and before the locks of
//! event queues, counters and endpoints.

mod bind;
mod control;
mod enable;
mod kit;
mod ranges;
mod state;

pub(crate) use self::kit::Kit;
use self::{
    ranges::Ranges,
    state::State, //
};
use crate::{
    access::Access,
    counter::Counter,
    domain::DomainObject,
    endpoint::Endpoint,
    eq::{
        EqObject,
        Unread, //
    },
    errno::Errno,
    fid,
    lease::Lease,
    noio::NoIo,
    num::widen,
    provider::{
        Domain,
        Keys,
        Mr, //
    },
    refusal::Refusal,
    request::MrRequest,
    table::{
        no_op5,
        Table, //
    }, //
};
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    new_condvar,
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        Arc,
        CondVar,
        Mutex, //
    },
    types::Opaque,
    workqueue::Work, //
};
use kfi_bindings::{
    kfi_ops,
    kfid,
    kfid_mr, //
};

/// A `struct kfid_mr` and what the core keeps with it.
///
/// C has a reference from [`open`] to [`close`]; the work that enables the region has another.
///
/// # Invariants
///
/// `c.fid` is what C points to; `domain` and `eq` stay open until [`close`] has ended, since the
/// domain counts this region as a child, and the queue is bound to the domain.
#[repr(C)]
#[pin_data]
pub(crate) struct MrObject {
    // C may write to it: the context is the consumer's.
    c: Opaque<kfid_mr>,
    domain: NonNull<DomainObject>,
    /// Where it is reported that the region is enabled; otherwise the call waits for it.
    eq: Option<NonNull<EqObject>>,
    access: Access,
    len: u64,
    ranges: Ranges,
    /// What it is made of goes back to the domain's reserve.
    reserved: bool,
    #[pin]
    inner: Mutex<Inner>,
    /// A region is no longer pending.
    #[pin]
    settled: CondVar,
    #[pin]
    work: Work<Self>,
}

// SAFETY: What the pointers lead to may be used by any thread, by the invariants; the addresses in
// `ranges` are only passed on.
unsafe impl Send for MrObject {}
// SAFETY: As above; `c` is not read but for what never changes.
unsafe impl Sync for MrObject {}

/// What changes in a region's life.
struct Inner {
    state: State<Arc<Counter>, Arc<Endpoint>>,
    /// `None` while it is pending: then whoever enables it has it.
    mr: Option<KBox<dyn Mr>>,
    /// How peers reach it, once enabled.
    keys: Option<Keys>,
    /// The event that tells how enabling it ended.
    event: Option<Unread>,
    /// What the provider keeps of the memory may be used until this is dropped.
    lease: Option<Lease>,
}

impl MrObject {
    /// The domain that it was registered in.
    pub(crate) fn domain(&self) -> &DomainObject {
        // SAFETY: Open by the invariant.
        unsafe { self.domain.as_ref() }
    }

    fn eq(&self) -> Option<&EqObject> {
        // SAFETY: Open by the invariant.
        self.eq.map(|eq| unsafe { eq.as_ref() })
    }

    fn fid(&self) -> *mut kfid {
        self.c.get().cast()
    }
}

static FID_OPS: Table<kfi_ops> = Table(kfi_ops {
    size: size_of::<kfi_ops>(),
    close: Some(close),
    bind: Some(bind::bind),
    control: Some(control::control),
    ops_open: Some(no_op5),
});

/// A region that was registered, with perhaps the device's part still to be done.
pub(crate) struct Opened {
    object: Arc<MrObject>,
    pending: bool,
}

impl Opened {
    /// What C gets.
    pub(crate) fn as_ptr(&self) -> *mut kfid_mr {
        Arc::as_ptr(&self.object).cast_mut().cast()
    }

    /// Gives the object to C, which must know of it already: from here on there may be an event.
    /// May sleep.
    pub(crate) fn start(self) {
        let work = self.pending.then(|| self.object.clone());
        // C's reference, which `close` takes back; perhaps before this returns.
        let _ = Arc::into_raw(self.object);
        if let Some(work) = work {
            enable::queue(work);
        }
    }
}

/// Registers a valid request and makes the object that C gets.
///
/// Sleeps until the device is done; but where an event queue is bound to the domain, that is left
/// to [`Opened::start`]. A region that has to be bound first stays disabled.
pub(crate) fn open(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
) -> Result<Opened, Refusal> {
    // Until what was not used has gone back.
    let _call = domain.add_child()?;
    let mut kit = match domain.reserve().and_then(|reserve| reserve.take(request)) {
        Some(kit) => kit,
        None => Kit::new(),
    };
    let opened = register(domain, request, context, &mut kit);
    if opened.is_err() {
        kit.put_back(domain);
    }
    opened
}

/// Registers a request by what `kit` has, and takes that; or leaves it as it was.
fn register(
    domain: &DomainObject,
    request: &MrRequest<'_>,
    context: *mut c_void,
    kit: &mut Kit,
) -> Result<Opened, Refusal> {
    // Allocated first: nothing is left to fail once the peer can reach the memory.
    kit.complete()?;
    let child = domain.add_region()?;
    if domain.mr_limits().refresh.is_ok() {
        kit.ranges.set(request.source())?;
    }
    let mut state = State::new(
        request.flags() & kfi_bindings::KFI_RMA_EVENT != 0,
        domain.has_mode(kfi_bindings::KFI_MR_ENDPOINT),
    );
    let eq = domain.eq();
    let mr = kit.create(domain, request)?;
    // From here on dropped when an error ends the registration, or by `close`.
    let lease = request.take_lease();
    let begun = enable::begin(mr, &mut state, eq.is_some())
        .map_err(|refusal| not_enabled(refusal, mr.close()))?;
    let (desc, key, iova) = match &begun {
        Some(keys) => (keys.desc, public_key(domain, keys), keys.base),
        None => (0, widen(kfi_bindings::KFI_KEY_NOTAVAIL), 0),
    };
    let pending = state.is_pending();
    let Kit {
        object,
        mr,
        ranges,
        reserved,
    } = mem::replace(kit, Kit::new());
    let object = object.ok_or(Errno::EIO)?;
    // INVARIANT: `child` keeps the domain open and is given up by `close` only.
    let object = object.pin_init_with(pin_init!(MrObject {
        c: Opaque::new(kfid_mr {
            fid: fid::new(kfi_bindings::KFI_CLASS_MR, context, &FID_OPS),
            mem_desc: ptr::without_provenance_mut(desc),
            key,
            iova,
        }),
        domain: child.keep(),
        eq: eq.map(NonNull::from),
        access: request.access(),
        len: request.shape().bytes(),
        ranges,
        reserved,
        inner <- new_mutex!(Inner { state, mr, keys: begun, event: None, lease }),
        settled <- new_condvar!(),
        work <- new_work!("kfabric::MrObject::work"),
    }));
    match object {
        Ok(object) => Ok(Opened {
            object: object.into(),
            pending,
        }),
        Err(never) => match never {},
    }
}

/// Why a region can't be had. The reason why it could not be enabled says more than that it could
/// not be closed then; but nobody has it, so nobody else tells that its memory must never be freed.
fn not_enabled(refusal: Refusal, closed: Result<(), Refusal>) -> Refusal {
    match closed {
        Ok(()) => refusal,
        Err(_) => refusal.with_errno(Errno::ENOTRECOVERABLE),
    }
}

/// What `kfi_mr_key()` gives.
fn public_key(domain: &DomainObject, keys: &Keys) -> u64 {
    match domain.has_mode(kfi_bindings::KFI_MR_RAW) {
        true => widen(kfi_bindings::KFI_KEY_NOTAVAIL),
        false => keys.key,
    }
}

/// `kfi_close` of a region. Sleeps until a registration that is under way has ended; when it
/// returns 0, no peer can reach the memory.
///
/// # Safety
///
/// `fid` is a region of this core that is used by nobody else any more.
unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `fid` is the first field of an object to which C has a reference.
    let object = unsafe { &*fid.cast::<MrObject>() };
    let (mut mr, event) = match settle(object) {
        Ok(settled) => settled,
        Err(refusal) => return refusal.report(),
    };
    if let (Some(eq), Some(event)) = (object.eq(), event) {
        // No event names a region that is gone.
        eq.forget(event);
    }
    let closed = match mr.as_mut().map_or(Ok(()), |mr| mr.close()) {
        Ok(()) => 0,
        // Whatever the provider says: the object is gone, which `EBUSY` would deny. Reported while
        // the provider can't be unloaded, whose words they are.
        Err(refusal) => refusal.with_errno(Errno::EIO).report(),
    };
    let lease = object.inner.lock().lease.take();
    // The memory is the consumer's again, whatever the provider still has of it.
    drop(lease);
    let domain = object.domain;
    // SAFETY: By the invariant of the object, which counts as a child of the domain until here.
    let domain = unsafe { domain.as_ref() };
    let reserved = object.reserved;
    // SAFETY: C's reference, given out by `Opened::start`, which C doesn't use any more.
    let object = unsafe { Arc::from_raw(fid.cast::<MrObject>()) };
    if reserved {
        Kit::of_closed(object, mr).put_back(domain);
    } else {
        drop((mr, object));
    }
    domain.remove_region();
    closed
}

/// What a region leaves to be closed: the provider's part, and an event that may not have been read.
type Settled = (Option<KBox<dyn Mr>>, Option<Unread>);

/// Waits until the region is not pending, and takes what is to be closed. After an error it is as
/// open as before.
fn settle(object: &MrObject) -> Result<Settled, Refusal> {
    let mut inner = object.inner.lock();
    while inner.state.is_pending() {
        if object.eq().is_some_and(EqObject::in_handler) {
            return Err(Refusal::new(
                Errno::EOPBADSTATE,
                c"closed in an event handler while its registration is under way",
            ));
        }
        object.settled.wait(&mut inner);
    }
    if inner
        .state
        .counter()
        .is_some_and(|counter| counter.is_open())
    {
        return Err(Refusal::new(
            Errno::EBUSY,
            c"a counter is bound to the region",
        ));
    }
    // What keeps counter and endpoint goes with the object, but their memory is the core's.
    Ok((inner.mr.take(), inner.event.take()))
}

/// The region behind a fid.
///
/// # Safety
///
/// `fid` is null or an open object; the reference is not used after it was closed.
pub(crate) unsafe fn object<'a>(fid: *mut kfid) -> Result<&'a MrObject, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { fid::has_ops(fid, &FID_OPS) } {
        // SAFETY: The table tells that this is the first field of one of our objects.
        true => Ok(unsafe { &*fid.cast::<MrObject>() }),
        false => Err(Refusal::new(Errno::EINVAL, c"not a memory region")),
    }
}

/// The provider's domain that a region was registered in, if it is one of type `D`. For a
/// provider's extensions.
///
/// # Safety
///
/// `mr` is null or an open region; the reference is not used after it was closed.
pub unsafe fn domain_of<'a, D: Domain>(mr: *mut kfid_mr) -> Option<&'a D> {
    // SAFETY: By the requirements of this function.
    let object = unsafe { object(mr.cast()) }.ok()?;
    object.domain().provider().as_any().downcast_ref()
}
