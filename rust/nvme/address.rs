// SPDX-License-Identifier: GPL-2.0

//! Internet addresses as the options of a controller have them, in words.

use core::net::{
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr,
    SocketAddrV4,
    SocketAddrV6, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};
use nvme_bindings as c;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// A `struct sockaddr_storage`, whose layout is part of the user ABI.
#[repr(C, align(8))]
struct Storage([u8; 128]);

/// Returns the address with this text, for example `192.0.2.1`, `2001:db8::1` or `fe80::1%eth0`,
/// and this port. May sleep.
///
/// # Errors
///
/// - `EINVAL`: the text or the port is malformed, or there is no interface of this name.
pub fn parse(text: &CStr, port: Option<&CStr>) -> Result<SocketAddr> {
    let mut storage = Storage([0; 128]);
    let port = port.map_or(core::ptr::null(), CStr::as_char_ptr);
    let to = (&raw mut storage.0).cast();
    // SAFETY: `text` is a string, and `port` is null or one. `to` has the size and the alignment of
    // a `sockaddr_storage`.
    to_result(unsafe { c::nvme_helper_address(text.as_char_ptr(), port, to) })?;
    storage.address().ok_or(EINVAL)
}

impl Storage {
    fn address(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.get(2)?);
        match u16::from_ne_bytes(self.get(0)?) {
            AF_INET => {
                let ip = Ipv4Addr::from(self.get::<4>(4)?);
                Some(SocketAddrV4::new(ip, port).into())
            }
            AF_INET6 => {
                let ip = Ipv6Addr::from(self.get::<16>(8)?);
                let scope = u32::from_ne_bytes(self.get(24)?);
                Some(SocketAddrV6::new(ip, port, 0, scope).into())
            }
            _ => None,
        }
    }

    fn get<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }
}

#[kernel::macros::kunit_tests(nvme_address)]
mod tests {
    use super::*;

    #[test]
    fn both_families_have_ports() -> Result {
        let v4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 4420);
        assert_eq!(parse(c"192.0.2.7", Some(c"4420"))?, v4.into());
        let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
        let v6 = SocketAddrV6::new(ip, 7, 0, 0);
        assert_eq!(parse(c"2001:db8::9", Some(c"7"))?, v6.into());
        assert_eq!(parse(c"192.0.2.7", None)?.port(), 0);
        Ok(())
    }

    #[test]
    fn a_scope_is_an_interface() -> Result {
        // The loopback interface is always the first one.
        let SocketAddr::V6(local) = parse(c"fe80::77%lo", Some(c"1"))? else {
            return Err(EINVAL);
        };
        assert_eq!(local.scope_id(), 1);
        assert!(parse(c"fe80::77%nowhere", Some(c"1")).is_err());
        Ok(())
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [c"", c"host", c"192.0.2", c"192.0.2.7.1", c"2001:db8::g"] {
            assert!(parse(text, Some(c"4420")).is_err());
        }
        for port in [c"", c"x", c"65536", c"-1"] {
            assert!(parse(c"192.0.2.7", Some(port)).is_err());
        }
    }
}
