// SPDX-License-Identifier: GPL-2.0

//! The end of a region.

use super::{
    mr_ext::Said,
    parts::MrParts,
    prelude::*, //
};
use crate::{
    object::{
        children::Left,
        obj::Leave,
        trace, //
    },
    support::slow_wait::CloseTimer, //
};

/// Implements `kfi_close` of a region. Sleeps until a registration that is under way has ended.
/// When it returns 0, no peer can reach the memory.
///
/// # Safety
///
/// `fid` is a region of this core that nobody else uses any more, except to close it.
pub(super) unsafe extern "C" fn close(fid: *mut kfid) -> c_int {
    let _noio = NoIo::enter();
    let _timer = CloseTimer::begin();
    // SAFETY: `fid` is a region of this core, as the caller promises.
    let closing = unsafe { Claim::new(fid) }.and_then(MrClose::begin);
    let mut closing = match closing {
        Ok(closing) => closing,
        Err(ret) => return ret,
    };
    let closed = closing.close_provided();
    closing.end(closed, Errno::EIO)
}

/// A region that is being closed: nothing can refuse that any more.
pub(super) struct MrClose {
    /// The reference that C had.
    object: MrRef,
    mr: Option<ProviderMr>,
}

impl MrClose {
    /// Begins to close a region that C has, and was claimed for that. Sleeps until a registration that is
    /// under way has ended.
    ///
    /// # Errors
    ///
    /// The errno has been reported, and the region stays open.
    ///
    /// - `EOPBADSTATE`: a registration is under way, in a handler that its end waits for.
    /// - `EBUSY`: a counter is bound to it.
    #[inline(always)]
    pub(super) fn begin(claim: Claim<MrBody>) -> Result<Self, c_int> {
        trace::closes(&*claim);
        let mr = settle(&claim).map_err(|refusal| not_closed(&claim, refusal))?;
        claim.hide();
        // SAFETY: C's reference, given out by `NewMr::start`. It is taken back once: only this
        // claim takes it, and keeps others from claiming the region.
        let object = unsafe { MrRef::from_raw(claim.keep()) };
        Ok(Self { object, mr })
    }

    /// Begins to close a region that C was not given. Nothing of it was started. Sleeps if the
    /// device just takes it.
    pub(super) fn of_new(object: MrRef) -> Self {
        trace::registered(&*object, 0);
        trace::closes(&*object);
        let mr = object.inner.with(|inner| {
            object.wait_while(inner, |inner| inner.held);
            object.untie(inner);
            inner.state.begin_close();
            inner.mr.take()
        });
        object.hide();
        Self { object, mr }
    }

    /// Returns the region's domain, and the provider's part, to be closed.
    pub(super) fn parts(&mut self) -> (&DomainObject, Option<&mut ProviderMr>) {
        (self.object.parent(), self.mr.as_mut())
    }

    /// Returns the region's domain.
    pub(super) fn domain(&self) -> &DomainObject {
        self.object.parent()
    }

    /// Has the provider close its part, if there is one. Sleeps until no peer can reach the memory.
    pub(super) fn close_provided(&mut self) -> Result<(), Refusal> {
        self.mr.as_mut().map_or(Ok(()), |mr| mr.close())
    }

    /// Ends the close, after the provider has closed its part. Returns 0, or `failed`, which has been
    /// reported. The object is gone in either case. Sleeps until nobody uses the memory that the
    /// provider has kept.
    #[inline(always)]
    pub(super) fn end(self, closed: Result<(), Refusal>, failed: Errno) -> c_int {
        let Self { object, mr } = self;
        let ret = match closed {
            Ok(()) => 0,
            // The object is gone, whatever the provider returns; `EBUSY` would deny that. Reported
            // while the provider can't be unloaded, since the text is in its module.
            Err(refusal) => object.refuse(c"close", refusal.with_errno(failed)),
        };
        trace::closed(&*object, ret);
        let (lease, reserved) = object.inner.with(|inner| {
            inner.state.end_close();
            if inner.awaited {
                object.parent().unsettled.changed.notify_all();
            }
            (MrExt::lease(&mut inner.rare, None), inner.reserved)
        });
        // The memory is the consumer's again, whatever the provider still has of it. Asked first:
        // dropping it is a call, and most have none.
        if let Some(lease) = lease {
            drop(lease);
        }
        // SAFETY: Once, since C closes the region once.
        let left = unsafe { object.place.leave() };
        // It may be dropped later, by the work that has enabled it, which doesn't use the domain any
        // more; but the domain may be closed from the end of this on.
        drop(mr);
        MrParts::free(object, reserved, left.parent());
        drop(left);
        ret
    }
}

/// Takes the region from a device that goes away. Sleeps until no peer can reach the memory: if it is
/// being registered or closed, until that has ended.
pub(super) fn end(object: &MrObject) {
    let busy = |inner: &Inner| matches!(inner.state, MrState::Pending | MrState::Closing);
    if let Ok(mut held) = object.hold(busy, |_| Ok(())) {
        if let Some(mr) = held.mr.as_mut() {
            mr.end();
        }
    }
}

impl MrObject {
    /// Sees to it that nobody takes it down any more. Any context.
    pub(super) fn untie(&self, inner: &Inner) {
        if let Some(rare) = &inner.rare {
            if let Some(ties) = rare.bonds.endpoint.get() {
                ties.untie(&rare.tie);
            }
        }
    }

