//! Stub.
pub(crate) fn demo(_: Vec<std::ffi::OsString>) -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}
