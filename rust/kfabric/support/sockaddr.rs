// SPDX-License-Identifier: GPL-2.0

//! Socket addresses, as C has them.

use crate::prelude::*;
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddrV6, //
};
use kfi_bindings::{
    in6_addr,
    sockaddr_in6,
    AF_INET,
    AF_INET6, //
};

/// The C `struct sockaddr_in`, which not all kernels' bindings have.
#[derive(Clone, Copy)]
#[repr(C)]
struct SockaddrIn {
    family: u16,
    port: u16,
    ip: [u8; 4],
    zero: [u8; 8],
}

/// An address as C has it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union RawAddress {
    v4: SockaddrIn,
    v6: sockaddr_in6,
}

/// Returns an address family as the type of `sa_family_t`.
const fn family(number: u32) -> u16 {
    assert!(number <= 0xffff);
    // Just checked; a constant.
    number as u16
}

const V4: u16 = family(AF_INET);
const V6: u16 = family(AF_INET6);

impl RawAddress {
    /// Returns an address for C, and its length in bytes.
    pub(crate) fn new(address: SocketAddr) -> (Self, usize) {
        let port = address.port().to_be();
        match address {
            SocketAddr::V4(v4) => {
                let raw = SockaddrIn {
                    family: V4,
                    port,
                    ip: v4.ip().octets(),
                    zero: [0; 8],
                };
                (Self { v4: raw }, size_of::<SockaddrIn>())
            }
            SocketAddr::V6(v6) => {
                let mut sin6_addr: in6_addr = pin_init::zeroed();
                sin6_addr.in6_u.u6_addr8 = v6.ip().octets();
                let raw = sockaddr_in6 {
                    sin6_family: V6,
                    sin6_port: port,
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr,
                    sin6_scope_id: v6.scope_id(),
                };
                (Self { v6: raw }, size_of::<sockaddr_in6>())
            }
        }
    }
}

/// Returns the format of an address, as `kfi_info` names it.
pub(crate) const fn format_of(address: &SocketAddr) -> u32 {
    match address {
        SocketAddr::V4(_) => kfi_bindings::KFI_SOCKADDR_IN,
        SocketAddr::V6(_) => kfi_bindings::KFI_SOCKADDR_IN6,
    }
}

/// Reads an address from C.
///
/// # Errors
///
/// - `EINVAL`: `address` is NULL, too short, or of another family than IPv4 and IPv6.
///
/// # Safety
///
/// `address` is null or points to `len` bytes. If `len` is `None`, it points to as many bytes as
/// its family has.
pub(crate) unsafe fn read(
    address: *const c_void,
    len: Option<usize>,
) -> Result<SocketAddr, Refusal> {
    let short = Refusal::new(Errno::EINVAL, c"no address, or too short");
    let is_long = |needed: usize| len.is_none_or(|len| len >= needed);
    if address.is_null() || !is_long(size_of::<u16>()) {
        return Err(short);
    }
    // SAFETY: `address` points to at least 2 bytes: `is_long()` has compared `len` with that, and
    // without `len` there is a whole address.
    match unsafe { address.cast::<u16>().read_unaligned() } {
        V4 if is_long(size_of::<SockaddrIn>()) => {
            // SAFETY: `address` points to a whole `sockaddr_in`: `is_long()` has compared `len`
            // with its size.
            let raw = unsafe { address.cast::<SockaddrIn>().read_unaligned() };
            let ip = Ipv4Addr::from(raw.ip);
            Ok(SocketAddr::new(IpAddr::V4(ip), u16::from_be(raw.port)))
        }
        V6 if is_long(size_of::<sockaddr_in6>()) => {
            // SAFETY: `address` points to a whole `sockaddr_in6`: `is_long()` has compared `len`
            // with its size.
            let raw = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            // SAFETY: All members of the union are sixteen bytes.
            let ip = Ipv6Addr::from(unsafe { raw.sin6_addr.in6_u.u6_addr8 });
            let port = u16::from_be(raw.sin6_port);
            let address = SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id);
            Ok(SocketAddr::V6(address))
        }
        V4 | V6 => Err(short),
        other => {
            let refusal = Refusal::new(Errno::EINVAL, c"neither an IPv4 nor an IPv6 address");
            Err(refusal.value(u64::from(other)))
        }
    }
}

/// Parses an address in digits and a port. A null `node` is any IPv4 address, and a null `service`
/// is port 0. Returns `None` if either is malformed. May sleep.
///
/// # Safety
///
/// `node` and `service` are null or strings.
pub(crate) unsafe fn parse(node: *const c_char, service: *const c_char) -> Option<SocketAddr> {
    let mut raw: kfi_bindings::__kernel_sockaddr_storage = pin_init::zeroed();
    // SAFETY: `node` and `service` are null or strings by the function's contract. `raw` has space
    // for any address.
    match unsafe { kfi_bindings::kfi_helper_parse_address(node, service, &mut raw) } {
        // SAFETY: The helper has written a whole address to `raw`.
        0 => unsafe { read((&raw const raw).cast(), None) }.ok(),
        _ => None,
    }
}

