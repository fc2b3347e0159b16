// SPDX-License-Identifier: GPL-2.0

//! Numbers of kfabric that have names: bits, enumerations, errnos, keys and versions.

use serde::{
    Serialize,
    Serializer, //
};
use std::fmt;

/// Defines a type for a set of bits, each with a name.
macro_rules! bits {
    ($(#[$doc:meta])* $type:ident { $($name:ident = $bit:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $type(pub u64);

        impl $type {
            const NAMES: &[(u32, &str)] = &[$(($bit, stringify!($name)),)*];

            /// Returns the names of the bits that are set. Bits without a name are one number.
            pub fn names(self) -> Vec<String> {
                let mut rest = self.0;
                let mut names = Vec::new();
                for (bit, name) in Self::NAMES {
                    if self.0 >> bit & 1 != 0 {
                        names.push((*name).to_owned());
                        rest &= !(1 << bit);
                    }
                }
                if rest != 0 {
                    names.push(format!("{rest:#x}"));
                }
                names
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.names())
            }
        }
    };
}

bits! {
    /// The capabilities of an offer.
    Caps {
        KFI_MSG = 1,
        KFI_RMA = 2,
        KFI_TAGGED = 3,
        KFI_ATOMIC = 4,
        KFI_MULTICAST = 5,
        KFI_TAGGED_RMA = 6,
        KFI_READ = 8,
        KFI_WRITE = 9,
        KFI_RECV = 10,
        KFI_SEND = 11,
        KFI_REMOTE_READ = 12,
        KFI_REMOTE_WRITE = 13,
        KFI_MULTI_RECV = 16,
        KFI_REMOTE_CQ_DATA = 17,
        KFI_TRIGGER = 20,
        KFI_FENCE = 21,
        KFI_TAGGED_MULTI_RECV = 31,
        KFI_RMA_PMEM = 49,
        KFI_SOURCE_ERR = 50,
        KFI_LOCAL_COMM = 51,
        KFI_REMOTE_COMM = 52,
        KFI_SHARED_AV = 53,
        KFI_RMA_EVENT = 56,
        KFI_SOURCE = 57,
        KFI_NAMED_RX_CTX = 58,
        KFI_DIRECTED_RECV = 59,
        KFI_INVALIDATE = 60,
    }
}

bits! {
    /// The demands of a provider on its consumers.
    Mode {
        KFI_RESTRICTED_COMP = 53,
        KFI_NOTIFY_FLAGS_ONLY = 54,
        KFI_LOCAL_MR = 55,
        KFI_RX_CQ_DATA = 56,
        KFI_ASYNC_IOV = 57,
        KFI_MSG_PREFIX = 58,
        KFI_CONTEXT = 59,
    }
}

bits! {
    /// The rules for registered memory.
    MrMode {
        KFI_MR_LOCAL = 1,
        KFI_MR_RAW = 2,
        KFI_MR_VIRT_ADDR = 3,
        KFI_MR_PROV_KEY = 4,
        KFI_MR_RMA_EVENT = 5,
        KFI_MR_ENDPOINT = 6,
    }
}

bits! {
    /// The rights of a memory region.
    Access {
        KFI_READ = 8,
        KFI_WRITE = 9,
        KFI_RECV = 10,
        KFI_SEND = 11,
        KFI_REMOTE_READ = 12,
        KFI_REMOTE_WRITE = 13,
    }
}

impl Access {
    /// Returns the rights as in a table: short, and separated by commas.
    pub fn short(self) -> String {
        let names = self.names();
        let short: Vec<_> = names
            .iter()
            .map(|i| i.trim_start_matches("KFI_").to_lowercase())
            .collect();
        short.join(",")
    }
}

/// Defines a type for a number that has a name.
macro_rules! enumeration {
    ($(#[$doc:meta])* $type:ident { $($name:literal = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $type(pub u32);

        impl $type {
            const NAMES: &'static [(u32, &'static str)] = &[$(($number, $name),)*];
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match Self::NAMES.iter().find(|(number, _)| *number == self.0) {
                    Some((_, name)) => f.write_str(name),
                    None => write!(f, "{}", self.0),
                }
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

enumeration! {
    /// The class of an object. The numbers are those of `KFI_CLASS_*`.
    Class {
        "fabric" = 1,
        "domain" = 2,
        "ep" = 3,
        "srx" = 6,
        "pep" = 9,
        "mr" = 12,
        "eq" = 13,
        "cq" = 14,
        "cntr" = 15,
    }
}

impl Class {
    pub const DOMAIN: Self = Self(2);

    /// Returns the names of all classes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(_, name)| *name)
    }

    /// Returns the class of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        let class = Self::NAMES.iter().find(|(_, i)| *i == name);
        class.map(|(number, _)| Self(*number))
    }
}

