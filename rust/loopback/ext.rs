// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_loop_ops_v1`: being a peer, for C consumers.
//!
//! C header: [`include/kfi_loop_ext.h`](srctree/include/kfi_loop_ext.h)

use crate::{
    domain::Domain,
    peer::{
        Initiator,
        Target, //
    }, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfabric::{
    cpu_memory::PeerBuffer,
    domain,
    ep,
    Endpoint,
    Errno,
    Extension,
    ExtensionTable,
    MappedKeys,
    NoIo,
    Refusal, //
};
use kfi_bindings::{
    kfi_loop_ops,
    kfid, //
};

/// A table that is never written.
#[repr(transparent)]
struct Table(kfi_loop_ops);

// SAFETY: It is never written, and its functions may be called from any thread.
unsafe impl Sync for Table {}

// SAFETY: It is a `struct kfi_loop_ops` with functions that do what the header says.
unsafe impl ExtensionTable for Table {
    const NAME: &'static CStr = c"kfi_loop_ops_v1";
}

static TABLE: Table = Table(kfi_loop_ops {
    size: size_of::<kfi_loop_ops>(),
    write: Some(write),
    read: Some(read),
});

/// The extensions of each domain.
pub(crate) static EXTENSIONS: [Extension; 1] = [Extension::new(&TABLE)];

/// The domain behind a fid, and the endpoint if it is one.
///
/// # Safety
///
/// As the C API demands: `fid` is null or an open object, for `'a`.
unsafe fn place<'a>(fid: *mut kfid) -> Option<(&'a Domain, Option<Arc<Endpoint>>)> {
    // SAFETY: By the requirements of this function.
    unsafe {
        match domain::from_fid(fid) {
            Some(domain) => Some((domain, None)),
            None => Some((ep::domain_of(fid)?, ep::from_fid(fid))),
        }
    }
}

/// # Safety
///
/// As for [`place`].
unsafe fn target<'a>(fid: *mut kfid) -> Result<Target<'a>, Refusal> {
    // SAFETY: By the requirements of this function.
    match unsafe { place(fid) } {
        Some((domain, endpoint)) => Ok(Target {
            home: domain.home(),
            endpoint,
        }),
        None => Err(Refusal::new(
            Errno::EINVAL,
            c"target is no domain or endpoint of loop",
        )),
    }
}

/// # Safety
///
/// As for [`place`].
unsafe fn initiator<'a>(fid: *mut kfid) -> Result<Initiator<'a>, Refusal> {
    if fid.is_null() {
        return Ok(Initiator::default());
    }
    // SAFETY: By the requirements of this function.
    match unsafe { place(fid) } {
        Some((domain, endpoint)) => Ok(Initiator {
            home: Some(domain.home()),
            endpoint,
            // SAFETY: `fid` is null or open, by the requirements of this function.
            mapped: unsafe { MappedKeys::of(fid) },
        }),
        None => Err(Refusal::new(
            Errno::EINVAL,
            c"initiator is no domain or endpoint of loop",
        )),
    }
}

/// Does an access on behalf of C.
///
/// # Safety
///
/// As the C API demands: both fids are null or open objects.
unsafe fn access(
    target_fid: *mut kfid,
    initiator_fid: *mut kfid,
    addr: u64,
    key: u64,
    transfer: Option<PeerBuffer<'_>>,
) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: By the requirements of this function.
    let done = unsafe { target(target_fid) }.and_then(|target| {
        // SAFETY: `initiator_fid` is null or open, by the requirements of this function.
        let initiator = unsafe { initiator(initiator_fid) }?;
        let transfer = transfer.ok_or(Refusal::new(Errno::EINVAL, c"buf is NULL"))?;
        target.access(&initiator, addr, key, transfer)
    });
    done.map_or_else(Refusal::report, |()| 0)
}

/// The slot `write`. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn write(
    target: *mut kfid,
    initiator: *mut kfid,
    addr: u64,
    key: u64,
    buf: *const c_void,
    len: usize,
) -> c_int {
    let there = !buf.is_null() || len == 0;
    // SAFETY: As the C API demands, there are so many bytes.
    let transfer = there.then(|| unsafe { PeerBuffer::write(buf, len) });
    // SAFETY: As the C API demands.
    unsafe { access(target, initiator, addr, key, transfer) }
}

/// The slot `read`. May sleep.
///
/// # Safety
///
/// As the C API demands: every pointer is null or valid for the call.
unsafe extern "C" fn read(
    target: *mut kfid,
    initiator: *mut kfid,
    addr: u64,
    key: u64,
    buf: *mut c_void,
    len: usize,
) -> c_int {
    let there = !buf.is_null() || len == 0;
    // SAFETY: As the C API demands, there are so many bytes.
    let transfer = there.then(|| unsafe { PeerBuffer::read(buf, len) });
    // SAFETY: As the C API demands.
    unsafe { access(target, initiator, addr, key, transfer) }
}