    /// Sees to it that no event names the region, which is to be closed. Any context.
    fn unsay(&self, inner: &mut Inner) {
        let Some(eq) = self.eq(inner) else {
            return;
        };
        match inner.take_said() {
            Said::Once(event) if inner.state != MrState::Fallen => eq.forget(event),
            Said::Nothing if inner.state != MrState::Fallen => (),
            _ => eq.forget_all(self.as_ptr().cast()),
        }
    }
}

/// Reports why a region can't be closed, and fires the event of the close that has ended. Returns the errno. The region
/// stays open. Any context.
#[cold]
fn not_closed(object: &MrObject, refusal: Refusal) -> c_int {
    let ret = object.refuse(c"close", refusal);
    trace::closed(object, ret);
    ret
}

/// Waits until the region is not pending, and takes the provider's part to close it. After an
/// error, the region is as open as before.
fn settle(object: &MrObject) -> Result<Option<ProviderMr>, Refusal> {
    object.inner.with(|inner| {
        while inner.state == MrState::Pending {
            inner.awaited = true;
            if object.eq(inner).is_some_and(|eq| eq.in_handler()) {
                return Err(Refusal::new(
                    Errno::EOPBADSTATE,
                    c"closed in an event handler while its registration is under way",
                ));
            }
            object.parent().unsettled.changed.wait(inner);
        }
        object.wait_while(inner, |inner| inner.held);
        let counted = |counter: &Arc<CntrCore>| counter.is_open();
        if inner.counter().is_some_and(counted) {
            return Err(Refusal::new(
                Errno::EBUSY,
                c"a counter is bound to the region",
            ));
        }
        object.untie(inner);
        object.unsay(inner);
        inner.state.begin_close();
        // The references to counter and endpoint go with the object, but their memory is the
        // core's.
        Ok(inner.mr.take())
    })
}

/// Closes a region if that needs no wait. Returns 0 if the region is closed. No peer can reach the memory then. Any
/// context.
///
/// # Errors
///
/// The errno has been reported.
///
/// - `EAGAIN`: the region is still open, and a task that may sleep can close it.
/// - `EINVAL`: it isn't a region of this core, or somebody else is closing it.
///
/// # Safety
///
/// `mr` is null, an error pointer, or an open object, that nobody else uses.
pub(crate) unsafe fn close_now(mr: *mut kfid_mr) -> c_int {
    // SAFETY: `mr` is null, an error pointer, or an open object, as the caller promises.
    let object = match unsafe { Claim::<MrBody>::new(mr.cast()) } {
        Ok(object) => object,
        Err(ret) => return ret,
    };
    trace::closes(&*object);
    // SAFETY: The region has not left its place: nobody else closes it.
    let Some((left, mr, reserved)) = (unsafe { let_go(&object) }) else {
        return not_closed(&object, Errno::EAGAIN.into());
    };
    object.hide();
    trace::closed(&*object, 0);
    // SAFETY: C's reference, given out by `NewMr::start`. It is taken back once: only this claim
    // takes it, and keeps others from claiming the region.
    let object = unsafe { MrRef::from_raw(object.keep()) };
    drop(mr);
    MrParts::free(object, reserved, left.parent());
    drop(left);
    0
}

/// Closes the provider's part of a region if that needs no wait. Otherwise returns `None`. Any context.
///
/// The result has the count that keeps the domain open, the provider's part, and true if the region's parts return to
/// the domain's reserve.
///
/// # Safety
///
/// The caller has claimed the region, which has not left its place.
unsafe fn let_go(object: &MrObject) -> Option<(Left<MrBody>, Option<ProviderMr>, bool)> {
    let mut held = object.hold_now()?;
    // Before the device deregisters the memory, which can't be undone. If another task is ending the region and waits
    // for `held`, there is no place.
    // SAFETY: The region has not left its place, and only the task that has claimed the region withdraws it.
    let place = unsafe { object.place.try_withdraw() }?;
    if !held.mr.as_mut().is_some_and(|mr| mr.close_now()) {
        return None;
    }
    let left = place.leave();
    Some((left, held.mr.take(), held.close()))
}

/// Takes down all regions of an endpoint that has gone down. Sleeps until no peer can reach them.
pub(crate) fn take_down(ties: &EndpointMrs) {
    // SAFETY: `settle` ties regions only, and each is untied before it goes.
    while let Some(object) = ties.next(|region| unsafe { MrRef::another(region.cast()) }) {
        fall(&object, ties.endpoint.is_open());
    }
}

/// Takes a region down, and has the event queue told of it. Sleeps.
fn fall(object: &MrObject, told: bool) {
    // If it is closed meanwhile nobody is to be told.
    let Ok(mut held) = object.hold_enabled() else {
        return;
    };
    object.hide();
    if let Some(mr) = held.mr.as_mut() {
        mr.end();
    }
    // A reader that sees this may rely on it.
    object.publish(Public::new(object.parent(), None));
    object.inner.with(|inner| {
        inner.state.fall();
        let why = c"the region's endpoint has gone down";
        let refusal = Refusal::new(Errno::ENOTCONN, why);
        // Before it can be closed, which takes the event out again.
        if told && object.report(inner, &Err(refusal)).is_some() {
            object.refuse(c"register", refusal);
        }
    });
}
