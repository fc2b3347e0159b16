// SPDX-License-Identifier: GPL-2.0

//! Many regions in one go: the device is waited for once.

mod answers;
mod close;
mod register;

pub(crate) use self::{
    answers::{
        Answers,
        MAX_TOGETHER, //
    },
    close::{
        close,
        close_claimed, //
    },
    register::register, //
};
