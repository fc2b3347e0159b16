// SPDX-License-Identifier: GPL-2.0

//! Offers and objects as text.

use crate::family::{
    Object,
    Offer, //
};
use std::fmt::{
    Display,
    Write as _, //
};

/// Returns a number of seconds in its two largest units.
pub fn age(seconds: u32) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// A column of the table of objects.
struct Column {
    title: &'static str,
    /// Numbers are aligned to the right.
    right: bool,
    cell: fn(&Object) -> Option<String>,
}

const COLUMNS: &[Column] = &[
    Column {
        title: "CLASS",
        right: false,
        cell: |i| Some(i.class.to_string()),
    },
    Column {
        title: "ID",
        right: true,
        cell: |i| Some(i.id.to_string()),
    },
    Column {
        title: "PARENT",
        right: true,
        cell: |i| i.parent.map(|i| i.to_string()),
    },
    Column {
        title: "PROVIDER",
        right: false,
        cell: |i| Some(i.provider.clone()),
    },
    Column {
        title: "FABRIC",
        right: false,
        cell: |i| Some(i.fabric.clone()),
    },
    Column {
        title: "DOMAIN",
        right: false,
        cell: |i| i.domain.clone(),
    },
    Column {
        title: "OWNER",
        right: false,
        cell: |i| i.owner.clone(),
    },
    Column {
        title: "STATE",
        right: false,
        cell: |i| Some(i.state.to_string()),
    },
    Column {
        title: "AGE",
        right: true,
        cell: |i| Some(age(i.age)),
    },
    Column {
        title: "LENGTH",
        right: true,
        cell: |i| i.length.map(|i| i.to_string()),
    },
    Column {
        title: "KEY",
        right: true,
        cell: |i| i.key.map(|i| i.to_string()),
    },
    Column {
        title: "ACCESS",
        right: false,
        cell: |i| i.access.map(|i| i.short()),
    },
];

/// Returns a table of objects. A column in which no object has a value is left out.
pub fn table(objects: &[Object]) -> String {
    let mut lines = vec![String::new(); objects.len() + 1];
    for column in COLUMNS {
        let cells: Vec<_> = objects.iter().map(column.cell).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let mut cells: Vec<_> = cells
            .into_iter()
            .map(|i| i.unwrap_or_else(|| "-".to_owned()))
            .collect();
        cells.insert(0, column.title.to_owned());
        let width = cells.iter().map(|i| i.chars().count()).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(cells) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            *line += &match column.right {
                true => format!("{cell:>width$}"),
                false => format!("{cell:<width$}"),
            };
        }
    }
    lines
        .iter()
        .filter(|i| !i.is_empty())
        .fold(String::new(), |all, i| all + i.trim_end() + "\n")
}

/// Returns offers, each with its limits if `verbose`.
pub fn offers(offers: &[Offer], verbose: bool) -> String {
    let mut text = String::new();
    for i in offers {
        // Writing to a string can't fail.
        let _ = writeln!(text, "provider: {}", i.provider);
        let mut line = |name: &str, value: &dyn Display| {
            let _ = writeln!(text, "    {name}: {value}");
        };
        let list = |names: Vec<String>| match names.is_empty() {
            true => "0".to_owned(),
            false => names.join(" | "),
        };
        line("fabric", &i.fabric);
        line("domain", &i.domain);
        line("version", &i.version);
        line("type", &i.ep_type);
        line("mr_mode", &list(i.mr_mode.names()));
        if verbose {
            line("caps", &list(i.caps.names()));
            line("mode", &list(i.mode.names()));
            line("mr_key_size", &i.mr_key_size);
            line("mr_iov_limit", &i.mr_iov_limit);
            line("mr_cnt", &i.mr_cnt);
            line("max_msg_size", &i.max_msg_size);
            line("inject_size", &i.inject_size);
            line("tx_attr.size", &i.tx_size);
            line("rx_attr.size", &i.rx_size);
            line("tx_attr.iov_limit", &i.tx_iov_limit);
            line("tx_attr.rma_iov_limit", &i.rma_iov_limit);
        }
    }
    text
}
