// SPDX-License-Identifier: GPL-2.0

//! The exported calls: providers, what they offer, and opening a fabric of theirs.

pub(crate) mod answer;
mod getinfo;
pub(crate) mod guard;
mod layout;
mod needs;
pub(crate) mod registry;
