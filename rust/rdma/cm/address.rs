// SPDX-License-Identifier: GPL-2.0

//! Internet addresses in the layout of C.
//!
//! C headers: [`include/uapi/linux/in.h`](srctree/include/uapi/linux/in.h),
//! [`include/uapi/linux/in6.h`](srctree/include/uapi/linux/in6.h)

use super::*;
use core::net::{
    Ipv4Addr,
    Ipv6Addr,
    SocketAddrV4,
    SocketAddrV6, //
};

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// A `struct sockaddr_storage`.
///
/// The layouts of the two families are part of the user ABI: they are the same for all
/// architectures and kernels, except for the byte order.
#[repr(C, align(8))]
pub(super) struct Storage([u8; 128]);

impl Storage {
    /// Converts an address to the layout of C.
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut this = Self([0; 128]);
        match address {
            SocketAddr::V4(v4) => {
                this.put(0, AF_INET.to_ne_bytes());
                this.put(4, v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                this.put(0, AF_INET6.to_ne_bytes());
                this.put(4, v6.flowinfo().to_be_bytes());
                this.put(8, v6.ip().octets());
                this.put(24, v6.scope_id().to_ne_bytes());
            }
        }
        this.put(2, address.port().to_be_bytes());
        this
    }

    /// Copies an address from C.
    ///
    /// # Safety
    ///
    /// `from` must be valid for reads.
    pub(super) unsafe fn read(from: *const bindings::__kernel_sockaddr_storage) -> Self {
        // The size is part of the user ABI.
        const { assert!(size_of::<bindings::__kernel_sockaddr_storage>() == 128) };
        // SAFETY: `from` is valid for reads by the function's contract, and has 128 bytes by the
        // assertion. Every value of the bytes is valid.
        Self(unsafe { from.cast::<[u8; 128]>().read() })
    }

    /// Returns the address, or [`None`] for another family, as in an identifier without an address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        let port = u16::from_be_bytes(self.get(2)?);
        match u16::from_ne_bytes(self.get(0)?) {
            AF_INET => {
                let ip = Ipv4Addr::from(self.get::<4>(4)?);
                Some(SocketAddrV4::new(ip, port).into())
            }
            AF_INET6 => {
                let flow = u32::from_be_bytes(self.get(4)?);
                let ip = Ipv6Addr::from(self.get::<16>(8)?);
                let scope = u32::from_ne_bytes(self.get(24)?);
                Some(SocketAddrV6::new(ip, port, flow, scope).into())
            }
            _ => None,
        }
    }

    /// Returns a pointer for C functions.
    pub(super) fn as_mut_ptr(&mut self) -> *mut rdma_bindings::sockaddr {
        self.0.as_mut_ptr().cast()
    }

    fn put<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        let place = self.0.iter_mut().skip(at);
        place.zip(bytes).for_each(|(to, from)| *to = from);
    }

    fn get<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }
}

#[kernel::macros::kunit_tests(rdma_cm_address)]
mod tests {
    use super::*;

    #[test]
    fn as_programs_have_it() {
        let v4 = Storage::new(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 7), 0x1234).into());
        assert_eq!(v4.get(2), Some([0x12, 0x34, 192, 0, 2, 7, 0, 0]));
        let ip = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
        let v6 = Storage::new(SocketAddrV6::new(ip, 0x1234, 0x10203, 5).into());
        assert_eq!(
            v6.get(2),
            Some([0x12, 0x34, 0, 1, 2, 3, 0x20, 1, 0xd, 0xb8])
        );
        assert_eq!(v6.get(23), Some([9]));
        assert_eq!(v6.get(24), Some(5u32.to_ne_bytes()));
    }

    #[test]
    fn back_and_forth() {
        let v4: SocketAddr = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 1), 4420).into();
        assert_eq!(Storage::new(v4).address(), Some(v4));
        let ip = Ipv6Addr::new(0xfe80, 0, 0, 0, 1, 2, 3, 4);
        let v6: SocketAddr = SocketAddrV6::new(ip, 1, 7, 3).into();
        assert_eq!(Storage::new(v6).address(), Some(v6));
        assert_eq!(Storage([0; 128]).address(), None);
    }
}