/// Parses an address in digits, for example `192.0.2.1` or `fe80::1%eth0`, and a port. Without
/// `port`, the port is 0. May sleep.
///
/// # Errors
///
/// - `EINVAL`: `text` or `port` is malformed, or the address names an unknown interface.
pub fn parse_address(text: &CStr, port: Option<&CStr>) -> Result<SocketAddr, Errno> {
    let port = port.map_or(ptr::null(), CStr::as_char_ptr);
    // SAFETY: `text` is a string, and `port` is null or a string.
    unsafe { parse(text.as_char_ptr(), port) }.ok_or(Errno::EINVAL)
}

/// Reads an address from C; `None` for NULL.
///
/// # Errors
///
/// - `EINVAL`: the address is too short, or of another family.
///
/// # Safety
///
/// `address` is null or points to `len` bytes.
pub(crate) unsafe fn read_any(
    address: *const c_void,
    len: usize,
) -> Result<Option<SocketAddr>, Refusal> {
    match address.is_null() {
        true => Ok(None),
        // SAFETY: `address` is not null, so it points to `len` bytes.
        false => unsafe { read(address, Some(len)) }.map(Some),
    }
}

/// Writes an address and its length for C. Cuts the address off at the space that C has.
///
/// # Errors
///
/// - `EINVAL`: a pointer is NULL.
/// - `ETOOSMALL`: the address was cut off.
///
/// # Safety
///
/// `len` is null or valid, and `to` has space for `len` bytes.
pub(crate) unsafe fn write(
    address: SocketAddr,
    to: *mut c_void,
    len: *mut usize,
) -> Result<(), Refusal> {
    // SAFETY: `len` is null or valid for the call, as the caller promises.
    let len = unsafe { len.as_mut() }.ok_or(Refusal::NULL)?;
    let (raw, needed) = RawAddress::new(address);
    let room = core::mem::replace(len, needed);
    let fits = room.min(needed);
    if fits > 0 {
        if to.is_null() {
            return Err(Refusal::NULL);
        }
        // SAFETY: `to` is not null and has space for `fits` bytes. `raw` has `needed` bytes, and
        // `fits` is not more.
        unsafe { ptr::copy_nonoverlapping((&raw const raw).cast::<u8>(), to.cast(), fits) };
    }
    match fits < needed {
        true => {
            Err(Refusal::new(Errno::ETOOSMALL, c"no room for the address").value(widen(needed)))
        }
        false => Ok(()),
    }
}

#[kernel::macros::kunit_tests(kfabric_sockaddr)]
mod tests {
    use super::*;

    fn both() -> [SocketAddr; 2] {
        [
            SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 4420),
            SocketAddr::V6(SocketAddrV6::new(
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9),
                1,
                2,
                3,
            )),
        ]
    }

    #[test]
    fn there_and_back() {
        for address in both() {
            let (raw, len) = RawAddress::new(address);
            let from = (&raw const raw).cast();
            // SAFETY: `from` points to `len` bytes, those of `raw`.
            let (exact, short) = unsafe { (read(from, Some(len)), read(from, Some(len - 1))) };
            assert_eq!(exact, Ok(address));
            assert_eq!(short.map_err(|no| no.errno()), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn cut_off() {
        for address in both() {
            let (_, needed) = RawAddress::new(address);
            let mut bytes = [0xa5_u8; 64];
            let mut len = needed - 1;
            // SAFETY: `bytes` has 64 bytes, and `len` is less.
            let done = unsafe { write(address, bytes.as_mut_ptr().cast(), &mut len) };
            assert_eq!(done.map_err(|no| no.errno()), Err(Errno::ETOOSMALL));
            assert_eq!((len, bytes.get(needed - 1)), (needed, Some(&0xa5)));
            // SAFETY: `bytes` has 64 bytes, and `len` is the length of an address.
            assert_eq!(
                unsafe { write(address, bytes.as_mut_ptr().cast(), &mut len) },
                Ok(())
            );
            // SAFETY: `write` has just put an address into `bytes`.
            assert_eq!(unsafe { read(bytes.as_ptr().cast(), None) }, Ok(address));
        }
    }

    #[test]
    fn text_has_address_and_port() {
        let [v4, _] = both();
        assert_eq!(parse_address(c"192.0.2.7", Some(c"4420")), Ok(v4));
        let v6 = SocketAddrV6::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9), 7, 0, 0);
        assert_eq!(parse_address(c"2001:db8::9", Some(c"7")), Ok(v6.into()));
        // The loopback interface is always the first one.
        let local = SocketAddrV6::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x77), 0, 0, 1);
        assert_eq!(parse_address(c"fe80::77%lo", None), Ok(local.into()));
        let texts = [
            c"",
            c"host",
            c"192.0.2",
            c"192.0.2.7.1",
            c"2001:db8::g",
            c"fe80::77%nowhere",
        ];
        for text in texts {
            assert_eq!(parse_address(text, Some(c"4420")), Err(Errno::EINVAL));
        }
        for port in [c"", c"x", c"65536", c"-1"] {
            assert_eq!(parse_address(c"192.0.2.7", Some(port)), Err(Errno::EINVAL));
        }
    }

    #[test]
    fn others_are_refused() {
        let family = 1_u16;
        // SAFETY: `family` has 2 bytes; the other pointers are null.
        let found = unsafe {
            [
                read((&raw const family).cast(), Some(2)),
                read(ptr::null(), Some(16)),
                read(ptr::null(), None),
            ]
        };
        for found in found {
            assert_eq!(found.map_err(|no| no.errno()), Err(Errno::EINVAL));
        }
    }
}
