// SPDX-License-Identifier: GPL-2.0

//! Conversion of drivers' errors to the documented ones. No error of a driver is passed through.

use crate::prelude::*;
use rdma::{
    cm,
    Device,
    RefreshError, //
};

/// Returns a refusal whose value is the error of a driver.
pub(crate) fn driver(errno: Errno, why: &'static CStr, error: Error) -> Refusal {
    Refusal::new(errno, why).value(u64::from(error.to_errno().unsigned_abs()))
}

/// Returns the refusal for an error of a driver. Its errno and text are those of the entry of
/// `known` with the driver's errno, or else those of `other`.
fn by_errno(
    error: Error,
    known: &[(Errno, &'static CStr)],
    other: (Errno, &'static CStr),
) -> Refusal {
    let own = known
        .iter()
        .find(|(errno, _)| errno.to_c() == error.to_errno());
    let (errno, why) = *own.unwrap_or(&other);
    driver(errno, why, error)
}

/// Returns the refusal for a failed allocation on the device. The arguments were right, so the
/// cause is a lack of memory or of regions.
pub(crate) fn no_region(error: Error) -> Refusal {
    let known = [(Errno::ENOMEM, c"no memory for a region")];
    let other = (Errno::ENOSPC, c"the device has no region left");
    by_errno(error, &known, other)
}

/// Returns the refusal if a list could not be built or mapped.
pub(crate) fn not_mapped(error: Error) -> Refusal {
    let known = [(Errno::ENOMEM, c"no memory for the mapping")];
    let other = (Errno::EIO, c"the memory can't be mapped for the device");
    by_errno(error, &known, other)
}

/// Returns the refusal if the resources of a domain could not be created.
pub(crate) fn no_domain(error: Error) -> Refusal {
    const LATE: &CStr = c"the device didn't complete a request for the domain in time";
    const KNOWN: [(Errno, &CStr); 2] = [
        (Errno::ENETDOWN, c"no active port"),
        (Errno::ENOMEM, c"no memory for a domain"),
    ];
    match error {
        error if error == ENODEV => gone(),
        error if error == ETIMEDOUT => driver(Errno::EIO, LATE, error),
        error => by_errno(
            error,
            &KNOWN,
            (Errno::EIO, c"the device refused the domain's queue"),
        ),
    }
}

/// Returns the refusal if the registration queue could not be replaced.
pub(crate) fn no_queue(error: Error) -> Refusal {
    const KNOWN: [(Errno, &CStr); 2] = [
        (Errno::ENETDOWN, c"no active port"),
        (Errno::ENOMEM, c"no memory for the queue"),
    ];
    match error {
        error if error == ENODEV => gone(),
        error => by_errno(
            error,
            &KNOWN,
            (Errno::EIO, c"the registration queue failed"),
        ),
    }
}

const NO_REQUEST: [(Errno, &CStr); 1] = [(Errno::ENOMEM, c"no memory for the work request")];
const NOT_TAKEN: &CStr = c"the device didn't take the work request";

/// Returns the refusal for a failed registration, and logs the failure. Its value is the errno of
/// the driver that refused the work request, or the status (`enum ib_wc_status`) of its completion.
pub(crate) fn not_registered(device: &Device, error: WrError) -> Refusal {
    // The log has an entry for a late request already.
    let is_new = !matches!(error, WrError::TimedOut);
    // SAFETY: The helper may be called in any context: it locks its own rate limit.
    if is_new && unsafe { kfi_bindings::kfi_verbs_helper_may_log() } {
        pr_warn!("{}: registering a region: {}\n", device.name(), error);
    }
    let refused = |why| Refusal::new(Errno::EIO, why);
    match error {
        WrError::Post(error) => by_errno(error, &NO_REQUEST, (Errno::EIO, NOT_TAKEN)),
        WrError::Flushed => refused(c"the registration queue keeps failing"),
        WrError::Failed(status) => {
            refused(c"the device failed the work request").value(u64::from(status.as_raw()))
        }
        WrError::TimedOut => refused(c"the device didn't complete the work request in time"),
        WrError::Lost => lost_for_good(),
    }
}

/// Returns the refusal for a failed registration that cannot be retried.
pub(crate) fn not_undone(error: Error) -> Refusal {
    match error {
        error if error == ENOMEM => driver(Errno::ENOMEM, c"no memory to try again", error),
        _ => lost_for_good(),
    }
}

fn lost_for_good() -> Refusal {
    Refusal::new(
        Errno::ENOTRECOVERABLE,
        c"the device won't let go of the memory, which must never be freed",
    )
}

/// Returns the refusal if a region could not get other memory.
pub(crate) fn not_refreshed(error: RefreshError) -> Refusal {
    match error {
        RefreshError::Untouched(error) if error == ENOMEM => {
            driver(Errno::ENOMEM, c"no memory for the region", error)
        }
        RefreshError::Untouched(error) => {
            driver(Errno::EIO, c"the region can't be refreshed", error)
        }
        RefreshError::Gone => {
            Refusal::new(Errno::EIO, c"the device failed; no peer reaches the region")
        }
        RefreshError::Leaked => stuck().with_errno(Errno::ENOTRECOVERABLE),
    }
}

/// Returns the refusal if the device does not release a region.
pub(crate) fn stuck() -> Refusal {
    Refusal::new(
        Errno::EIO,
        c"the device won't let go of the region, whose memory must never be freed",
    )
}

/// Returns the refusal if the resources of an endpoint could not be created.
pub(crate) fn no_endpoint(error: Error) -> Refusal {
    let known = [(Errno::ENOMEM, c"no memory for an endpoint")];
    let other = (Errno::ENOSPC, c"the device has no queue pair left");
    by_errno(error, &known, other)
}

/// Returns the refusal if a passive endpoint cannot listen.
pub(crate) fn not_listening(error: Error) -> Refusal {
    let known = [
        (Errno::ENOMEM, c"no memory for a listener"),
        (Errno::EADDRINUSE, c"somebody listens there"),
    ];
    let other = (
        Errno::EADDRNOTAVAIL,
        c"no device of this machine has that address",
    );
    by_errno(error, &known, other)
}

/// Returns the errno for an error of the connection manager.
pub(crate) fn connecting(error: Error) -> Errno {
    const KNOWN: [Errno; 7] = [
        Errno::ENOMEM,
        Errno::EINVAL,
        Errno::ETIMEDOUT,
        Errno::EADDRINUSE,
        Errno::EADDRNOTAVAIL,
        Errno::ECONNREFUSED,
        Errno::ECONNRESET,
    ];
    let known = KNOWN
        .into_iter()
        .find(|known| known.to_c() == error.to_errno());
    // No device leads there, a device other than the endpoint's does, or there is no route.
    known.unwrap_or(Errno::EHOSTUNREACH)
}

/// The first `prov_errno` for the connection manager's reasons.
const REJECTED: i32 = num::signed(kfi_bindings::KFI_VERBS_REJECTED);

/// Returns the `prov_errno` for the reason of a rejection. Over iWARP the reason is an errno.
pub(crate) fn rejected(reason: i32) -> i32 {
    reason
        .checked_add(REJECTED)
        .filter(|_| reason > 0)
        .unwrap_or(reason)
}

/// Returns the text for a `prov_errno`.
pub(crate) fn rejection(prov_errno: i32) -> Option<&'static CStr> {
    // Reasons are bytes.
    let reason = u8::try_from(prov_errno.checked_sub(REJECTED)?).ok()?;
    Some(cm::rejection(reason.into()))
}

/// Returns the refusal if a connection was tried before.
pub(crate) fn connected_before() -> Refusal {
    Refusal::new(Errno::EOPBADSTATE, c"a connection was tried before")
}

/// Returns the refusal without a connection.
pub(crate) fn not_connected() -> Refusal {
    Refusal::new(Errno::ENOTCONN, c"the connection has ended")
}

/// Returns the refusal if the local memory does not permit a work request.
pub(crate) fn no_request(error: Error) -> Refusal {
    match error {
        error if error == ENOMEM => Errno::ENOMEM.into(),
        error if error == EACCES => {
            Refusal::new(Errno::EACCES, c"the memory may not be written to")
        }
        _ => driver(
            Errno::EINVAL,
            c"an atomic operation takes eight bytes at a multiple of eight",
            error,
        ),
    }
}

/// Returns the refusal for a work request that was not posted: the queue is full or not connected,
/// or the driver has refused it. The value is the error of the driver.
pub(crate) fn not_posted(error: Error) -> Refusal {
    match error {
        error if error == EAGAIN => Refusal::new(Errno::EAGAIN, c"the endpoint's queue is full"),
        // siw returns its own error if the queue pair is in error, or was never connected.
        error if error == Errno::ENOTCONN.into() => not_connected(),
        error => by_errno(error, &NO_REQUEST, (Errno::EIO, NOT_TAKEN)),
    }
}

/// Returns the refusal if the device is removed.
pub(crate) fn gone() -> Refusal {
    Refusal::new(Errno::ENODEV, c"the device is gone")
}

#[kernel::macros::kunit_tests(kfi_verbs_refused)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_must_never_be_freed_is_told_apart() {
        let refused = |error| not_refreshed(error).errno();
        assert_eq!(refused(RefreshError::Leaked), Errno::ENOTRECOVERABLE);
        assert_eq!(refused(RefreshError::Gone), Errno::EIO);
        assert_eq!(refused(RefreshError::Untouched(ENOMEM)), Errno::ENOMEM);
    }

    #[test]
    fn a_driver_that_refuses_is_no_lost_connection() {
        let told = |error| not_posted(error).errno();
        assert_eq!(told(EAGAIN), Errno::EAGAIN);
        assert_eq!(told(ENOMEM), Errno::ENOMEM);
        assert_eq!(told(Errno::ENOTCONN.into()), Errno::ENOTCONN);
        for error in [EINVAL, EIO, EBUSY, EACCES, ENODEV, EOVERFLOW, ENOSPC] {
            let refusal = not_posted(error);
            assert_eq!(refusal.errno(), Errno::EIO);
            let why = c"the device didn't take the work request";
            assert_eq!(refusal, driver(Errno::EIO, why, error));
        }
        // The consumer's own mistakes are no device's.
        assert_eq!(no_request(EACCES).errno(), Errno::EACCES);
        assert_eq!(no_request(EINVAL).errno(), Errno::EINVAL);
    }
}
