//! Calls one unary gRPC method as fast, or as often, as it is told, and prints what it saw as one line of JSON.
//!
//! One thread, no runtime, no HTTP/2 library: those of servers cost as much for a call as the servers that are to be
//! measured, and would then measure themselves. See `USAGE` for what it can be told.

mod bodies;
mod connection;
mod frames;
mod options;
mod report;
mod run;

use options::{Options, USAGE};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match Options::parse(lexopt::Parser::from_env()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}; --help tells of the options");
            return ExitCode::from(2);
        }
    };
    match run::run(&options) {
        Ok(report) => {
            println!("{}", report.json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", options.address);
            ExitCode::FAILURE
        }
    }
}
