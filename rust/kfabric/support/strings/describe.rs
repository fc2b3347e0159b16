// SPDX-License-Identifier: GPL-2.0

//! What goes with each `enum kfi_type`.

use super::{
    fields::Complete,
    names,
    text::{
        Text,
        Value, //
    }, //
};
use core::ptr::NonNull;
use kernel::ffi::{
    c_uint,
    c_void, //
};

use kfi_bindings::{
    kfi_domain_attr,
    kfi_ep_attr,
    kfi_fabric_attr,
    kfi_info,
    kfi_rx_attr,
    kfi_tx_attr,
    kfi_type,
    kfi_type_KFI_TYPE_ADDR_FORMAT as ADDR_FORMAT,
    kfi_type_KFI_TYPE_ATOMIC_OP as ATOMIC_OP,
    kfi_type_KFI_TYPE_ATOMIC_TYPE as ATOMIC_TYPE,
    kfi_type_KFI_TYPE_AV_TYPE as AV_TYPE,
    kfi_type_KFI_TYPE_CAPS as CAPS,
    kfi_type_KFI_TYPE_CQ_EVENT_FLAGS as CQ_EVENT_FLAGS,
    kfi_type_KFI_TYPE_DOMAIN_ATTR as DOMAIN_ATTR,
    kfi_type_KFI_TYPE_EP_ATTR as EP_ATTR,
    kfi_type_KFI_TYPE_EP_TYPE as EP_TYPE,
    kfi_type_KFI_TYPE_EQ_EVENT as EQ_EVENT,
    kfi_type_KFI_TYPE_FABRIC_ATTR as FABRIC_ATTR,
    kfi_type_KFI_TYPE_INFO as INFO,
    kfi_type_KFI_TYPE_MODE as MODE,
    kfi_type_KFI_TYPE_MR_MODE as MR_MODE,
    kfi_type_KFI_TYPE_MSG_ORDER as MSG_ORDER,
    kfi_type_KFI_TYPE_OP_FLAGS as OP_FLAGS,
    kfi_type_KFI_TYPE_OP_TYPE as OP_TYPE,
    kfi_type_KFI_TYPE_PROGRESS as PROGRESS,
    kfi_type_KFI_TYPE_PROTOCOL as PROTOCOL,
    kfi_type_KFI_TYPE_RX_ATTR as RX_ATTR,
    kfi_type_KFI_TYPE_THREADING as THREADING,
    kfi_type_KFI_TYPE_TX_ATTR as TX_ATTR, //
};

/// Describes what `data` points to; `None` when out of memory, or for a type that isn't known.
///
/// # Safety
///
/// `data` points to a valid value of the type that goes with `datatype`, with all that it points
/// to in turn.
pub(super) unsafe fn value(data: NonNull<c_void>, datatype: kfi_type) -> Option<Text> {
    let flags = |names| {
        // SAFETY: By the requirements of this function.
        Value::Flags(unsafe { data.cast::<u64>().read() }, names)
    };
    let choice = |names| {
        // SAFETY: `data` points to what the type says, by the requirements of this function. Enums
        // have the size of `c_uint`, too.
        Value::Choice(u64::from(unsafe { data.cast::<c_uint>().read() }), names)
    };
    // SAFETY: `data` points to the attributes that the type says, by the requirements of this
    // function.
    let value = unsafe {
        match datatype {
            INFO => Value::Fields(Complete::<kfi_info>::from_raw(data)),
            TX_ATTR => Value::Fields(Complete::<kfi_tx_attr>::from_raw(data)),
            RX_ATTR => Value::Fields(Complete::<kfi_rx_attr>::from_raw(data)),
            EP_ATTR => Value::Fields(Complete::<kfi_ep_attr>::from_raw(data)),
            DOMAIN_ATTR => Value::Fields(Complete::<kfi_domain_attr>::from_raw(data)),
            FABRIC_ATTR => Value::Fields(Complete::<kfi_fabric_attr>::from_raw(data)),
            CAPS => flags(names::CAPS),
            OP_FLAGS => flags(names::OP_FLAGS),
            MSG_ORDER => flags(names::ORDER),
            MODE => flags(names::MODE),
            CQ_EVENT_FLAGS => flags(names::CQ_FLAGS),
            MR_MODE => {
                let bits = data.cast::<c_uint>().read();
                Value::Flags(u64::from(bits), names::MR_MODE)
            }
            EP_TYPE => choice(names::EP_TYPE),
            ADDR_FORMAT => choice(names::ADDR_FORMAT),
            THREADING => choice(names::THREADING),
            PROGRESS => choice(names::PROGRESS),
            PROTOCOL => choice(names::PROTOCOL),
            AV_TYPE => choice(names::AV_TYPE),
            ATOMIC_TYPE => choice(names::ATOMIC_TYPE),
            ATOMIC_OP => choice(names::ATOMIC_OP),
            EQ_EVENT => choice(names::EQ_EVENT),
            OP_TYPE => choice(names::OP_TYPE),
            _ => return None,
        }
    };
    let mut text = Text::new();
    text.value(&value).ok().map(|()| text)
}

/// The version of the API.
pub(super) fn version() -> Option<Text> {
    let mut text = Text::new();
    let version = Value::Version(crate::support::version::API_VERSION);
    text.value(&version).ok().map(|()| text)
}
