// SPDX-License-Identifier: GPL-2.0

//! Where one direction of an endpoint is reported.

use crate::object::cq::BoundCq;

/// A completion queue that an endpoint reports one direction to.
pub(super) struct Reports {
    pub(super) cq: BoundCq,
    /// Only what asks for it, and errors.
    pub(super) selective: bool,
}
