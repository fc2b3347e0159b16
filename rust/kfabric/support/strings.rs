// SPDX-License-Identifier: GPL-2.0

//! Texts for C callers: `kfi_version()`, `kfi_strerror()` and `kfi_tostr()`.
//!
//! The texts of errors are in [`errno`], and the members of structures in [`structs`]. [`text`] has the
//! names of constants and lays texts out.
//!
//! C headers: [`include/kfabric.h`](srctree/include/kfabric.h),
//! [`include/kfi_errno.h`](srctree/include/kfi_errno.h)

mod structs;
mod text;

use self::{
    structs::Complete,
    text::{
        Text,
        Value, //
    }, //
};
use crate::{
    prelude::*,
    support::errno, //
};
use kfi_bindings as c;

/// Returns the text for the `prov_errno` of an error entry: the provider's text, if the number is
/// the provider's own; else the text of a number of `kfi_errno.h`, of either sign. The text is
/// empty for any other number. Any context.
pub(crate) fn words(by_provider: Option<&'static CStr>, prov_errno: c_int) -> &'static CStr {
    let of_errno = || match prov_errno.unsigned_abs() {
        0 => None,
        error => errno::known_text(error),
    };
    by_provider.or_else(of_errno).unwrap_or_default()
}

/// Implements `kfi_version()`: returns the version of the API. Any context.
///
/// # Safety
///
/// None; it is unsafe since C declares it.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_version() -> u32 {
    API_VERSION
}

/// Implements `kfi_strerror()`: returns a constant text for a number of either sign. Any context.
///
/// # Safety
///
/// None; it is unsafe since C declares it.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_strerror(errnum: c_int) -> *const c_char {
    errno::text(errnum.unsigned_abs()).as_char_ptr()
}

/// Implements `kfi_tostr()`: returns a text that the caller frees by `kfree()`, or null. May sleep.
///
/// # Safety
///
/// `data` is null, an error pointer, or points to a valid value of the type that goes with
/// `datatype`.
#[no_mangle]
pub(crate) unsafe extern "C" fn kfi_tostr(
    data: *const c_void,
    datatype: c::kfi_type,
) -> *mut c_char {
    let data = NonNull::new(data.cast_mut()).filter(|data| !Errno::is_in(data.as_ptr()));
    let text = match (datatype, data) {
        (c::kfi_type_KFI_TYPE_VERSION, _) => version(),
        // SAFETY: `data` is neither null nor an error pointer. So it points to a valid value of the
        // type that goes with `datatype`, with all that it points to.
        (_, Some(data)) => unsafe { value(data, datatype) },
        (_, None) => None,
    };
    text.and_then(Text::into_raw)
        .map_or(core::ptr::null_mut(), |text| text.as_ptr().cast())
}

crate::support::table::declared_in_c!(kfi_strerror, kfi_tostr, kfi_version);

/// Returns a text for the target of `data`; `None` if there is no memory, or for an unknown type.
///
/// # Safety
///
/// `data` points to a valid value of the type that goes with `datatype`, with all that it points to
/// in turn.
unsafe fn value(data: NonNull<c_void>, datatype: c::kfi_type) -> Option<Text> {
    let flags = |names| {
        // SAFETY: `flags` is called for types of 64 bits only, and the caller promises that `data`
        // points to one.
        Value::Flags(unsafe { data.cast::<u64>().read() }, names)
    };
    let choice = |names| {
        // SAFETY: `choice` is called for enums and `c_uint` only, and the caller promises that
        // `data` points to one. Enums have the size of `c_uint`, too.
        Value::Choice(u64::from(unsafe { data.cast::<c_uint>().read() }), names)
    };
    // SAFETY: The caller promises that `data` points to a value of the type of the arm, with all
    // that it points to.
    let value = unsafe {
        match datatype {
            c::kfi_type_KFI_TYPE_INFO => Value::Fields(Complete::<kfi_info>::from_raw(data)),
            c::kfi_type_KFI_TYPE_TX_ATTR => {
                Value::Fields(Complete::<c::kfi_tx_attr>::from_raw(data))
            }
            c::kfi_type_KFI_TYPE_RX_ATTR => {
                Value::Fields(Complete::<c::kfi_rx_attr>::from_raw(data))
            }
            c::kfi_type_KFI_TYPE_EP_ATTR => {
                Value::Fields(Complete::<c::kfi_ep_attr>::from_raw(data))
            }
            c::kfi_type_KFI_TYPE_DOMAIN_ATTR => {
                Value::Fields(Complete::<c::kfi_domain_attr>::from_raw(data))
            }
            c::kfi_type_KFI_TYPE_FABRIC_ATTR => {
                Value::Fields(Complete::<c::kfi_fabric_attr>::from_raw(data))
            }
            c::kfi_type_KFI_TYPE_CAPS => flags(text::CAPS),
            c::kfi_type_KFI_TYPE_OP_FLAGS => flags(text::OP_FLAGS),
            c::kfi_type_KFI_TYPE_MSG_ORDER => flags(text::ORDER),
            c::kfi_type_KFI_TYPE_MODE => flags(text::MODE),
            c::kfi_type_KFI_TYPE_CQ_EVENT_FLAGS => flags(text::CQ_FLAGS),
            c::kfi_type_KFI_TYPE_MR_MODE => {
                let bits = data.cast::<c_uint>().read();
                Value::Flags(u64::from(bits), text::MR_MODE)
            }
            c::kfi_type_KFI_TYPE_EP_TYPE => choice(text::EP_TYPE),
            c::kfi_type_KFI_TYPE_ADDR_FORMAT => choice(text::ADDR_FORMAT),
            c::kfi_type_KFI_TYPE_THREADING => choice(text::THREADING),
            c::kfi_type_KFI_TYPE_PROGRESS => choice(text::PROGRESS),
            c::kfi_type_KFI_TYPE_PROTOCOL => choice(text::PROTOCOL),
            c::kfi_type_KFI_TYPE_AV_TYPE => choice(text::AV_TYPE),
            c::kfi_type_KFI_TYPE_ATOMIC_TYPE => choice(text::ATOMIC_TYPE),
            c::kfi_type_KFI_TYPE_ATOMIC_OP => choice(text::ATOMIC_OP),
            c::kfi_type_KFI_TYPE_EQ_EVENT => choice(text::EQ_EVENT),
            c::kfi_type_KFI_TYPE_OP_TYPE => choice(text::OP_TYPE),
            _ => return None,
        }
    };
    let mut text = Text::new();
    text.value(&value).ok().map(|()| text)
}

