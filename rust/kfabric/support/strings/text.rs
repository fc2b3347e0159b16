// SPDX-License-Identifier: GPL-2.0

//! Values as text, and the names of the API's flags and choices.

use crate::prelude::*;
use core::fmt::{
    self,
    Write, //
};

/// A value, and how it is written.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    /// A set of bits: the names of those that are set, and one number for those without a name.
    Flags(u64, &'static [Name]),
    /// One of several: its name, or the number if it has none.
    Choice(u64, &'static [Name]),
    /// A count or a size.
    Number(u64),
    /// A version as `KFI_VERSION` packs it.
    Version(u32),
    /// A string.
    String(Option<&'a CStr>),
    /// Bytes, of an address for instance.
    Bytes(&'a [u8]),
    /// A struct that is not there.
    Nothing,
    /// A struct.
    Fields(&'a dyn Fields),
}

/// A struct, which is written as its name and its fields, each on a line of its own.
pub(super) trait Fields {
    /// Returns its name in C.
    fn name(&self) -> &'static str;

    /// Calls `write` with the name and the value of each field in turn.
    fn each(&self, write: &mut dyn FnMut(&str, Value<'_>) -> fmt::Result) -> fmt::Result;
}

/// A text that grows; it fails where memory does.
///
/// # Invariants
///
/// There is no NUL in it.
pub(super) struct Text(KVec<u8>);

impl Text {
    pub(super) const fn new() -> Self {
        // INVARIANT: Nothing is in it.
        Self(KVec::new())
    }

    /// Gives it to C as a string, which `kfree()` frees: a vector of this kind is kmalloc memory.
    pub(super) fn into_raw(mut self) -> Option<NonNull<u8>> {
        self.0.push(0, GFP_KERNEL).ok()?;
        let (text, _, _) = self.0.into_raw_parts();
        NonNull::new(text)
    }

    /// Writes a value; a struct begins with its name.
    pub(super) fn value(&mut self, value: &Value<'_>) -> fmt::Result {
        if let Value::Fields(fields) = value {
            self.write_str(fields.name())?;
        }
        self.nested(value, 0)
    }

    /// Writes a value that is `depth` structs deep.
    fn nested(&mut self, value: &Value<'_>, depth: usize) -> fmt::Result {
        match *value {
            Value::Flags(0, _) => self.write_str("0"),
            Value::Flags(bits, names) => self.flags(bits, names),
            Value::Choice(number, names) => match names.iter().find(|name| name.value == number) {
                Some(name) => self.write_str(name.name),
                None => write!(self, "{number:#x}"),
            },
            Value::Number(number) => write!(self, "{number}"),
            Value::Version(version) => write!(self, "{}.{}", version >> 16, version & 0xffff),
            Value::String(Some(string)) => match string.to_str() {
                Ok(string) => self.write_str(string),
                Err(_) => self.nested(&Value::Bytes(string.to_bytes()), depth),
            },
            Value::Bytes([]) | Value::Nothing | Value::String(None) => self.write_str("(none)"),
            Value::Bytes(bytes) => bytes.iter().try_for_each(|byte| write!(self, "{byte:02x}")),
            Value::Fields(fields) => {
                self.write_str(":\n")?;
                fields.each(&mut |name, value| self.field(name, &value, depth + 1))
            }
        }
    }

    /// Writes a field as a line, or as several if it is a struct.
    fn field(&mut self, name: &str, value: &Value<'_>, depth: usize) -> fmt::Result {
        for _ in 0..depth {
            self.write_str("    ")?;
        }
        self.write_str(name)?;
        match value {
            Value::Fields(_) => self.nested(value, depth),
            _ => {
                self.write_str(": ")?;
                self.nested(value, depth)?;
                self.write_str("\n")
            }
        }
    }

    fn flags(&mut self, bits: u64, names: &[Name]) -> fmt::Result {
        let mut unnamed = bits;
        let mut separator = "";
        for name in names.iter().filter(|name| bits & name.value != 0) {
            self.write_str(separator)?;
            self.write_str(name.name)?;
            separator = ", ";
            unnamed &= !name.value;
        }
        match unnamed {
            0 => Ok(()),
            _ => write!(self, "{separator}{unnamed:#x}"),
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // INVARIANT: `text` is a constant of this module, a number, or a C string: none has a NUL.
        self.0
            .extend_from_slice(text.as_bytes(), GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

/// A number and its name in C.
pub(super) struct Name {
    pub(super) value: u64,
    pub(super) name: &'static str,
}

/// Makes a table of constants: plain ones, those of an enum, or of one that counts up from 0.
macro_rules! names {
    ($table:ident: $($name:ident),* $(,)?) => {
        pub(super) const $table: &[Name] = &[$(Name {
            value: kfi_bindings::$name as u64,
            name: stringify!($name),
        }),*];
    };
    ($table:ident of $enum:ident: $($name:ident),* $(,)?) => {
        kernel::macros::paste! {
            pub(super) const $table: &[Name] = &[$(Name {
                value: kfi_bindings::[<$enum _ $name>] as u64,
                name: stringify!($name),
            }),*];
        }
    };
    ($table:ident in order: $($name:ident),* $(,)?) => {
        pub(super) const $table: &[Name] = {
            #[allow(non_camel_case_types)]
            enum Order { $($name),* }
            &[$(Name {
                value: Order::$name as u64,
                name: stringify!($name),
            }),*]
        };
    };
}

names!(CAPS:
    KFI_MSG, KFI_RMA, KFI_TAGGED, KFI_ATOMIC, KFI_MULTICAST, KFI_TAGGED_RMA, KFI_READ, KFI_WRITE,
    KFI_RECV, KFI_SEND, KFI_REMOTE_READ, KFI_REMOTE_WRITE, KFI_MULTI_RECV, KFI_TRIGGER, KFI_FENCE,
    KFI_TAGGED_MULTI_RECV, KFI_RMA_PMEM, KFI_SOURCE_ERR, KFI_LOCAL_COMM, KFI_REMOTE_COMM,
    KFI_SHARED_AV, KFI_RMA_EVENT, KFI_SOURCE, KFI_NAMED_RX_CTX, KFI_DIRECTED_RECV,
);

names!(OP_FLAGS:
    KFI_MULTI_RECV, KFI_REMOTE_CQ_DATA, KFI_MORE, KFI_PEEK, KFI_TRIGGER, KFI_FENCE,
    KFI_COMPLETION, KFI_INJECT, KFI_INJECT_COMPLETE, KFI_TRANSMIT_COMPLETE,
    KFI_DELIVERY_COMPLETE, KFI_AFFINITY, KFI_COMMIT_COMPLETE, KFI_TAGGED_MULTI_RECV,
    KFI_DISCARD, KFI_CLAIM,
);

names!(CQ_FLAGS:
    KFI_MSG, KFI_RMA, KFI_TAGGED, KFI_ATOMIC, KFI_MULTICAST, KFI_READ, KFI_WRITE, KFI_RECV,
    KFI_SEND, KFI_REMOTE_READ, KFI_REMOTE_WRITE, KFI_MULTI_RECV, KFI_REMOTE_CQ_DATA, KFI_MORE,
);

names!(MODE:
    KFI_CONTEXT2, KFI_RESTRICTED_COMP, KFI_NOTIFY_FLAGS_ONLY, KFI_LOCAL_MR, KFI_RX_CQ_DATA,
    KFI_ASYNC_IOV, KFI_MSG_PREFIX, KFI_CONTEXT,
);

names!(MR_MODE:
    KFI_MR_LOCAL, KFI_MR_RAW, KFI_MR_VIRT_ADDR, KFI_MR_PROV_KEY, KFI_MR_RMA_EVENT,
    KFI_MR_ENDPOINT,
);

names!(ORDER:
    KFI_ORDER_RAR, KFI_ORDER_RAW, KFI_ORDER_RAS, KFI_ORDER_WAR, KFI_ORDER_WAW, KFI_ORDER_WAS,
    KFI_ORDER_SAR, KFI_ORDER_SAW, KFI_ORDER_SAS, KFI_ORDER_DATA,
);

names!(ADDR_FORMAT:
    KFI_FORMAT_UNSPEC, KFI_SOCKADDR, KFI_SOCKADDR_IN, KFI_SOCKADDR_IN6, KFI_SOCKADDR_IB,
    KFI_ADDR_GNI, KFI_ADDR_CXI,
);

names!(PROTOCOL:
    KFI_PROTO_UNSPEC, KFI_PROTO_RDMA_CM_IB_RC, KFI_PROTO_IWARP, KFI_PROTO_IB_UD, KFI_PROTO_UDP,
    KFI_PROTO_SOCK_TCP, KFI_PROTO_IWARP_RDM, KFI_PROTO_IB_RDM, KFI_PROTO_GNI, KFI_PROTO_CXI,
);

names!(TCLASS:
    KFI_TC_UNSPEC, KFI_TC_BEST_EFFORT, KFI_TC_LOW_LATENCY, KFI_TC_DEDICATED_ACCESS,
    KFI_TC_BULK_DATA, KFI_TC_SCAVENGER, KFI_TC_NETWORK_CTRL,
);

names!(EQ_EVENT:
    KFI_NOTIFY, KFI_CONNREQ, KFI_CONNECTED, KFI_SHUTDOWN, KFI_MR_COMPLETE, KFI_AV_COMPLETE,
    KFI_JOIN_COMPLETE,
);

names!(EP_TYPE of kfi_ep_type:
    KFI_EP_UNSPEC, KFI_EP_MSG, KFI_EP_DGRAM, KFI_EP_RDM, KFI_EP_SOCK_STREAM, KFI_EP_SOCK_DGRAM,
);

names!(THREADING of kfi_threading:
    KFI_THREAD_UNSPEC, KFI_THREAD_SAFE, KFI_THREAD_FID, KFI_THREAD_DOMAIN, KFI_THREAD_COMPLETION,
    KFI_THREAD_ENDPOINT,
);

names!(PROGRESS of kfi_progress:
    KFI_PROGRESS_UNSPEC, KFI_PROGRESS_AUTO, KFI_PROGRESS_MANUAL,
);

names!(RESOURCE_MGMT of kfi_resource_mgmt:
    KFI_RM_UNSPEC, KFI_RM_DISABLED, KFI_RM_ENABLED,
);

names!(AV_TYPE of kfi_av_type:
    KFI_AV_UNSPEC, KFI_AV_MAP, KFI_AV_TABLE,
);

names!(ATOMIC_TYPE of kfi_datatype:
    KFI_INT8, KFI_UINT8, KFI_INT16, KFI_UINT16, KFI_INT32, KFI_UINT32, KFI_INT64, KFI_UINT64,
    KFI_FLOAT, KFI_DOUBLE, KFI_FLOAT_COMPLEX, KFI_DOUBLE_COMPLEX, KFI_LONG_DOUBLE,
    KFI_LONG_DOUBLE_COMPLEX,
);

names!(ATOMIC_OP of kfi_op:
    KFI_MIN, KFI_MAX, KFI_SUM, KFI_PROD, KFI_LOR, KFI_LAND, KFI_BOR, KFI_BAND, KFI_LXOR,
    KFI_BXOR, KFI_ATOMIC_READ, KFI_ATOMIC_WRITE, KFI_CSWAP, KFI_CSWAP_NE, KFI_CSWAP_LE,
    KFI_CSWAP_LT, KFI_CSWAP_GE, KFI_CSWAP_GT, KFI_MSWAP,
);

// Not in the bindings, which don't have kfi_trigger.h.
names!(OP_TYPE in order:
    KFI_OP_RECV, KFI_OP_SEND, KFI_OP_TRECV, KFI_OP_TSEND, KFI_OP_READ, KFI_OP_WRITE,
    KFI_OP_ATOMIC, KFI_OP_FETCH_ATOMIC, KFI_OP_COMPARE_ATOMIC, KFI_OP_CNTR_SET, KFI_OP_CNTR_ADD,
);