enumeration! {
    /// The state of an object.
    State {
        "open" = 0,
        "disabled" = 1,
        "closing" = 2,
    }
}

enumeration! {
    /// The type of an endpoint.
    EpType {
        "KFI_EP_UNSPEC" = 0,
        "KFI_EP_MSG" = 1,
        "KFI_EP_DGRAM" = 2,
        "KFI_EP_RDM" = 3,
        "KFI_EP_SOCK_STREAM" = 4,
        "KFI_EP_SOCK_DGRAM" = 5,
    }
}

/// The key of a memory region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key(pub u64);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Key {
    // A reader of JSON may keep a number as floating point, without the lower bits of a key.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A version, with the major number in the upper 16 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Version(pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 16, self.0 & 0xffff)
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The errnos of Linux that calls of kfabric return.
const ERRNOS: &[(i32, &str)] = &[
    (libc::EPERM, "EPERM"),
    (libc::ENOENT, "ENOENT"),
    (libc::EINTR, "EINTR"),
    (libc::EIO, "EIO"),
    (libc::ENXIO, "ENXIO"),
    (libc::E2BIG, "E2BIG"),
    (libc::EBADF, "EBADF"),
    (libc::EAGAIN, "EAGAIN"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::EACCES, "EACCES"),
    (libc::EFAULT, "EFAULT"),
    (libc::EBUSY, "EBUSY"),
    (libc::EEXIST, "EEXIST"),
    (libc::ENODEV, "ENODEV"),
    (libc::EINVAL, "EINVAL"),
    (libc::EMFILE, "EMFILE"),
    (libc::ENOSPC, "ENOSPC"),
    (libc::ERANGE, "ERANGE"),
    (libc::ENAMETOOLONG, "ENAMETOOLONG"),
    (libc::ENOSYS, "ENOSYS"),
    (libc::ENOMSG, "ENOMSG"),
    (libc::ENODATA, "ENODATA"),
    (libc::EPROTO, "EPROTO"),
    (libc::EOVERFLOW, "EOVERFLOW"),
    (libc::EMSGSIZE, "EMSGSIZE"),
    (libc::ENOPROTOOPT, "ENOPROTOOPT"),
    (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP"),
    (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
    (libc::EADDRINUSE, "EADDRINUSE"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    (libc::ENETDOWN, "ENETDOWN"),
    (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ECONNABORTED, "ECONNABORTED"),
    (libc::ECONNRESET, "ECONNRESET"),
    (libc::ENOBUFS, "ENOBUFS"),
    (libc::EISCONN, "EISCONN"),
    (libc::ENOTCONN, "ENOTCONN"),
    (libc::ESHUTDOWN, "ESHUTDOWN"),
    (libc::ETIMEDOUT, "ETIMEDOUT"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::EHOSTDOWN, "EHOSTDOWN"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH"),
    (libc::EALREADY, "EALREADY"),
    (libc::EINPROGRESS, "EINPROGRESS"),
    (libc::EREMOTEIO, "EREMOTEIO"),
    (libc::ECANCELED, "ECANCELED"),
    (libc::EKEYREJECTED, "EKEYREJECTED"),
    (libc::ENOTRECOVERABLE, "ENOTRECOVERABLE"),
    (256, "EOTHER"),
    (257, "ETOOSMALL"),
    (258, "EOPBADSTATE"),
    (259, "EAVAIL"),
    (260, "EBADFLAGS"),
    (261, "ENOEQ"),
    (262, "EDOMAIN"),
    (263, "ENOCQ"),
    (264, "ECRC"),
    (265, "ETRUNC"),
    (266, "ENOKEY"),
    (267, "ENOAV"),
    (268, "EOVERRUN"),
];

/// Returns the name of an errno, or the number if it has none. The sign does not matter.
pub fn errno(number: i32) -> String {
    let number = number.saturating_abs();
    match ERRNOS.iter().find(|(i, _)| *i == number) {
        Some((_, name)) => (*name).to_owned(),
        None => number.to_string(),
    }
}

#[cfg(test)]
mod tests;
