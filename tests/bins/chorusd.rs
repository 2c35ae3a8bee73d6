fn main() -> std::process::ExitCode {
    chorusd::main()
}
