// SPDX-License-Identifier: GPL-2.0

//! Regions that are filled with memory and emptied again and again (`kfi_reuse_ops_v1`).
//!
//! A task takes the provider's part out of the region, uses the part without a lock, and puts it
//! back. Meanwhile a second task finds no part. Tasks that may sleep wait for the part.
//!
//! ```text
//!            fill()                 empty_now(), empty()
//!   Empty ------------> Filled --------------------------> Empty
//!     |                   |  | the device keeps the memory
//!     | the device goes   |  +----------------------------> Stuck
//!     +-------------------+-------------------------------> Dead
//! ```
//!
//! Lock order: the lock of a region is a leaf, but for that of its wait queue.
//!
//! C header: [`include/kfi_reuse_ext.h`](srctree/include/kfi_reuse_ext.h)

use super::{
    children::Coming,
    domain::{
        DomainBody,
        DomainObject, //
    },
    ep::EndpointObject,
    mr::reg::requested,
    prelude::*,
    trace, //
};
use crate::{
    provider::reuse::ReusableMrOps,
    region::access::Access,
    support::num::c_str, //
};
use kernel::sync::atomic::Release;

/// The class of these regions. In C, they have the same class number as other regions.
static REUSABLE: Class = Class::new(
    c::KFI_CLASS_MR,
    c"not a region of kfi_reuse_ops",
    c"a region of kfi_reuse_ops is open in it",
);

/// A region as C has it.
pub(crate) type ReusableObject = Obj<ReusableBody>;

/// The core's part of a region.
#[pin_data]
pub(crate) struct ReusableBody {
    #[pin]
    inner: IrqLock<Inner>,
    /// Notified when the provider's part comes back.
    #[pin]
    back: CondVar,
}

struct Inner {
    state: FillState,
    /// `None` while a task uses it.
    mr: Option<KBox<dyn ReusableMrOps>>,
    /// A task waits for `mr`.
    awaited: bool,
}

/// The content of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FillState {
    /// Nothing.
    Empty,
    /// Memory of `len` bytes, which peers may reach.
    Filled { len: u64, access: Access },
    /// Memory that the device won't let go of.
    Stuck,
    /// Nothing that peers reach, for good: the device is gone.
    Dead,
}

impl FillState {
    /// Checks whether the region can be filled.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: the region has memory.
    /// - `ENOTRECOVERABLE`: the device won't let go of earlier memory.
    /// - `ENODEV`: the device is gone.
    fn check_empty(self) -> Result<(), Refusal> {
        match self {
            Self::Empty => Ok(()),
            Self::Filled { .. } => Err(Refusal::new(Errno::EOPBADSTATE, c"the region has memory")),
            Self::Stuck => Err(STUCK),
            Self::Dead => Err(Refusal::new(Errno::ENODEV, c"the device is gone")),
        }
    }
}

const STUCK: Refusal = Refusal::new(
    Errno::ENOTRECOVERABLE,
    c"the device won't let go of the region's memory",
);

const IN_USE: Refusal = Refusal::new(Errno::EOPBADSTATE, c"another call uses the region");

impl Object for ReusableBody {
    type C = kfid_mr;
    type Place = Place<Self>;
    const CLASS: &'static Class = &REUSABLE;
    const OPS: kfi_ops = slots::<Self>();

    fn describe(object: &ReusableObject, about: &mut c::kfi_helper_object) {
        object.inner.with(|inner| match inner.state {
            FillState::Filled { len, access } => {
                (about.length, about.access) = (len, access.bits());
            }
            _ => about.state = c::kfi_helper_state_KFI_STATE_DISABLED,
        });
    }
}

impl Child for ReusableBody {
    type Parent = DomainBody;
    const SHARE: Share = Share::LIMITED;
    const END: Option<fn(&ReusableObject)> = Some(|object| object.end());
}

