// SPDX-License-Identifier: GPL-2.0

//! The results of many regions, as C gets them.

use crate::support::errno::Errno;
use core::slice;
use kernel::ffi::c_int;
use kfi_bindings::kfid_mr;

/// Maximum number of regions that wait for the device together. The list of their states has that
/// length.
pub(crate) const MAX_TOGETHER: usize = 64;

/// The results that C gets: a region or an errno for each.
pub(crate) struct Answers<'a> {
    mrs: &'a mut [*mut kfid_mr],
    errs: Option<&'a mut [c_int]>,
    first: c_int,
}

impl Answers<'_> {
    /// Makes empty results.
    ///
    /// # Safety
    ///
    /// `mrs`, and `errs` unless it is null, are valid for writing `count` elements, as long as this
    /// lives.
    pub(crate) unsafe fn new(mrs: *mut *mut kfid_mr, errs: *mut c_int, count: usize) -> Self {
        // SAFETY: `mrs` is valid for writing `count` elements, and so is `errs` unless it is null,
        // as the caller promises. All zeroes are valid values of both.
        unsafe {
            mrs.write_bytes(0, count);
            let errs = if errs.is_null() {
                None
            } else {
                errs.write_bytes(0, count);
                Some(slice::from_raw_parts_mut(errs, count))
            };
            Self {
                mrs: slice::from_raw_parts_mut(mrs, count),
                errs,
                first: 0,
            }
        }
    }

    pub(super) fn refused(&mut self, index: usize, ret: c_int) {
        if let Some(err) = self.errs.as_mut().and_then(|errs| errs.get_mut(index)) {
            *err = ret;
        }
        if self.first == 0 {
            self.first = ret;
        }
    }

    pub(super) fn registered(&mut self, index: usize, mr: *mut kfid_mr) {
        if let Some(place) = self.mrs.get_mut(index) {
            *place = mr;
        }
    }

    /// Sets `ECANCELED` for the regions that were not refused themselves: there is none, since
    /// others were refused.
    pub(super) fn cancel_others(&mut self) {
        for err in self.errs.iter_mut().flat_map(|errs| errs.iter_mut()) {
            if *err == 0 {
                *err = Errno::ECANCELED.to_c();
            }
        }
    }

    /// Returns the first errno; 0 if all regions are registered.
    pub(crate) fn first_error(&self) -> c_int {
        self.first
    }
}
