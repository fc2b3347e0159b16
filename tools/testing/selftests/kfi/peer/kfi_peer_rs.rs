// SPDX-License-Identifier: GPL-2.0

//! The test peer, for samples and tests in Rust: a remote side that reaches registered memory by
//! an address and a key, and by nothing else.
//!
//! C header: [`kfi_peer.h`](srctree/tools/testing/selftests/kfi/peer/kfi_peer.h)

use core::ptr::NonNull;
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*,
    sync::Arc, //
};
use kfabric::consumer::Domain;

/// `struct kfi_peer` and `struct kfid_domain`, as `kfi_peer.h` has them: by pointer only.
mod c {
    use super::*;

    unsafe extern "C" {
        pub(crate) fn kfi_peer_open(domain: *mut c_void) -> *mut c_void;
        pub(crate) fn kfi_peer_close(peer: *mut c_void);
        pub(crate) fn kfi_peer_write(
            peer: *mut c_void,
            addr: u64,
            key: u64,
            buf: *const c_void,
            len: usize,
        ) -> c_int;
        pub(crate) fn kfi_peer_read(
            peer: *mut c_void,
            addr: u64,
            key: u64,
            buf: *mut c_void,
            len: usize,
        ) -> c_int;
    }
}

/// Why a peer did not reach memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The target refused: a wrong key, missing rights, out of bounds.
    Refused,
    /// The peer itself is in trouble, or its device: nothing is known about the memory.
    Broken(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused => EACCES,
            Failure::Broken(error) => error,
        }
    }
}

fn result(ret: c_int) -> Result<(), Failure> {
    to_result(ret).map_err(|error| match error == EACCES {
        true => Failure::Refused,
        false => Failure::Broken(error),
    })
}

/// A peer of a domain of the verbs provider. Several threads may share it; they then wait for each
/// other.
///
/// # Invariants
///
/// `peer` is open, and nobody else closes it.
pub struct Peer {
    peer: NonNull<c_void>,
    // Dropped after the peer is closed.
    _domain: Arc<Domain>,
}

// SAFETY: Any thread may use a peer.
unsafe impl Send for Peer {}
// SAFETY: A peer has a lock of its own.
unsafe impl Sync for Peer {}

impl Peer {
    /// Makes a peer for the keys of a domain. May sleep.
    pub fn open(domain: &Arc<Domain>) -> Result<Self> {
        // SAFETY: The domain is open, and stays so as long as the peer has a reference.
        let peer = from_err_ptr(unsafe { c::kfi_peer_open(domain.as_raw().cast()) })?;
        // INVARIANT: Just opened.
        Ok(Self {
            peer: NonNull::new(peer).ok_or(EIO)?,
            _domain: domain.clone(),
        })
    }

    /// Writes to the peer: puts `bytes` into a region by RDMA WRITE. When it returns, they have
    /// arrived. May sleep.
    pub fn write(&self, addr: u64, key: u64, bytes: &[u8]) -> Result<(), Failure> {
        let (peer, buf) = (self.peer.as_ptr(), bytes.as_ptr().cast());
        // SAFETY: The peer is open, and the bytes are valid for the call.
        result(unsafe { c::kfi_peer_write(peer, addr, key, buf, bytes.len()) })
    }

    /// Reads from the peer: gets bytes out of a region by RDMA READ until `bytes` is full. May
    /// sleep.
    ///
    /// Nothing useful is in `bytes` if it fails.
    pub fn read(&self, addr: u64, key: u64, bytes: &mut [u8]) -> Result<(), Failure> {
        let (peer, buf) = (self.peer.as_ptr(), bytes.as_mut_ptr().cast());
        // SAFETY: The peer is open, and `bytes` has space for its length during the call.
        result(unsafe { c::kfi_peer_read(peer, addr, key, buf, bytes.len()) })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: The peer is open, and nobody uses it any more.
        unsafe { c::kfi_peer_close(self.peer.as_ptr()) };
    }
}
