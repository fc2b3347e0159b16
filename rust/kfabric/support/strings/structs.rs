// SPDX-License-Identifier: GPL-2.0

//! The fields of the structs of the C API, and how each is written.

use crate::{
    prelude::*,
    support::strings::text::{
        self,
        Fields,
        Value, //
    }, //
};
use core::fmt;
use kfi_bindings::{
    kfi_domain_attr,
    kfi_ep_attr,
    kfi_fabric_attr,
    kfi_rx_attr,
    kfi_tx_attr, //
};

/// Lists the fields of a struct, each with the way in which it is written.
macro_rules! fields {
    ($struct:ident: $($field:ident as $style:ident $(($with:ident))?;)*) => {
        impl Fields for Complete<$struct> {
            fn name(&self) -> &'static str {
                stringify!($struct)
            }

            fn each(
                &self,
                write: &mut dyn FnMut(&str, Value<'_>) -> fmt::Result,
            ) -> fmt::Result {
                $(
                    // A field whose name is a keyword in Rust has a `_` behind it.
                    let name = stringify!($field).trim_end_matches('_');
                    write(name, fields!(@$style(self, $field $(, $with)?)))?;
                )*
                Ok(())
            }
        }
    };
    (@flags($self:ident, $field:ident, $names:ident)) => {
        Value::Flags($self.0.$field.wide(), text::$names)
    };
    (@choice($self:ident, $field:ident, $names:ident)) => {
        Value::Choice($self.0.$field.wide(), text::$names)
    };
    (@number($self:ident, $field:ident)) => {
        Value::Number($self.0.$field.wide())
    };
    (@version($self:ident, $field:ident)) => {
        Value::Version($self.0.$field)
    };
    (@string($self:ident, $field:ident)) => {
        // SAFETY: The field is null or a valid string, by the invariant of `Complete`.
        unsafe { string($self.0.$field) }
    };
    (@bytes($self:ident, $field:ident, $len:ident)) => {
        // SAFETY: The field is null or points to as many bytes as the length says, by the invariant
        // of `Complete`.
        unsafe { bytes($self.0.$field, $self.0.$len) }
    };
    (@nested($self:ident, $field:ident)) => {
        // SAFETY: The field is null or points to a valid struct, by the invariant of `Complete`.
        unsafe { Complete::nested($self.0.$field) }
    };
}

fields! { kfi_info:
    caps as flags(CAPS);
    mode as flags(MODE);
    addr_format as choice(ADDR_FORMAT);
    src_addrlen as number;
    dest_addrlen as number;
    src_addr as bytes(src_addrlen);
    dest_addr as bytes(dest_addrlen);
    tx_attr as nested;
    rx_attr as nested;
    ep_attr as nested;
    domain_attr as nested;
    fabric_attr as nested;
}

fields! { kfi_tx_attr:
    caps as flags(CAPS);
    mode as flags(MODE);
    op_flags as flags(OP_FLAGS);
    msg_order as flags(ORDER);
    comp_order as flags(ORDER);
    inject_size as number;
    size as number;
    iov_limit as number;
    rma_iov_limit as number;
    tclass as choice(TCLASS);
}

fields! { kfi_rx_attr:
    caps as flags(CAPS);
    mode as flags(MODE);
    op_flags as flags(OP_FLAGS);
    msg_order as flags(ORDER);
    comp_order as flags(ORDER);
    total_buffered_recv as number;
    size as number;
    iov_limit as number;
}

fields! { kfi_ep_attr:
    type_ as choice(EP_TYPE);
    protocol as choice(PROTOCOL);
    protocol_version as number;
    max_msg_size as number;
    msg_prefix_size as number;
    max_order_raw_size as number;
    max_order_war_size as number;
    max_order_waw_size as number;
    mem_tag_format as number;
    tx_ctx_cnt as number;
    rx_ctx_cnt as number;
    auth_key_size as number;
}

fields! { kfi_domain_attr:
    name as string;
    threading as choice(THREADING);
    control_progress as choice(PROGRESS);
    data_progress as choice(PROGRESS);
    resource_mgmt as choice(RESOURCE_MGMT);
    av_type as choice(AV_TYPE);
    mr_mode as flags(MR_MODE);
    mr_key_size as number;
    cq_data_size as number;
    cq_cnt as number;
    ep_cnt as number;
    tx_ctx_cnt as number;
    rx_ctx_cnt as number;
    max_ep_tx_ctx as number;
    max_ep_rx_ctx as number;
    max_ep_stx_ctx as number;
    max_ep_srx_ctx as number;
    cntr_cnt as number;
    mr_iov_limit as number;
    caps as flags(CAPS);
    mode as flags(MODE);
    auth_key_size as number;
    max_err_data as number;
    mr_cnt as number;
    tclass as choice(TCLASS);
}

fields! { kfi_fabric_attr:
    name as string;
    prov_name as string;
    prov_version as version;
    api_version as version;
}

/// A struct of the C API, complete with what it points to.
///
/// # Invariants
///
/// Every pointer in it is null, or valid for what the C API says is there.
#[repr(transparent)]
pub(super) struct Complete<T>(pub(super) T);

impl<T> Complete<T> {
    /// Takes a struct from C.
    ///
    /// # Safety
    ///
    /// `data` points to a `T` that is valid for `'a`. Every pointer in it is null, or valid for the
    /// data that the C API puts there.
    pub(super) unsafe fn from_raw<'a>(data: NonNull<c_void>) -> &'a Self {
        // SAFETY: `data` points to a valid `T` for `'a`, and `Self` has the same layout.
        // INVARIANT: The caller promises that the pointers in the struct are null or valid.
        unsafe { data.cast().as_ref() }
    }

    /// Takes a struct that another one points to.
    ///
    /// # Safety
    ///
    /// `data` is null, or points to a `T` as [`from_raw`](Self::from_raw) needs it.
    pub(super) unsafe fn nested<'a>(data: *mut T) -> Value<'a>
    where
        T: 'a,
        Self: Fields,
    {
        match NonNull::new(data) {
            None => Value::Nothing,
            // SAFETY: `data` is not null, so it points to a `T` as `from_raw` needs it.
            Some(data) => Value::Fields(unsafe { Self::from_raw(data.cast()) }),
        }
    }
}

/// Takes a string.
///
/// # Safety
///
/// `text` is null or points to a string that is valid for `'a`.
pub(super) unsafe fn string<'a>(text: *const c_char) -> Value<'a> {
    // SAFETY: `text` is not null, so it points to a string that is valid for `'a`.
    Value::String((!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) }))
}

/// Takes an array of bytes.
///
/// # Safety
///
/// `first` is null or points to `len` bytes that are valid for `'a`.
pub(super) unsafe fn bytes<'a>(first: *const c_void, len: usize) -> Value<'a> {
    if first.is_null() {
        return Value::Nothing;
    }
    // SAFETY: `first` is not null, so it points to `len` bytes that are valid for `'a`.
    Value::Bytes(unsafe { slice::from_raw_parts(first.cast(), len) })
}

/// An integer of a struct.
pub(super) trait Integer {
    fn wide(self) -> u64;
}

impl Integer for u64 {
    fn wide(self) -> u64 {
        self
    }
}

impl Integer for usize {
    fn wide(self) -> u64 {
        crate::support::num::widen(self)
    }
}

impl Integer for c_uint {
    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Integer for c_int {
    /// Returns the bits: integers with a sign are sets of flags, too.
    fn wide(self) -> u64 {
        u64::from(c_uint::from_ne_bytes(self.to_ne_bytes()))
    }
}
