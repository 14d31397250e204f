//! x y
pub(crate) fn demo(_: Vec<std::ffi::OsString>) -> std::process::ExitCode { std::process::ExitCode::SUCCESS }
