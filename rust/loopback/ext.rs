// SPDX-License-Identifier: GPL-2.0

//! The extension `kfi_loop_ops_v1`: C consumers act as a peer.
//!
//! C header: [`include/kfi_loop_ext.h`](srctree/include/kfi_loop_ext.h)

use crate::*;
use kfabric::{
    domain,
    ep,
    ExtensionTable, //
};
use kfi_bindings::{
    kfi_loop_ops,
    kfid, //
};

/// A constant table.
#[repr(transparent)]
struct Table(kfi_loop_ops);

// SAFETY: The table is never written, and any thread may call its functions.
unsafe impl Sync for Table {}

// SAFETY: The table is a `struct kfi_loop_ops`, and its functions implement the header.
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

/// Returns the domain of a fid, and the endpoint if the fid is one.
///
/// # Safety
///
/// `fid` is null or an open object, for `'a`.
unsafe fn place<'a>(fid: *mut kfid) -> Option<(&'a Domain, Option<Arc<EpCore>>)> {
    // SAFETY: `fid` is null or an open object for `'a`, as the caller promises.
    unsafe {
        match domain::from_fid(fid) {
            Some(domain) => Some((domain, None)),
            None => Some((ep::domain_of(fid)?, ep::from_fid(fid))),
        }
    }
}

/// Returns the target of an access.
///
/// # Safety
///
/// `fid` is null or an open object, for `'a`.
unsafe fn target<'a>(fid: *mut kfid) -> Result<Target<'a>, Refusal> {
    // SAFETY: `fid` is null or an open object for `'a`, as the caller promises.
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

/// Returns the initiator of an access.
///
/// # Safety
///
/// `fid` is null or an open object, for `'a`.
unsafe fn initiator<'a>(fid: *mut kfid) -> Result<Initiator<'a>, Refusal> {
    if fid.is_null() {
        return Ok(Initiator::default());
    }
    // SAFETY: `fid` is an open object for `'a`, as the caller promises.
    match unsafe { place(fid) } {
        Some((domain, endpoint)) => Ok(Initiator {
            home: Some(domain.home()),
            endpoint,
            // SAFETY: `fid` is not null, so it is an open object, as the caller promises.
            mapped: unsafe { MappedKeys::of(fid) },
        }),
        None => Err(Refusal::new(
            Errno::EINVAL,
            c"initiator is no domain or endpoint of loop",
        )),
    }
}

/// Carries out an access on behalf of C.
///
/// # Safety
///
/// `target_fid` and `initiator_fid` are null or open objects.
unsafe fn access(
    target_fid: *mut kfid,
    initiator_fid: *mut kfid,
    addr: u64,
    key: u64,
    transfer: Option<PeerBuffer<'_>>,
) -> c_int {
    let _noio = NoIo::enter();
    // SAFETY: `target_fid` is null or an open object, as the caller promises.
    let done = unsafe { target(target_fid) }.and_then(|target| {
        // SAFETY: `initiator_fid` is null or an open object, as the caller promises.
        let initiator = unsafe { initiator(initiator_fid) }?;
        let transfer = transfer.ok_or(Refusal::new(Errno::EINVAL, c"buf is NULL"))?;
        target.access(&initiator, addr, key, transfer)
    });
    // SAFETY: `target_fid` is null or an open object, as the caller promises.
    unsafe { domain::answer(target_fid, c"access", done) }
}

/// Implements the slot `write`. May sleep.
///
/// # Safety
///
/// `target` and `initiator` are null or open objects. `buf` is null or points to `len` bytes that
/// may be read.
unsafe extern "C" fn write(
    target: *mut kfid,
    initiator: *mut kfid,
    addr: u64,
    key: u64,
    buf: *const c_void,
    len: usize,
) -> c_int {
    let there = !buf.is_null() || len == 0;
    // SAFETY: `buf` points to `len` bytes that may be read, or `len` is 0.
    let transfer = there.then(|| unsafe { PeerBuffer::write(buf, len) });
    // SAFETY: `target` and `initiator` are null or open objects, as the caller promises.
    unsafe { access(target, initiator, addr, key, transfer) }
}

/// Implements the slot `read`. May sleep.
///
/// # Safety
///
/// `target` and `initiator` are null or open objects. `buf` is null or points to `len` bytes that
/// may be written.
unsafe extern "C" fn read(
    target: *mut kfid,
    initiator: *mut kfid,
    addr: u64,
    key: u64,
    buf: *mut c_void,
    len: usize,
) -> c_int {
    let there = !buf.is_null() || len == 0;
    // SAFETY: `buf` points to `len` bytes that may be written, or `len` is 0.
    let transfer = there.then(|| unsafe { PeerBuffer::read(buf, len) });
    // SAFETY: `target` and `initiator` are null or open objects, as the caller promises.
    unsafe { access(target, initiator, addr, key, transfer) }
}
