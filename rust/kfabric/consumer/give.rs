// SPDX-License-Identifier: GPL-2.0

//! Giving requests away to who posts them.

use super::{
    call,
    pieces::Posting,
    Local,
    MsgEndpoint,
    Refused,
    Request,
    SharedReceives, //
};
use crate::support::{
    errno::Errno,
    num::widen_u32, //
};
use kernel::ffi::c_void;
use kfi_bindings::{
    kfi_addr_t,
    kfid_ep, //
};

/// The request comes back.
pub(super) const COMPLETION: u64 = widen_u32(kfi_bindings::KFI_COMPLETION);

/// The peer gets the data.
pub(super) const REMOTE_CQ_DATA: u64 = widen_u32(kfi_bindings::KFI_REMOTE_CQ_DATA);

/// The data of a message are a key of the peer's.
pub(super) const INVALIDATE: u64 = kfi_bindings::KFI_INVALIDATE;

/// Connected endpoints know no other peer, and don't look at it.
pub(super) const PEER: kfi_addr_t = 0;

/// A request that was refused comes back.
pub(super) type Posted<B, C> = Result<(), Refused<Request<B, C>>>;

/// What is done with a request's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It is read.
    Source,
    /// It is written.
    Target,
}

/// Gives a request away by `call`, which posts it.
fn give<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    role: Role,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    let allowed = match role {
        Role::Source => request.memory().may_be_read(),
        Role::Target => request.memory().may_be_written(),
    };
    if !allowed {
        return Err(Refused::new(Errno::EINVAL, request));
    }
    match request.run() {
        Ok(Some(run)) => give_as(request, Posting::One(run), call),
        Ok(None) => give_list(request, call),
        Err(errno) => Err(Refused::new(errno, request)),
    }
}

/// The same, of memory in several places. They take room on the stack, which the others needn't have.
#[inline(never)]
fn give_list<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    match request.pieces() {
        Ok(pieces) => give_as(request, Posting::List(&pieces), call),
        Err(errno) => Err(Refused::new(errno, request)),
    }
}

/// The same, of memory that is there.
fn give_as<B: Local, C: Send + 'static>(
    request: Request<B, C>,
    posting: Posting<'_>,
    call: impl FnOnce(Posting<'_>, *mut c_void) -> Result<isize, Errno>,
) -> Posted<B, C> {
    let context = request.into_context();
    let posted = call(posting, context).and_then(call::count);
    match posted {
        Ok(_) => Ok(()),
        // SAFETY: It was refused, so nobody else has it.
        Err(errno) => match unsafe { Request::from_context(context.addr()) } {
            Some(request) => Err(Refused::new(errno, request)),
            None => Ok(()),
        },
    }
}

impl<S, B: Local, C: Send + 'static> MsgEndpoint<S, B, C> {
    /// Gives a request away by `call`, which posts it on the endpoint.
    pub(super) fn post(
        &self,
        request: Request<B, C>,
        role: Role,
        call: impl FnOnce(*mut kfid_ep, Posting<'_>, *mut c_void) -> Result<isize, Errno>,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        give(request, role, |posting, context| call(ep, posting, context))
    }
}

impl<B: Local, C: Send + 'static> SharedReceives<B, C> {
    /// Gives a request away by `call`, which posts it on the context.
    pub(super) fn post(
        &self,
        request: Request<B, C>,
        role: Role,
        call: impl FnOnce(*mut kfid_ep, Posting<'_>, *mut c_void) -> Result<isize, Errno>,
    ) -> Posted<B, C> {
        let ep = self.as_raw();
        give(request, role, |posting, context| call(ep, posting, context))
    }
}

#[kernel::macros::kunit_tests(kfabric_consumer_give)]
mod tests {
    use super::*;
    use crate::consumer::Run;
    use kernel::prelude::*;

    /// Memory that is there only to be read, or only to be written.
    struct OneWay(KVec<u8>, Role);

    // SAFETY: By the promises of `Buffer`.
    unsafe impl Local for OneWay {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn run(&self) -> Option<Run> {
            self.0.run()
        }

        fn may_be_read(&self) -> bool {
            self.1 == Role::Source
        }

        fn may_be_written(&self) -> bool {
            self.1 == Role::Target
        }
    }

    /// Is the one role refused, and the other one taken?
    fn is_only(role: Role, other: Role) -> Result {
        let memory = OneWay(KVec::from_elem(1, 10, GFP_KERNEL)?, role);
        let refused = give(Request::new(memory, ())?, other, |_, _| Ok(0));
        let Err(refused) = refused else {
            return Err(EIO);
        };
        assert_eq!(refused.errno(), Errno::EINVAL);
        let refused = give(refused.into_inner(), role, |posting, _| {
            assert_eq!(posting.one().map(|run| run.len), Ok(10));
            Err(Errno::EAGAIN)
        });
        let Err(refused) = refused else {
            return Err(EIO);
        };
        assert_eq!(refused.errno(), Errno::EAGAIN);
        Ok(())
    }

    #[test]
    fn what_may_not_be_written_is_only_read() -> Result {
        is_only(Role::Source, Role::Target)
    }

    #[test]
    fn what_may_not_be_read_is_only_written() -> Result {
        is_only(Role::Target, Role::Source)
    }
}