impl Close for ReusableBody {
    /// Empties the region. Sleeps until no peer can reach its memory.
    ///
    /// # Errors
    ///
    /// - `ENOTRECOVERABLE`: the device won't let go of the memory. The next close succeeds.
    fn close(object: &Obj<Self>) -> Result<(), Refusal> {
        let mut part = object.wait_for();
        let was = part.state;
        let emptied = part.empty();
        match was {
            // The first close, or `empty`, has reported it.
            FillState::Stuck => Ok(()),
            _ => emptied,
        }
    }
}

/// The provider's part of a region, in the hands of a task. Dropping it puts it back. Any context.
struct InUse<'a> {
    of: &'a ReusableObject,
    state: FillState,
    /// There until this is dropped.
    mr: Option<KBox<dyn ReusableMrOps>>,
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.of.inner.with(|inner| {
            (inner.state, inner.mr) = (self.state, self.mr.take());
            // Under the lock: afterwards, the task that closes the region may free it.
            if mem::take(&mut inner.awaited) {
                self.of.back.notify_all();
            }
        });
    }
}

impl InUse<'_> {
    /// Fills the region. Any context.
    fn fill(&mut self, request: &MrRequest<'_>, more: bool) -> Result<Keys, Refusal> {
        self.state.check_empty()?;
        let keys = self.mr.as_mut().ok_or(IN_USE)?.fill(request, more)?;
        self.state = FillState::Filled {
            len: request.shape().bytes(),
            access: request.access(),
        };
        Ok(keys)
    }

    /// Empties the region if that needs no wait. Any context.
    ///
    /// # Errors
    ///
    /// - `EAGAIN`: only a task that may sleep can empty the region.
    fn empty_now(&mut self) -> Result<(), Refusal> {
        match self.state {
            FillState::Empty | FillState::Dead => Ok(()),
            FillState::Stuck => Err(Errno::EAGAIN.into()),
            FillState::Filled { .. } => self.let_go(|mr| match mr.empty_now() {
                true => Ok(FillState::Empty),
                false => Err(Errno::EAGAIN.into()),
            }),
        }
    }

    /// Empties the region. Sleeps until no peer can reach its memory.
    fn empty(&mut self) -> Result<(), Refusal> {
        match self.state {
            FillState::Empty | FillState::Dead => Ok(()),
            FillState::Stuck => Err(STUCK),
            FillState::Filled { .. } => self
                .let_go(|mr| match mr.empty() {
                    Ok(()) => Ok(FillState::Empty),
                    Err(refusal) => Err(refusal.with_errno(Errno::ENOTRECOVERABLE)),
                })
                .inspect_err(|_| self.state = FillState::Stuck),
        }
    }

    /// Calls `empty`, which releases the memory and returns the new state. Fires the events of a close.
    fn let_go(
        &mut self,
        empty: impl FnOnce(&mut dyn ReusableMrOps) -> Result<FillState, Refusal>,
    ) -> Result<(), Refusal> {
        trace::closes(self.of);
        let emptied = self.mr.as_mut().map_or(Err(IN_USE), |mr| empty(&mut **mr));
        let emptied = emptied.map(|state| self.state = state);
        trace::closed(self.of, trace::errno(&emptied));
        emptied
    }
}

