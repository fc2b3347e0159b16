// SPDX-License-Identifier: GPL-2.0

//! The system calls that the standard library lacks. All unsafe code is here.

use std::{
    fs::File,
    io,
    mem::MaybeUninit,
    os::fd::{
        AsRawFd,
        FromRawFd,
        OwnedFd,
        RawFd, //
    },
    ptr, //
};

/// Turns the -1 of a system call into the error in errno.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Returns the file of a descriptor that a system call has just made, or its error.
fn file(result: libc::c_int) -> io::Result<File> {
    let fd = checked(result)?;
    // SAFETY: the system call has returned `fd` as a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// Opens a socket to the kernel's generic netlink, with texts in its errors.
///
/// A write sends a request. A read returns the messages of one datagram.
pub fn generic_netlink() -> io::Result<File> {
    // SAFETY: socket() takes no pointer.
    let socket = file(unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_GENERIC,
        )
    })?;
    for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
        let on: libc::c_int = 1;
        // SAFETY: the kernel reads `size_of::<c_int>()` bytes at `on`, which lives until the call
        // returns.
        checked(unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_NETLINK,
                option,
                ptr::from_ref(&on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        })?;
    }
    Ok(socket)
}

/// Blocks the signals that end the process, and returns a file that is readable if one is pending.
pub fn end_signals() -> io::Result<File> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset() fills `set`.
    checked(unsafe { libc::sigemptyset(set.as_mut_ptr()) })?;
    // SAFETY: sigemptyset() has filled it.
    let mut set = unsafe { set.assume_init() };
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `set` is a valid set of signals.
        checked(unsafe { libc::sigaddset(&mut set, signal) })?;
    }
    // SAFETY: `set` is valid. The old mask is not wanted, for which null is permitted.
    checked(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()) })?;
    // SAFETY: `set` is valid. -1 asks for a new descriptor.
    file(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC) })
}

/// Waits until a file has an error or, if its flag is set, is readable; for at most `timeout` ms.
///
/// Returns for each file whether that holds.
pub fn wait<const N: usize>(files: [(RawFd, bool); N], timeout: i32) -> io::Result<[bool; N]> {
    let mut polled = files.map(|(fd, readable)| libc::pollfd {
        fd,
        // Errors are reported without being asked for.
        events: if readable { libc::POLLIN } else { 0 },
        revents: 0,
    });
    // SAFETY: `polled` is an array of N valid entries, which the kernel fills before poll() returns.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, timeout) };
    match checked(result) {
        // The process was stopped and goes on.
        Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok([false; N]),
        result => result?,
    };
    Ok(polled.map(|i| i.revents != 0))
}
