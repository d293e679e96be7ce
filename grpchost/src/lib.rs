//! `grpchost` for Python: [`host::Host`] serves, [`turn::Turn`] is what it hands over. See `python/grpchost/__init__.pyi`.

mod host;
mod settings;
mod turn;

use pyo3::prelude::*;

#[pymodule]
mod _grpchost {
    #[pymodule_export]
    use super::host::Host;
    #[pymodule_export]
    use super::settings::{Limits, Tls};
    #[pymodule_export]
    use super::turn::Turn;
}
