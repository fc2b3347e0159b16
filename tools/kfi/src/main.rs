// SPDX-License-Identifier: GPL-2.0

//! The command kfi: see Documentation/kfi.8.md.

mod error;
mod family;
mod latency;
mod names;
mod netlink;
mod output;
mod refusal;
mod stats;
mod sys;
mod trace;

use clap::{
    builder::{
        PossibleValuesParser,
        TypedValueParser, //
    },
    error::{
        ContextKind,
        ContextValue,
        ErrorKind, //
    },
    CommandFactory,
    Parser,
    Subcommand, //
};
use error::{
    tell,
    Error, //
};
use family::Kfi;
use names::Class;
use serde::Serialize;
use std::{
    io::{
        self,
        Write, //
    },
    process::ExitCode, //
};

/// Shows what kfabric offers, which of its objects are open, and which calls it refuses.
#[derive(Parser)]
#[command(name = "kfi", version)]
struct Arguments {
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the offers of the providers
    Info {
        /// Print capabilities and limits, too
        #[arg(short, long)]
        verbose: bool,
        /// Only the offers of this provider
        #[arg(short, long)]
        provider: Option<String>,
    },
    /// List the open objects
    List {
        /// Only the objects of this class
        #[arg(value_parser = PossibleValuesParser::new(Class::names())
            .try_map(|i| Class::by_name(&i).ok_or("no such class")))]
        class: Option<Class>,
    },
    /// Print the counters of domains, endpoints and completion queues
    Stats {
        /// Print the increase every SECONDS seconds, too
        #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
            value_parser = clap::value_parser!(u32).range(1..))]
        watch: Option<u32>,
        /// Measure registrations for SECONDS seconds or until a signal, and print their durations instead
        #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, conflicts_with = "watch",
            value_parser = clap::value_parser!(u32).range(1..))]
        latency: Option<Option<u32>>,
    },
    /// Print refused calls as they happen
    Trace,
    /// Print a script that completes arguments
    Completion { shell: clap_complete::Shell },
}

fn print(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Ok(()) => Ok(()),
        Err(e) => Error::output(e),
    }
}

fn print_json(value: &impl Serialize) -> Result<(), Error> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&(text + "\n")),
        Err(e) => Err(Error::new(format!("can't write JSON: {e}"))),
    }
}

fn kfi() -> Result<Kfi<std::fs::File>, Error> {
    let socket = sys::generic_netlink()
        .map_err(|e| Error::new(format!("can't open a socket of generic netlink: {e}")))?;
    Kfi::open(socket)
}

fn run(arguments: Arguments) -> Result<(), Error> {
    let json = arguments.json;
    match arguments.command {
        Command::Info { verbose, provider } => {
            let mut offers = kfi()?.offers()?;
            if let Some(name) = &provider {
                offers.retain(|i| i.provider == *name);
                if offers.is_empty() {
                    return Err(Error::new(format!(
                        "no offer of a provider \"{name}\": load it (modprobe kfi_{name}), \
                         and see the log about its devices (dmesg)"
                    )));
                }
            }
            match json {
                true => print_json(&offers),
                false => print(&output::offers(&offers, verbose)),
            }
        }
        Command::List { class } => {
            let objects = kfi()?.objects(class)?;
            match json {
                true => print_json(&objects),
                false => print(&output::table(&objects)),
            }
        }
        Command::Stats {
            latency: Some(seconds),
            ..
        } => latency::run(json, seconds),
        Command::Stats { watch, .. } => stats::run(kfi()?, json, watch),
        Command::Trace => trace::run(json),
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "kfi", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

/// Returns what is wrong with the arguments, in one line.
fn usage(e: &clap::Error) -> String {
    let text = |kind| match e.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    };
    let value = text(ContextKind::InvalidValue);
    match e.kind() {
        ErrorKind::InvalidValue if !value.is_empty() => format!(
            "unknown {} '{value}': give one of {}",
            text(ContextKind::InvalidArg)
                .trim_matches(['[', ']', '<', '>'])
                .to_lowercase(),
            text(ContextKind::ValidValue)
        ),
        ErrorKind::InvalidSubcommand => format!(
            "unknown command '{}': see kfi --help",
            text(ContextKind::InvalidSubcommand)
        ),
        _ => {
            let text = e.render().to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("{}: see kfi --help", first.trim_start_matches("error: "))
        }
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and the version are no failures; without a command, help is one.
        Err(e) if !e.use_stderr() => {
            return match print(&e.render().to_string()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(e) if e.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            tell(&e.render().to_string());
            return ExitCode::from(2);
        }
        Err(e) => {
            tell(&format!("kfi: {}\n", usage(&e)));
            return ExitCode::from(2);
        }
    };
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            tell(&format!("kfi: {e}\n"));
            ExitCode::FAILURE
        }
    }
}