impl ReusableObject {
    /// Takes the provider's part. Any context.
    ///
    /// # Errors
    ///
    /// - `EOPBADSTATE`: another task uses it.
    fn take(&self) -> Result<InUse<'_>, Refusal> {
        self.inner.with(|inner| match inner.mr.take() {
            Some(mr) => Ok(InUse {
                of: self,
                state: inner.state,
                mr: Some(mr),
            }),
            None => Err(IN_USE),
        })
    }

    /// Takes the provider's part. Sleeps until nobody else uses it.
    fn wait_for(&self) -> InUse<'_> {
        self.inner.with(|inner| loop {
            if let Some(mr) = inner.mr.take() {
                return InUse {
                    of: self,
                    state: inner.state,
                    mr: Some(mr),
                };
            }
            inner.awaited = true;
            self.back.wait(inner);
        })
    }

    /// Takes the region from a device that goes away. Sleeps until no peer can reach its memory.
    fn end(&self) {
        let mut part = self.wait_for();
        let ended = match (part.state, part.mr.as_mut()) {
            (FillState::Filled { .. }, _) => part.let_go(|mr| mr.end().map(|()| FillState::Dead)),
            (_, mr) => mr.map_or(Ok(()), |mr| mr.end()),
        };
        part.state = match (part.state, ended) {
            (FillState::Stuck, _) | (_, Err(_)) => FillState::Stuck,
            // Emptying it takes no device.
            _ => FillState::Dead,
        };
    }

    /// Shows C how peers reach the region, if it is filled. Any context.
    fn publish(&self, keys: &Keys) {
        let c = self.as_ptr();
        // SAFETY: `c` is this object's. C only reads these fields, and may do so meanwhile.
        unsafe {
            (&raw mut (*c).iova).write_volatile(keys.base);
            Atomic::from_ptr(&raw mut (*c).key).store(keys.key, Release);
        }
    }
}

pub(crate) const REUSE_NAME: &CStr = c_str(c::KFI_REUSE_OPS_1);

pub(crate) static REUSE_OPS: Table<c::kfi_reuse_ops> = Table(c::kfi_reuse_ops {
    size: size_of::<c::kfi_reuse_ops>(),
    open: Some(open),
    fill: Some(fill),
    empty_now: Some(empty_now),
    empty: Some(empty),
    flush: Some(flush),
});

/// Opens a region: the `open` slot. May sleep.
///
/// # Safety
///
/// - `fid` and `ep` are null or open objects.
/// - `mr` is null or valid for writes.
unsafe extern "C" fn open(
    fid: *mut kfid,
    ep: *mut kfid_ep,
    pages: usize,
    mr: *mut *mut kfid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `fid` is null or an open object, and `mr` null or valid for writes.
    unsafe {
        opening::call(fid, c"reuse_open", mr, |domain: &DomainObject, out| {
            let ep = EndpointObject::from_fid(ep.cast())?;
            out.put(open_in(domain, ep, pages, context)?);
            Ok(())
        })
    }
}

/// Opens a region of a domain and an endpoint. May sleep.
fn open_in(
    domain: &DomainObject,
    ep: &EndpointObject,
    pages: usize,
    context: *mut c_void,
) -> Result<*mut kfid_mr, Refusal> {
    let limits = &domain.mr_limits;
    if !ptr::eq(ep.parent(), domain) {
        return Err(Refusal::new(
            Errno::EINVAL,
            c"an endpoint of another domain",
        ));
    }
    if pages == 0 {
        return Err(Refusal::new(Errno::EINVAL, c"a region without pages"));
    }
    if widen(pages) > limits.pages {
        return Err(Refusal::new(Errno::E2BIG, c"too many pages").value(widen(pages)));
    }
    if !domain.has_mode(c::KFI_MR_ENDPOINT) {
        let why = c"regions are not bound to endpoints without KFI_MR_ENDPOINT";
        return Err(Refusal::new(Errno::ENOSYS, why));
    }
    let most = u32::try_from(limits.regions).unwrap_or(u32::MAX);
    // A task that ends all open objects waits for the place.
    let place = Coming::<ReusableBody>::new_below(domain, most)?;
    let object = KBox::<ReusableObject>::new_uninit(GFP_KERNEL)?;
    let mr = domain.provider().reusable_mr(ep.endpoint(), pages)?;
    let c = kfid_mr {
        fid: kfid {
            ref_cnt: c::atomic_t { counter: 1 },
            ..ReusableObject::fid(context)
        },
        mem_desc: null_mut(),
        key: widen(c::KFI_KEY_NOTAVAIL),
        iova: 0,
    };
    let inner = Inner {
        state: FillState::Empty,
        mr: Some(mr),
        awaited: false,
    };
    let body = pin_init!(ReusableBody {
        inner <- new_irq_lock!(inner, c"kfabric_reusable"),
        back <- new_condvar!("kfabric_reusable"),
    });
    let opened = opening::give(object, c, body, place.take());
    domain.counters.count_opened();
    Ok(opened)
}

