// SPDX-License-Identifier: GPL-2.0

//! Where one direction of an endpoint is reported.

use crate::provider::cq::CompletionQueue;
use kernel::sync::Arc;

/// A completion queue that an endpoint reports one direction to. If the consumer closes the queue first,
/// completions are discarded.
pub(super) struct Reports {
    pub(super) cq: Arc<CompletionQueue>,
    /// Only what asks for it, and errors.
    pub(super) selective: bool,
}
