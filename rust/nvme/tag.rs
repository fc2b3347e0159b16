// SPDX-License-Identifier: GPL-2.0

//! The parts of a tag that are the transport's.

/// The parts of each tag that a [`Transport`](crate::Transport) has.
pub trait TagParts: 'static {
    /// The memory of a command that is sent. It exists as long as the tag, so over several
    /// connections.
    type Capsule: Send;

    /// What a tag has besides its capsule, for example the region of a request's data.
    type Slot: Send;
}