/// Fills a region: the `fill` slot. Any context.
///
/// # Safety
///
/// - `mr` is null or an open object.
/// - `bvecs` is null or has `count` elements, whose memory stays until the region is empty.
unsafe extern "C" fn fill(
    mr: *mut kfid_mr,
    bvecs: *const bio_vec,
    count: usize,
    access: u64,
    flags: u64,
) -> c_int {
    const MORE: u64 = widen_u32(c::KFI_MORE);
    let fill = |object: &ReusableObject| {
        if flags & !MORE != 0 {
            return Err(Refusal::new(Errno::EBADFLAGS, c"flag not supported").value(flags));
        }
        let arguments = Arguments {
            access,
            offset: 0,
            requested_key: 0,
            flags: 0,
            auth_key: AuthKey::None,
            together: false,
        };
        // SAFETY: `bvecs` is null or has `count` elements for the call.
        let source = unsafe { SegmentList::from_raw(bvecs, count) }.map(Source::Bvec)?;
        let mut part = object.take()?;
        let fill = |request: &MrRequest<'_>| part.fill(request, flags & MORE != 0);
        let keys = requested(source, arguments, object.parent(), fill)?;
        object.publish(&keys);
        drop(part);
        trace::registered(object, 0);
        Ok(())
    };
    // SAFETY: `mr` is null or an open object.
    unsafe {
        let filled = ReusableObject::from_fid(mr.cast()).and_then(fill);
        ReusableObject::answer(mr.cast(), c"fill", filled.map(|()| 0))
    }
}

/// Empties a region without a wait: the `empty_now` slot. Any context.
///
/// # Safety
///
/// `mr` is null or an open object.
unsafe extern "C" fn empty_now(mr: *mut kfid_mr) -> c_int {
    // SAFETY: `mr` is null or an open object.
    unsafe {
        let emptied = ReusableObject::from_fid(mr.cast()).and_then(|object| match object.take() {
            Ok(mut part) => part.empty_now(),
            Err(_) => Err(Errno::EAGAIN.into()),
        });
        ReusableObject::answer(mr.cast(), c"empty_now", emptied.map(|()| 0))
    }
}

/// Empties a region: the `empty` slot. Sleeps until no peer can reach its memory.
///
/// # Safety
///
/// `mr` is null or an open object.
unsafe extern "C" fn empty(mr: *mut kfid_mr) -> c_int {
    // SAFETY: `mr` is null or an open object.
    unsafe { ReusableObject::call(mr.cast(), c"empty", |object| object.wait_for().empty()) }
}

/// Posts the requests of an endpoint that wait for more: the `flush` slot. Any context.
///
/// # Safety
///
/// `ep` is null or an open object.
unsafe extern "C" fn flush(ep: *mut kfid_ep) -> c_int {
    // SAFETY: `ep` is null or an open object.
    unsafe {
        let flushed = EndpointObject::from_fid(ep.cast()).and_then(|ep| ep.flush());
        EndpointObject::answer(ep.cast(), c"flush", flushed.map(|()| 0))
    }
}

#[kernel::macros::kunit_tests(kfabric_reusable)]
mod tests {
    use super::*;

    #[test]
    fn filled_when_empty() {
        let errno = |state: FillState| state.check_empty().err().map(|refusal| refusal.errno());
        assert_eq!(errno(FillState::Empty), None);
        let filled = FillState::Filled {
            len: 1,
            access: Access::SEND,
        };
        assert_eq!(errno(filled), Some(Errno::EOPBADSTATE));
        assert_eq!(errno(FillState::Stuck), Some(Errno::ENOTRECOVERABLE));
        assert_eq!(errno(FillState::Dead), Some(Errno::ENODEV));
    }
}
