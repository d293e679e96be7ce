//! `grpchost` for Python: [`host::Host`] serves, [`turn::Turn`] is what it hands over, [`open_call::OpenCall`] what stays. See `python/grpchost/__init__.pyi`.

mod host;
mod open_call;
mod settings;
mod status;
mod turn;

use pyo3::prelude::*;

#[pymodule]
mod _grpchost {
    #[pymodule_export]
    use super::host::Host;
    #[pymodule_export]
    use super::open_call::OpenCall;
    #[pymodule_export]
    use super::settings::{Limits, Tls};
    #[pymodule_export]
    use super::turn::Turn;
}