/// Returns the version of the API as a text.
fn version() -> Option<Text> {
    let mut text = Text::new();
    let version = Value::Version(API_VERSION);
    text.value(&version).ok().map(|()| text)
}

/// The version of the API, 1.7, as `KFI_VERSION` packs it.
pub const API_VERSION: u32 =
    (kfi_bindings::KFI_MAJOR_VERSION << 16) | kfi_bindings::KFI_MINOR_VERSION;

#[kernel::macros::kunit_tests(kfabric_strings)]
mod tests {
    use super::*;

    /// Does `kfi_tostr()` say this?
    fn says<T>(value: &T, datatype: c::kfi_type, expected: &CStr) -> bool {
        // SAFETY: The tests give the types that go together.
        let text = unsafe { kfi_tostr(ptr::from_ref(value).cast(), datatype) };
        // SAFETY: Null or a string.
        let same = !text.is_null() && unsafe { CStr::from_char_ptr(text) } == expected;
        // SAFETY: The text is ours.
        unsafe { kernel::bindings::kfree(text.cast()) };
        same
    }

    #[test]
    fn values_have_names() {
        assert!(says(
            &0x1106_u64,
            c::kfi_type_KFI_TYPE_CAPS,
            c"KFI_MSG, KFI_RMA, KFI_READ, KFI_REMOTE_READ"
        ));
        assert!(says(
            &0x18_u32,
            c::kfi_type_KFI_TYPE_MR_MODE,
            c"KFI_MR_VIRT_ADDR, KFI_MR_PROV_KEY"
        ));
        assert!(says(&3_u32, c::kfi_type_KFI_TYPE_EP_TYPE, c"KFI_EP_RDM"));
        assert!(says(&0_u64, c::kfi_type_KFI_TYPE_CAPS, c"0"));
    }

    #[test]
    fn unknown_values_stay_numbers() {
        assert!(says(
            &0x8000_0000_0000_0002_u64,
            c::kfi_type_KFI_TYPE_CAPS,
            c"KFI_MSG, 0x8000000000000000"
        ));
        assert!(says(&77_u32, c::kfi_type_KFI_TYPE_EP_TYPE, c"0x4d"));
        assert!(!says(&0_u64, 1000, c"0"));
    }

    #[test]
    fn null_gives_null() {
        // SAFETY: Null is allowed.
        assert!(unsafe { kfi_tostr(ptr::null(), c::kfi_type_KFI_TYPE_CAPS) }.is_null());
        // SAFETY: Null is allowed, and here it is what the C API wants.
        let version = unsafe { kfi_tostr(ptr::null(), c::kfi_type_KFI_TYPE_VERSION) };
        assert!(!version.is_null());
        // SAFETY: The text is ours.
        unsafe { kernel::bindings::kfree(version.cast()) };
    }

    #[test]
    fn structs_are_indented() {
        let attr = kfi_bindings::kfi_fabric_attr {
            prov_name: c"verbs".as_char_ptr().cast_mut(),
            prov_version: 0x10002,
            ..pin_init::zeroed()
        };
        let expected = c"kfi_fabric_attr:
    name: (none)
    prov_name: verbs
    prov_version: 1.2
    api_version: 0.0
";
        assert!(says(&attr, c::kfi_type_KFI_TYPE_FABRIC_ATTR, expected));
        let info = kfi_bindings::kfi_info {
            fabric_attr: ptr::from_ref(&attr).cast_mut(),
            ..pin_init::zeroed()
        };
        // SAFETY: `info` is valid with all that it points to.
        let text = unsafe { value(NonNull::from(&info).cast(), c::kfi_type_KFI_TYPE_INFO) };
        let text = text.and_then(|text| text.into_raw());
        assert!(text.is_some());
        if let Some(text) = text {
            // SAFETY: A string.
            let lines = unsafe { CStr::from_char_ptr(text.as_ptr()) }.to_bytes();
            let nested = b"    fabric_attr:\n        name: (none)\n        prov_name: verbs\n";
            assert!(lines.windows(nested.len()).any(|window| window == nested));
            // SAFETY: The text is ours.
            unsafe { kernel::bindings::kfree(text.as_ptr().cast()) };
        }
    }
}
